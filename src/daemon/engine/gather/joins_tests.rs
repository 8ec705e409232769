use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use throng_core::values::codebook::{ABSENT, Code, NULL};
use throng_core::values::digest::DigestKey;
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::schema::Schema;

const SCHEMA: &str = "name = \"t\"\n[[attribute]]\nname = \"id\"\ntype = \"string\"\nrole = \"subject\"\n\
    [[attribute]]\nname = \"own\"\ntype = \"string\"\n\
    [[attribute]]\nname = \"age\"\ntype = \"integer\"\nfrom = \"join:p\"\n\
    [attribute.hierarchy]\nkind = \"intervals\"\nmin = 0\nmax = 9\nwidths = [5]\n\
    [[attribute]]\nname = \"sex\"\ntype = \"string\"\nfrom = \"join:p\"\n";

fn books() -> Vec<Codebook> {
    let schema = Schema::parse(SCHEMA, "t.toml", Path::new("")).expect("a schema");
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &DigestKey([7; 32]), 1_000).expect("a codebook");
    schema.attributes.iter().map(book).collect()
}

fn joins(most: usize, kept: Vec<ProfileChange>) -> ProfileJoins {
    let settings = JoinSettings { name: "p".into(), attributes: vec![2, 3], max_people: most, follows_topic: true };
    ProfileJoins::new(&[settings], kept)
}

fn batch(subjects: &[u64], code: Code) -> CodeBatch {
    let coordinate = RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 };
    CodeBatch {
        columns: vec![vec![code; subjects.len()]; 4],
        subjects: subjects.to_vec(),
        coordinates: vec![coordinate; subjects.len()],
    }
}

fn kept(person: u64, cells: &str) -> ProfileChange {
    ProfileChange { join: 0, person, cells: Some(cells.into()) }
}

proptest! {
    #[test]
    fn join_sets_cells_of_the_subject_profile(
        known in proptest::collection::btree_map(0_u64..6, (0_u8..12, 0_u8..3), 0..6),
        subjects in proptest::collection::vec(0_u64..8, 0..20),
        waiting in any::<bool>(),
        needed in any::<bool>(),
    ) {
        let age = |age: u8| if age == 11 { "null".to_owned() } else { age.to_string() };
        let sex = |sex: u8| ["\"f\"", "\"m\"", "null"][usize::from(sex)];
        let text: BTreeMap<u64, (String, &str)> = known.iter().map(|(p, (a, s))| (*p, (age(*a), sex(*s)))).collect();
        let joins = joins(100, text.iter().map(|(p, (a, s))| kept(*p, &format!("{a}\n{s}"))).collect());
        let mut books = books();
        let mut rows = batch(&subjects, if needed { NULL } else { ABSENT });
        let met = joins.join(&mut rows, &mut books, waiting);
        let mut unjoined = 0;
        for (row, subject) in subjects.iter().enumerate() {
            unjoined += u64::from(!text.contains_key(subject));
            let (age, sex) = text.get(subject).map_or(("null", "null"), |(a, s)| (a.as_str(), *s));
            let age = if age == "10" { "\"*\"" } else { age };
            let shown = |a: usize| books[a].canonical(rows.columns[a][row]).to_owned();
            let expected = if waiting && !needed { ("", "") } else { (age, sex) };
            let shown = (shown(2), shown(3));
            prop_assert_eq!((shown.0.as_str(), shown.1.as_str()), expected);
            prop_assert_eq!(rows.columns[1][row], if needed { NULL } else { ABSENT }, "the record's own");
        }
        prop_assert_eq!(met.unjoined, unjoined);
    }
}

#[test]
fn initial_profiles_replace_stored_ones_and_list_changes() {
    let mut joins = joins(2, vec![kept(1, "1\nnull"), kept(2, "2\nnull"), kept(3, "3\nnull")]);
    assert!(!joins.is_loaded() && joins.profiles() == 3 && joins.next_changes().is_none());
    let mut table = ProfileTable::new(2);
    table.set(2, Some("2\n\"f\"".into()));
    table.set(3, Some("3\nnull".into()));
    joins.joined[0].initial_profiles = Some(InitialProfiles { table, differ: None });
    let mut changes = joins.next_changes().expect("changes");
    changes.sort_by_key(|change| change.person);
    assert_eq!(changes, [ProfileChange { join: 0, person: 1, cells: None }, kept(2, "2\n\"f\"")]);
    assert!(joins.next_changes().is_none() && joins.is_loaded() && joins.profiles() == 2);
    let mut rows = batch(&[2, 1], NULL);
    assert_eq!(joins.join(&mut rows, &mut books(), false).unjoined, 1);
}

#[test]
fn profile_reader_without_feed_is_an_error() {
    let mut joins = joins(2, Vec::new());
    assert!(matches!(joins.wait_for_initial(Duration::ZERO), Err(ProfileReadError::ReaderEnded { .. })));
}

/// More subjects than one write can contain: each is written once.
#[test]
fn initial_profiles_above_write_limit_are_applied_in_chunks() {
    let people = 2 * MAX_PROFILES_PER_WRITE + 7;
    let (many, room) = (people as u64, 2 * people);
    let mut joins = joins(room, (0..many).map(|person| kept(person, "1\nnull")).collect());
    let mut table = ProfileTable::new(room);
    for person in 5..many + 5 {
        table.set(person, Some(if person % 2 == 0 { "1\nnull" } else { "2\nnull" }.into()));
    }
    let expected = table.clone();
    joins.joined[0].initial_profiles = Some(InitialProfiles { table, differ: None });
    let mut written = ProfileTable::new(room);
    (0..many).for_each(|person| written.restore(person, "1\nnull".into()));
    let mut pieces = 0;
    while let Some(changes) = joins.next_changes() {
        assert!(changes.len() <= MAX_PROFILES_PER_WRITE && changes.is_sorted_by_key(|change| change.person));
        for change in changes {
            assert_eq!(
                written.set(change.person, change.cells),
                crate::io::profiles::ProfileSetOutcome::Changed,
                "once"
            );
        }
        assert_eq!(joins.joined[0].table.differing(&written).count(), 0);
        pieces += 1;
    }
    assert!(pieces > 1 && joins.is_loaded());
    assert_eq!(written.differing(&expected).count(), 0);
}
