//! Reference distribution for t-closeness: the planner's sample, fixed per plan. Texts are sealed data values, hence
//! not part of a [`throng_core::plan::Plan`].

use super::planner_sample::PlannerSample;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::lattice::attribute_coding::{code_attribute, sort_codes_by_value};
use throng_core::privacy::protection::{ClosenessReference, SensitiveProtection};
use throng_core::values::codebook::{Code, Codebook, UNCOVERED};
use throng_core::values::digest::value_number;
use throng_core::values::subject_digest::NO_SUBJECT;

/// Counts of one attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceCounts {
    /// Schema position.
    pub attribute: usize,
    /// Distinct subjects by canonical text.
    pub subjects: Vec<(String, u64)>,
}

/// Counts the attributes that need a reference.
pub fn count_references(
    protections: &[SensitiveProtection],
    sample: &PlannerSample,
    books: &[Codebook],
) -> Vec<ReferenceCounts> {
    let of = |protection: &SensitiveProtection| {
        let attribute = protection.attribute;
        let mut seen: BTreeMap<Code, BTreeSet<u64>> = BTreeMap::new();
        for (&code, &subject) in sample.column(attribute).iter().zip(sample.subjects()) {
            if code != UNCOVERED && subject != NO_SUBJECT {
                seen.entry(code).or_default().insert(subject);
            }
        }
        let text = |code: Code| books[attribute].canonical(code).to_owned();
        let mut subjects: Vec<(String, u64)> =
            seen.into_iter().map(|(code, subjects)| (text(code), subjects.len() as u64)).collect();
        subjects.sort_unstable();
        ReferenceCounts { attribute, subjects }
    };
    protections.iter().filter(|p| p.needs_reference()).map(of).collect()
}

/// Converts the counts. Unknown texts or an unusable hierarchy give an empty result; then no value is released.
pub fn resolve_reference(
    counts: &ReferenceCounts,
    protection: &SensitiveProtection,
    book: &mut Codebook,
) -> ClosenessReference {
    let mut known: BTreeMap<Code, u64> = BTreeMap::new();
    for (text, subjects) in &counts.subjects {
        known.insert(book.encode_canonical(text), *subjects);
    }
    if known.len() < counts.subjects.len() || known.contains_key(&UNCOVERED) {
        return ClosenessReference::default();
    }
    let mut codes: Vec<Code> = known.keys().copied().collect();
    sort_codes_by_value(book, &mut codes);
    let tree = match protection.needs_tree().then(|| code_attribute(book, &codes)) {
        None => Vec::new(),
        Some(Ok(coded)) if coded.codes == codes => coded.domain.parents(),
        Some(_) => return ClosenessReference::default(),
    };
    let number = |&code: &Code| value_number(book.digests(0)[code as usize]);
    ClosenessReference {
        values: codes.iter().map(number).collect(),
        subjects: codes.iter().map(|code| known[code]).collect(),
        tree,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::privacy::protection::{GroundDistance, ValueRequirement};
    use throng_core::values::code_batch::CodeBatch;
    use throng_core::values::codebook::test_codebooks;

    const SCHEMA: &str = "name = \"t\"\n[[attribute]]\nname = \"ill\"\ntype = \"string\"\nrole = \"sensitive\"\n\
        [attribute.hierarchy]\nkind = \"tree\"\n[attribute.hierarchy.tree]\n\"mild\" = [\"flu\", \"cold\"]\n\"grave\" = [\"hiv\"]\n";

    fn book() -> Codebook {
        test_codebooks(SCHEMA, 100).remove(0)
    }

    #[test]
    fn reference_counts_subjects_once_per_value_and_survives_restart() {
        let mut books = vec![book()];
        let mut sample = PlannerSample::new(1, 100, 100);
        let mut batch = CodeBatch::new(1);
        for (text, subject) in [
            ("\"hiv\"", 1),
            ("\"flu\"", 1),
            ("\"flu\"", 2),
            ("\"flu\"", 2),
            ("null", 3),
            ("\"cold\"", 0),
            ("\"odd\"", 4),
        ] {
            batch.columns[0].push(books[0].encode_canonical(text));
            batch.subjects.push(subject);
        }
        sample.add(&batch, 0);
        let closeness = ValueRequirement::Closeness { t: 0.2, ground: GroundDistance::Hierarchical };
        let protection = SensitiveProtection { attribute: 0, requirements: vec![closeness], colluders: 0 };
        let counts = count_references(std::slice::from_ref(&protection), &sample, &books);
        let texts = [("\"flu\"", 2), ("\"hiv\"", 1), ("null", 1)];
        assert_eq!(counts.len(), 1);
        assert_eq!(counts[0].subjects, texts.map(|(text, n)| (text.to_owned(), n)));
        let resolved = resolve_reference(&counts[0], &protection, &mut book());
        // Missing values come first.
        assert_eq!((resolved.subjects, resolved.tree), (vec![1, 2, 1], vec![vec![0, 1, 2], vec![0, 0, 0]]));
        let number = |text: &str| value_number(books[0].coverage_of(text).unwrap());
        assert_eq!(resolved.values, ["null", "\"flu\"", "\"hiv\""].map(number));
        let diverse =
            SensitiveProtection { attribute: 0, requirements: vec![ValueRequirement::Distinct { l: 2 }], colluders: 0 };
        assert!(count_references(&[diverse], &sample, &books).is_empty());
        let strange = ReferenceCounts { attribute: 0, subjects: vec![("\"odd\"".to_owned(), 3)] };
        assert_eq!(resolve_reference(&strange, &protection, &mut book()), ClosenessReference::default());
    }
}
