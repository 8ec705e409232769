//! From the numbers of a column to a judgement with its reasons.

use super::profile::Profile;
use super::safe_harbor::Category;
use throng_core::values::shapes::Shape;

/// What makes a column a standalone identifier (docs/methods.md §2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Different values over rows from which a column identifies, in (0, 1].
    pub cardinality: f64,
    /// Rows below which a share of different values says nothing: 1,000 in a stream, 2 in a file that is whole.
    pub min_rows: u64,
    /// Share of the different values that must have an identifier's shape, in (0, 1].
    pub shape_share: f64,
    /// A URL that is the same wherever it is there names a vocabulary and nobody. In a stream the next record may have
    /// another.
    pub constant_urls: bool,
}

impl Rule {
    /// Share of different values with an identifier's shape that makes the column one.
    pub const SHAPE_SHARE: f64 = 0.5;
    /// Default of [`cardinality`](Self::cardinality) ([POD] §4.1.1).
    pub const CARDINALITY: f64 = 0.80;

    /// The rule for a sample of a stream, which the next records may refute.
    pub fn of_a_stream(cardinality: f64) -> Self {
        Self { cardinality, min_rows: 1000, shape_share: Self::SHAPE_SHARE, constant_urls: true }
    }

    /// The rule for a file that is there as a whole. One row alone is always unique, so two are asked for.
    pub fn of_a_file(cardinality: f64) -> Self {
        Self { cardinality, min_rows: 2, shape_share: Self::SHAPE_SHARE, constant_urls: false }
    }

    /// Judges a column. `recodable` columns (those with a generalization hierarchy) are recoded and not removed, so
    /// only a shape counts against them. `name` is the column's header, looked at for Safe Harbor's words.
    pub fn judge(&self, profile: &Profile, recodable: bool, name: Option<&str>) -> Judgement {
        let mut reasons = Vec::new();
        let constant = profile.values == 1 && profile.rows - profile.missing >= 2;
        let is_none = |shape: Shape| shape == Shape::Url && constant && !self.constant_urls;
        if let Some((shape, share)) =
            profile.shape.filter(|(shape, share)| *share >= self.shape_share && !is_none(*shape))
        {
            reasons.push(Reason::Shape { shape, share });
        }
        let spread = profile.rows >= self.min_rows && profile.rows > 0 && !recodable;
        let cardinality = profile.cardinality();
        if spread && profile.distinct == profile.rows {
            reasons.push(Reason::Injective);
        } else if spread && cardinality >= self.cardinality {
            reasons.push(Reason::Cardinality { cardinality, threshold: self.cardinality });
        }
        if self.names_people(profile) && !recodable {
            reasons.push(Reason::NamesSubject);
        }
        let by_shape = reasons.iter().find_map(|reason| match reason {
            Reason::Shape { shape, .. } => Some(Category::of_shape(*shape)),
            _ => None,
        });
        Judgement { category: by_shape.or_else(|| name.and_then(Category::of_name)), reasons }
    }

    /// One value a person and one person a value: another spelling of the subject, however often it repeats.
    fn names_people(&self, profile: &Profile) -> bool {
        profile.people.is_some_and(|people| {
            let nearly = |part: u64, whole: u64| part as f64 >= self.cardinality * whole as f64;
            people.pairs >= self.min_rows.max(2)
                && nearly(people.values, people.pairs)
                && nearly(people.subjects, people.pairs)
                && nearly(people.subjects, people.all)
        })
    }
}

/// Why a column identifies by itself.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The schema gives it the role.
    Declared,
    /// At least half of its different values have this shape.
    Shape {
        /// What they look like.
        shape: Shape,
        /// The share of the different values, in (0, 1].
        share: f64,
    },
    /// Every row has a value of its own (c = 1, [POD] Def. 2).
    Injective,
    /// Nearly every row has: c ≥ the threshold.
    Cardinality {
        /// Different values per record, in (0, 1].
        cardinality: f64,
        /// From which ratio on that is too many.
        threshold: f64,
    },
    /// It is (nearly) one to one with the subject, over all records of each.
    NamesSubject,
}

/// A judged column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Empty: not a standalone identifier. Shape before counts.
    pub reasons: Vec<Reason>,
    /// The HIPAA Safe Harbor category that its values' shape, or else its name, points to. A name alone is a remark
    /// and no reason: taking a column out of the search because of its name would hide what it does in combination.
    pub category: Option<Category>,
}

impl Judgement {
    /// Whether the column is a standalone identifier.
    pub fn identifies(&self) -> bool {
        !self.reasons.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::People;
    use super::*;

    fn of(rows: u64, distinct: u64) -> Profile {
        Profile { rows, distinct, ..Profile::default() }
    }

    fn kinds(rule: Rule, profile: &Profile, recodable: bool) -> Vec<&'static str> {
        let name = |reason: &Reason| match reason {
            Reason::Declared => "declared",
            Reason::Shape { .. } => "shape",
            Reason::Injective => "injective",
            Reason::Cardinality { .. } => "cardinality",
            Reason::NamesSubject => "subject",
        };
        rule.judge(profile, recodable, None).reasons.iter().map(name).collect()
    }

    #[test]
    fn cardinality_counts_against_columns_that_cannot_be_recoded() {
        let file = Rule::of_a_file(0.8);
        assert_eq!(kinds(file, &of(10, 10), false), ["injective"]);
        assert_eq!(kinds(file, &of(10, 8), false), ["cardinality"]);
        assert!(kinds(file, &of(10, 7), false).is_empty());
        assert!(kinds(file, &of(10, 10), true).is_empty(), "it is recoded");
        assert!(kinds(file, &of(1, 1), false).is_empty(), "one row is always unique");
        assert!(kinds(file, &of(0, 0), false).is_empty());
        let stream = Rule::of_a_stream(0.8);
        assert!(kinds(stream, &of(999, 999), false).is_empty());
        assert_eq!(kinds(stream, &of(1000, 1000), false), ["injective"]);
        assert_eq!(kinds(stream, &of(1000, 800), false), ["cardinality"]);
    }

    #[test]
    fn a_shape_counts_against_every_column() {
        let mut profile = of(10, 2);
        profile.shape = Some((Shape::Email, 0.5));
        assert_eq!(kinds(Rule::of_a_file(0.8), &profile, true), ["shape"]);
        let judged = Rule::of_a_file(0.8).judge(&profile, true, Some("zip"));
        assert_eq!(judged.category, Some(Category::Email), "the values before the name");
        profile.shape = Some((Shape::Email, 0.49));
        let judged = Rule::of_a_file(0.8).judge(&profile, false, Some("zip"));
        assert_eq!((judged.identifies(), judged.category), (false, Some(Category::Geography)));
    }

    #[test]
    fn a_constant_url_is_no_identifier_of_a_file() {
        let url = |values, missing| Profile { values, missing, shape: Some((Shape::Url, 1.0)), ..of(10, values) };
        let file = Rule::of_a_file(0.8);
        assert!(kinds(file, &url(1, 0), false).is_empty() && kinds(file, &url(1, 8), false).is_empty());
        assert_eq!(kinds(file, &url(2, 0), false), ["shape"], "somebody's page among others");
        assert_eq!(kinds(file, &url(1, 9), false), ["shape"], "one record has it");
        assert_eq!(kinds(Rule::of_a_stream(0.8), &url(1, 0), false), ["shape"], "the next record may have another");
        let mail = Profile { shape: Some((Shape::Email, 1.0)), ..url(1, 0) };
        assert_eq!(kinds(file, &mail, false), ["shape"]);
    }

    #[test]
    fn another_spelling_of_the_subject_is_found_however_often_it_repeats() {
        let file = Rule::of_a_file(0.8);
        let beside = |subjects, values, pairs| Profile {
            people: Some(People { all: 70, subjects, values, pairs }),
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
