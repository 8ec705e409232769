//! The distribution that t-closeness compares classes with: that of the planner's sample, frozen with each plan.
//!
//! As in a class, a subject counts once for each value. The counts are kept as canonical texts, since codes do not outlive
//! the process; they are values of the data, sealed in the state and never shown, which is why no [`crate::anonymity::plan::Plan`] holds them.

use super::sample::Sample;
use crate::anonymity::lattice::coding::{coded, put_in_order};
use crate::anonymity::privacy::protection::{Protection, Reference};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{Code, Codebook, UNCOVERED};
use throng_core::values::digest::value_number;
use throng_core::values::subject::NO_SUBJECT;

/// The counts of one attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceCounts {
    /// Position in the schema.
    pub attribute: usize,
    /// Canonical texts with their distinct subjects, in the order of the texts.
    pub subjects: Vec<(String, u64)>,
}

/// What the sample says of the attributes that are compared with it.
pub fn count(protections: &[Protection], sample: &Sample, books: &[Codebook]) -> Vec<ReferenceCounts> {
    let of = |protection: &Protection| {
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

/// The counts as they are compared with; empty where a text is no value of the attribute any more, or the hierarchy cannot
/// be asked. Nothing is shown then.
pub fn resolve(counts: &ReferenceCounts, protection: &Protection, book: &mut Codebook) -> Reference {
    let mut known: BTreeMap<Code, u64> = BTreeMap::new();
    for (text, subjects) in &counts.subjects {
        known.insert(book.encode_canonical(text), *subjects);
    }
    if known.len() < counts.subjects.len() || known.contains_key(&UNCOVERED) {
        return Reference::default();
    }
    let mut codes: Vec<Code> = known.keys().copied().collect();
    put_in_order(book, &mut codes);
    let tree = match protection.needs_tree().then(|| coded(book, &codes)) {
        None => Vec::new(),
        Some(Ok(coded)) if coded.codes == codes => coded.domain.parents(),
        Some(_) => return Reference::default(),
    };
    let number = |&code: &Code| value_number(book.digests(0)[code as usize]);
    Reference {
        values: codes.iter().map(number).collect(),
        subjects: codes.iter().map(|code| known[code]).collect(),
        tree,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymity::privacy::protection::{GroundDistance, Requirement};
    use throng_core::values::codebook::books_of;
    use throng_core::values::table::Batch;

    const SCHEMA: &str = "name = \"t\"\n[[attribute]]\nname = \"ill\"\ntype = \"string\"\nrole = \"sensitive\"\n\
        [attribute.hierarchy]\nkind = \"tree\"\n[attribute.hierarchy.tree]\n\"mild\" = [\"flu\", \"cold\"]\n\"grave\" = [\"hiv\"]\n";

    fn book() -> Codebook {
        books_of(SCHEMA, 100).remove(0)
    }

    #[test]
    fn people_count_once_for_each_value_and_another_process_reads_the_same() {
        let mut books = vec![book()];
        let mut sample = Sample::new(1, 100, 100);
        let mut batch = Batch::new(1);
        // Somebody with two values, somebody who repeats one, nobody, and a value that the hierarchy misses.
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
        let closeness = Requirement::Closeness { t: 0.2, ground: GroundDistance::Hierarchical };
        let protection = Protection { attribute: 0, requirements: vec![closeness], colluders: 0 };
        let counts = count(std::slice::from_ref(&protection), &sample, &books);
        let texts = [("\"flu\"", 2), ("\"hiv\"", 1), ("null", 1)];
        assert_eq!(counts.len(), 1);
        assert_eq!(counts[0].subjects, texts.map(|(text, n)| (text.to_owned(), n)));
        let resolved = resolve(&counts[0], &protection, &mut book());
        // What is missing comes first.
        assert_eq!((resolved.subjects, resolved.tree), (vec![1, 2, 1], vec![vec![0, 1, 2], vec![0, 0, 0]]));
        let number = |text: &str| value_number(books[0].coverage_of(text).unwrap());
        assert_eq!(resolved.values, ["null", "\"flu\"", "\"hiv\""].map(number));
        let diverse = Protection { attribute: 0, requirements: vec![Requirement::Distinct { l: 2 }], colluders: 0 };
        assert!(count(&[diverse], &sample, &books).is_empty());
        let strange = ReferenceCounts { attribute: 0, subjects: vec![("\"odd\"".to_owned(), 3)] };
        assert_eq!(resolve(&strange, &protection, &mut book()), Reference::default());
    }
}
