use super::profile::ColumnProfile;
use super::safe_harbor::SafeHarborCategory;
use throng_core::values::identifier_shapes::IdentifierShape;

/// Criteria of a standalone identifier (docs/internals/methods.md §2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdentifierRule {
    /// Smallest ratio of distinct values to rows of an identifier, in (0, 1].
    pub cardinality: f64,
    /// Fewest rows for which the ratio is used.
    pub min_rows: u64,
    /// Least share of distinct values with an identifier shape, in (0, 1].
    pub shape_share: f64,
    /// True if a constant URL counts as an identifier.
    pub constant_urls: bool,
}

impl IdentifierRule {
    /// Default of [`shape_share`](Self::shape_share).
    pub const SHAPE_SHARE: f64 = 0.5;
    /// Default of [`cardinality`](Self::cardinality) (\[POD] §4.1.1).
    pub const CARDINALITY: f64 = 0.80;

    /// Returns the rule for a sample of a stream.
    pub fn for_stream(cardinality: f64) -> Self {
        Self { cardinality, min_rows: 1000, shape_share: Self::SHAPE_SHARE, constant_urls: true }
    }

    /// Returns the rule for a complete file of at least two rows.
    pub fn for_file(cardinality: f64) -> Self {
        Self { cardinality, min_rows: 2, shape_share: Self::SHAPE_SHARE, constant_urls: false }
    }

    /// Judges a column with header `name`.
    ///
    /// `recodable` columns have a hierarchy, so only a shape counts against them.
    pub fn judge(&self, profile: &ColumnProfile, recodable: bool, name: Option<&str>) -> IdentifierJudgement {
        let mut reasons = Vec::new();
        let constant = profile.values == 1 && profile.rows - profile.missing >= 2;
        let is_none = |shape: IdentifierShape| shape == IdentifierShape::Url && constant && !self.constant_urls;
        if let Some((shape, share)) =
            profile.shape.filter(|(shape, share)| *share >= self.shape_share && !is_none(*shape))
        {
            reasons.push(IdentifierReason::Shape { shape, share });
        }
        let spread = profile.rows >= self.min_rows && profile.rows > 0 && !recodable;
        let cardinality = profile.cardinality();
        if spread && profile.distinct == profile.rows {
            reasons.push(IdentifierReason::Injective);
        } else if spread && cardinality >= self.cardinality {
            reasons.push(IdentifierReason::Cardinality { cardinality, threshold: self.cardinality });
        }
        if self.identifies_subjects(profile) && !recodable {
            reasons.push(IdentifierReason::NamesSubject);
        }
        let by_shape = reasons.iter().find_map(|reason| match reason {
            IdentifierReason::Shape { shape, .. } => Some(SafeHarborCategory::of_shape(*shape)),
            _ => None,
        });
        IdentifierJudgement { category: by_shape.or_else(|| name.and_then(SafeHarborCategory::of_name)), reasons }
    }

    fn identifies_subjects(&self, profile: &ColumnProfile) -> bool {
        profile.people.is_some_and(|people| {
            let nearly = |part: u64, whole: u64| part as f64 >= self.cardinality * whole as f64;
            people.pairs >= self.min_rows.max(2)
                && nearly(people.values, people.pairs)
                && nearly(people.subjects, people.pairs)
                && nearly(people.subjects, people.all)
        })
    }
}

/// Reason for which a column alone identifies a subject.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum IdentifierReason {
    /// Declared an identifier by the schema.
    Declared,
    /// Values of this shape.
    Shape {
        /// Shape of the values.
        shape: IdentifierShape,
        /// Share of the distinct values, in (0, 1].
        share: f64,
    },
    /// Every row has a different value (c = 1, \[POD] Def. 2).
    Injective,
    /// Nearly every row has a different value.
    Cardinality {
        /// Distinct values per record, in (0, 1].
        cardinality: f64,
        /// Threshold of the ratio.
        threshold: f64,
    },
    /// Values are nearly one to one with subjects.
    NamesSubject,
}

/// Judgement of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IdentifierJudgement {
    /// Reasons, shapes before counts; empty if not an identifier.
    pub reasons: Vec<IdentifierReason>,
    /// HIPAA Safe Harbor category by the shape of its values, else by its name. A name alone is no reason for removal.
    pub category: Option<SafeHarborCategory>,
}

impl IdentifierJudgement {
    /// Returns true for a standalone identifier.
    pub fn identifies(&self) -> bool {
        !self.reasons.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::SubjectRelation;
    use super::*;

    fn of(rows: u64, distinct: u64) -> ColumnProfile {
        ColumnProfile { rows, distinct, ..ColumnProfile::default() }
    }

    fn kinds(rule: IdentifierRule, profile: &ColumnProfile, recodable: bool) -> Vec<&'static str> {
        let name = |reason: &IdentifierReason| match reason {
            IdentifierReason::Declared => "declared",
            IdentifierReason::Shape { .. } => "shape",
            IdentifierReason::Injective => "injective",
            IdentifierReason::Cardinality { .. } => "cardinality",
            IdentifierReason::NamesSubject => "subject",
        };
        rule.judge(profile, recodable, None).reasons.iter().map(name).collect()
    }

    #[test]
    fn high_cardinality_identifies_only_unrecodable_columns() {
        let file = IdentifierRule::for_file(0.8);
        assert_eq!(kinds(file, &of(10, 10), false), ["injective"]);
        assert_eq!(kinds(file, &of(10, 8), false), ["cardinality"]);
        assert!(kinds(file, &of(10, 7), false).is_empty());
        assert!(kinds(file, &of(10, 10), true).is_empty(), "it is recoded");
        assert!(kinds(file, &of(1, 1), false).is_empty(), "one row is always unique");
        assert!(kinds(file, &of(0, 0), false).is_empty());
        let stream = IdentifierRule::for_stream(0.8);
        assert!(kinds(stream, &of(999, 999), false).is_empty());
        assert_eq!(kinds(stream, &of(1000, 1000), false), ["injective"]);
        assert_eq!(kinds(stream, &of(1000, 800), false), ["cardinality"]);
    }

    #[test]
    fn identifier_shape_counts_for_every_column() {
        let mut profile = of(10, 2);
        profile.shape = Some((IdentifierShape::Email, 0.5));
        assert_eq!(kinds(IdentifierRule::for_file(0.8), &profile, true), ["shape"]);
        let judged = IdentifierRule::for_file(0.8).judge(&profile, true, Some("zip"));
        assert_eq!(judged.category, Some(SafeHarborCategory::Email), "the values before the name");
        profile.shape = Some((IdentifierShape::Email, 0.49));
        let judged = IdentifierRule::for_file(0.8).judge(&profile, false, Some("zip"));
        assert_eq!((judged.identifies(), judged.category), (false, Some(SafeHarborCategory::Geography)));
    }

    #[test]
    fn constant_url_in_a_file_is_no_identifier() {
        let url = |values, missing| ColumnProfile {
            values,
            missing,
            shape: Some((IdentifierShape::Url, 1.0)),
            ..of(10, values)
        };
        let file = IdentifierRule::for_file(0.8);
        assert!(kinds(file, &url(1, 0), false).is_empty() && kinds(file, &url(1, 8), false).is_empty());
        assert_eq!(kinds(file, &url(2, 0), false), ["shape"], "somebody's page among others");
        assert_eq!(kinds(file, &url(1, 9), false), ["shape"], "one record has it");
        assert_eq!(
            kinds(IdentifierRule::for_stream(0.8), &url(1, 0), false),
            ["shape"],
            "the next record may have another"
        );
        let mail = ColumnProfile { shape: Some((IdentifierShape::Email, 1.0)), ..url(1, 0) };
        assert_eq!(kinds(file, &mail, false), ["shape"]);
    }

    #[test]
    fn repeated_alias_of_the_subject_is_an_identifier() {
        let file = IdentifierRule::for_file(0.8);
        let beside = |subjects, values, pairs| ColumnProfile {
            people: Some(SubjectRelation { all: 70, subjects, values, pairs }),
            ..of(10_000, values)
        };
        assert_eq!(kinds(file, &beside(70, 70, 70), false), ["subject"]);
        assert_eq!(kinds(file, &beside(70, 68, 72), false), ["subject"]);
        assert!(kinds(file, &beside(70, 2, 70), false).is_empty(), "a value that people share");
        assert!(kinds(file, &beside(70, 4_000, 4_100), false).is_empty(), "a person with many values");
        assert!(kinds(file, &beside(40, 40, 40), false).is_empty(), "most people have none");
        assert!(kinds(file, &beside(1, 1, 1), false).is_empty(), "one person says nothing");
    }
}
