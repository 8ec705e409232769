//! Whatever somebody writes to the topic: it is a dead letter by a reason, and nothing leaves by it.

use crate::scene::{K, Scene, people, wait};
use crate::support::kafka::{Broker, Record};

#[test]
fn threat_39_what_is_forged_or_shown_again_is_refused_by_name() {
    let Some(broker) = Broker::shared() else { return };
    let scene = Scene::new(broker);
    let mut one = scene.instance("one");
    let more = [("BATCH__MAX_AGE", "2s")];
    scene.start(&mut one, &more, "");
    let mut visits = people("Bern", 0, K);
    visits.extend(people("Chur", 0, K - 1));
    scene.visits(0, &visits);
    let handed = (K - 1) as u64;
    wait("what was handed on is settled", &[&one], || one.account().consumed == K as u64 + 2 * handed);
    assert_eq!((one.account().forwarded, one.account().suppressed), (handed, handed));
    let before = scene.released();
    let good: Vec<Vec<u8>> =
        broker.read_committed(&scene.residue).into_iter().filter_map(|stored| stored.payload).collect();
    let mut flipped = good[0].clone();
    *flipped.last_mut().expect("bytes") ^= 1;
    let cut = good[0][..good[0].len() - 1].to_vec();
    let mut renamed = good[0].clone();
    renamed[4] ^= 1;
    let mut later = good[0].clone();
    later[27] ^= 0x40;
    let forged =
        [b"nonsense".to_vec(), flipped, cut, renamed, later, vec![7; 600_000], good[0].clone(), good[1].clone()];
    let many = forged.len() as u64 + 1;
    let write = |payloads: Vec<Option<Vec<u8>>>| {
        let record = |payload| Record { partition: Some(0), payload, ..Record::default() };
        broker.produce_records(&scene.residue, &payloads.into_iter().map(record).collect::<Vec<_>>());
    };
    write(forged.into_iter().map(Some).chain([None]).collect());
    let consumed = one.account().consumed;
    scene.visits(0, &people("Lugano", 0, K));
    wait("all is consumed", &[&one], || one.account().consumed >= consumed + many + K as u64);
    let refused = scene.refused();
    assert_eq!((refused["residue_foreign"], refused["oversized"], refused["residue_again"]), (5, 1, 2), "{refused:?}");
    assert_eq!(one.account().dropped, 1, "a tombstone");
    // The next owner of the partition knows what was taken up: the offsets say it.
    one.end();
    let mut two = scene.instance("two");
    scene.start(&mut two, &more, "");
    write(good.into_iter().map(Some).collect());
    scene.visits(0, &people("Genf", 0, K));
    wait("all is consumed", &[&two], || two.account().consumed == 2 + K as u64);
    assert_eq!(scene.refused()["residue_again"], 4, "the next owner takes it up again");
    assert_eq!(two.account().released, K as u64);
    two.end();
    let after = scene.released();
    assert!(before.iter().all(|(city, lines)| after[city] == *lines) && !after.contains_key("Chur"), "{after:?}");
}
