//! How long an instance takes that comes up without its directory.

use crate::scene::{MADE, Scene};
use crate::support::daemon::{LOT, finished};
use crate::support::kafka::{Broker, Record};
use std::time::Instant;

/// Records, of as many people: two entries of the ledger each.
const RECORDS: usize = 500_000;

/// Kills an instance with a ledger of a million entries, removes its directory, and waits for its next batch.
#[test]
#[ignore = "minutes, and figures for docs/scale.md instead of an answer"]
fn how_long_a_million_entries_take() {
    let broker = Broker::shared().expect("a broker");
    let scene = Scene::new(broker, 1, 0);
    scene.stage.configure("only", 2, 20_000, "1s");
    let record = |n: usize| Record {
        payload: Some(
            format!("{{\"person\":\"p{n}\",\"lot\":\"L{}\",\"age\":{},\"ward\":\"tent\"}}", n / LOT, n % 100)
                .into_bytes(),
        ),
        partition: Some(0),
        ..Record::default()
    };
    for from in (0..RECORDS).step_by(50_000) {
        broker.produce_records(&scene.stage.raw, &(from..from + 50_000).map(record).collect::<Vec<_>>());
    }
    let since = Instant::now();
    // Longer than a test waits otherwise.
    let mut daemon = scene.start(None);
    while scene.stage.consumed() < RECORDS as i64 {
        assert!(daemon.ended().is_none(), "{}", daemon.said());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    println!("{RECORDS} records in {:.1} s", since.elapsed().as_secs_f64());
    daemon.kill();
    for round in 0..3 {
        scene.lose();
        let from = RECORDS + round * 1000;
        broker.produce_records(&scene.stage.raw, &(from..from + 1000).map(record).collect::<Vec<_>>());
        let since = Instant::now();
        let mut daemon = scene.start(None);
        scene.says(&mut daemon, MADE);
        let made = since.elapsed().as_secs_f64();
        while scene.stage.consumed() < (from + 1000) as i64 {
            assert!(daemon.ended().is_none(), "{}", daemon.said());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        println!("made after {made:.1} s, the next batch committed after {:.1} s", since.elapsed().as_secs_f64());
        println!("{}", daemon.said().lines().filter(|line| line.contains("state")).collect::<Vec<_>>().join("\n"));
        daemon.kill();
    }
    let mut daemon = scene.consume(RECORDS + 3000);
    finished(&scene.stage, &mut daemon, RECORDS + 3000);
}
