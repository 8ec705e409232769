//! What a shared ledger gains, and what it costs, on synthetic records.

use crate::scene::{Instance, Scene, TOLD};
use crate::support::binary::Place;
use crate::support::instances::wearable;
use crate::support::kafka::{Broker, Record};
use std::time::Instant;

/// Records in all.
const RECORDS: usize = 40_000;
const PARTITIONS: i32 = 4;

/// The same records for one instance with batches of 10,000 and for two and four with batches of 2,500 each, with and without a ledger:
/// what was suppressed, mean loss, lines, seconds, and what went through the topic.
#[test]
#[ignore = "minutes, and figures for docs/scale.md instead of an answer"]
fn what_a_shared_ledger_gains_on_wearable() {
    let broker = Broker::shared().expect("a broker");
    let records = wearable(RECORDS, PARTITIONS);
    for (instances, batch, ledger) in
        [(1, "10000", false), (2, "2500", false), (2, "2500", true), (4, "2500", false), (4, "2500", true)]
    {
        run(&Scene::of_partitions(broker, PARTITIONS), instances, batch, ledger, &records);
    }
}

fn run(scene: &Scene, instances: usize, batch: &str, ledger: bool, records: &[Record]) {
    const NAMES: [&str; 4] = ["one", "two", "three", "four"];
    let shipped = include_str!("../../config/wearable.toml");
    let groups =
        &shipped[shipped.find("[[group]]").expect("groups")..shipped.find("# What `throng check`").expect("tests")];
    let mut all: Vec<Instance> = NAMES[..instances]
        .iter()
        .map(|name| {
            let place = Place::new(include_str!("../../schemas/wearable.toml"), groups);
            Instance { place, process: None, name }
        })
        .collect();
    scene.broker.produce_records(&scene.raw, records);
    let since = Instant::now();
    for instance in &mut all {
        let more = [
            ("BATCH__MAX_RECORDS", batch),
            ("BATCH__MAX_WAIT", "20s"),
            ("PRIVACY__K", "5"),
            ("PRIVACY__BATCH_CROWD", "0"),
            ("SINK__LEDGER_TOPIC", if ledger { scene.ledger.as_str() } else { "" }),
            ("TELEMETRY__LOG_LEVEL", "warn"),
        ];
        scene.start(instance, &more, "");
    }
    let consumed = || all.iter().map(Instance::consumed).sum::<u64>();
    while consumed() < records.len() as u64 {
        assert!(since.elapsed().as_secs() < 600, "{} records", consumed());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let (mut loss, mut weight, mut suppressed, mut told, mut bytes) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for instance in &all {
        let page = instance.process().get("/status.json").expect("a page").1;
        let status: serde_json::Value = serde_json::from_str(&page).expect("JSON");
        let released = status["totals"]["released"].as_f64().unwrap_or_default();
        loss += status["mean_loss"].as_f64().unwrap_or_default() * released;
        weight += released;
        suppressed += status["totals"]["suppressed"].as_f64().unwrap_or_default();
        if ledger {
            told += instance.metric(TOLD);
            bytes += instance.metric("throng_shared_ledger_bytes_total{direction=\"out\"}");
        }
    }
    let lines = scene.broker.read_committed(&scene.out).len();
    println!(
        "{instances} instance(s), batches of {batch}, ledger {ledger}: loss {:.4}, suppressed {suppressed}, lines {lines}, {:.1} s, {told} records, {bytes} bytes",
        loss / weight.max(1.0),
        since.elapsed().as_secs_f64(),
    );
    all.iter_mut().for_each(Instance::end);
}
