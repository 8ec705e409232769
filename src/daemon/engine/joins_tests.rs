use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use throng_core::values::codebook::{ABSENT, Code, NULL};
use throng_core::values::digest::DigestKey;
use throng_core::values::raw::Coordinate;
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

fn joins(most: usize, kept: Vec<ProfileChange>) -> Joins {
    let settings = JoinSettings { name: "p".into(), attributes: vec![2, 3], max_people: most, tails: true };
    Joins::new(&[settings], kept)
}

/// Rows of these subjects whose cells of every attribute have `code`.
fn batch(subjects: &[u64], code: Code) -> Batch {
    let coordinate = Coordinate { topic: 0, partition: 0, offset: 0, element: 0 };
    Batch {
        columns: vec![vec![code; subjects.len()]; 4],
        subjects: subjects.to_vec(),
        coordinates: vec![coordinate; subjects.len()],
    }
}

fn kept(person: u64, cells: &str) -> ProfileChange {
    ProfileChange { join: 0, person, cells: Some(cells.into()) }
}

proptest! {
    /// Every row by itself, against a plain map.
    #[test]
    fn cells_are_those_of_the_subjects_profile(
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
            // Past the end of its hierarchy.
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
fn profiles_that_were_read_take_the_place_of_those_kept_and_say_what_is_to_be_written() {
    let mut joins = joins(2, vec![kept(1, "1\nnull"), kept(2, "2\nnull"), kept(3, "3\nnull")]);
    assert!(!joins.is_whole() && joins.profiles() == 3 && joins.take_over().is_none());
    let mut table = Table::new(2);
    table.set(2, Some("2\n\"f\"".into()));
    table.set(3, Some("3\nnull".into()));
    joins.joined[0].coming = Some(Coming { table, differ: None });
    let mut changes = joins.take_over().expect("changes");
    changes.sort_by_key(|change| change.person);
    assert_eq!(changes, [ProfileChange { join: 0, person: 1, cells: None }, kept(2, "2\n\"f\"")]);
    assert!(joins.take_over().is_none() && joins.is_whole() && joins.profiles() == 2);
    let mut rows = batch(&[2, 1], NULL);
    assert_eq!(joins.join(&mut rows, &mut books(), false).unjoined, 1);
}

#[test]
fn a_reader_that_has_ended_without_a_word_is_an_error() {
    let mut joins = joins(2, Vec::new());
    assert!(matches!(joins.is_read(Duration::ZERO), Err(ProfilesError::Gone { .. })));
}

/// More people than are written at a time: each is written once, and what is known meanwhile is what has been written.
#[test]
fn many_profiles_are_taken_over_piece_by_piece() {
    let people = 2 * WRITTEN_AT_A_TIME + 7;
    let (many, room) = (people as u64, 2 * people);
    let mut joins = joins(room, (0..many).map(|person| kept(person, "1\nnull")).collect());
    let mut table = Table::new(room);
    for person in 5..many + 5 {
        table.set(person, Some(if person % 2 == 0 { "1\nnull" } else { "2\nnull" }.into()));
    }
    let expected = table.clone();
    joins.joined[0].coming = Some(Coming { table, differ: None });
    let mut written = Table::new(room);
    (0..many).for_each(|person| written.restore(person, "1\nnull".into()));
    let mut pieces = 0;
    while let Some(changes) = joins.take_over() {
        assert!(changes.len() <= WRITTEN_AT_A_TIME && changes.is_sorted_by_key(|change| change.person));
        for change in changes {
            assert_eq!(written.set(change.person, change.cells), crate::io::profiles::Taken::Changed, "once");
        }
        assert_eq!(joins.joined[0].table.differing(&written).count(), 0);
        pieces += 1;
    }
    assert!(pieces > 1 && joins.is_whole());
    assert_eq!(written.differing(&expected).count(), 0);
}
