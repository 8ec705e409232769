//! What handing records on gains, on synthetic records.

use crate::scene::{Account, Instance, Scene, together, wait};
use crate::support::binary::Place;
use crate::support::instances::wearable;
use crate::support::kafka::{Broker, Record};
use crate::support::schemas::schema;
use std::collections::BTreeMap;

/// A code that leaves as it is or not at all. Of what has a hierarchy some coarser value almost always finds a crowd, and nothing is handed on.
const SCHEMA: &str =
    schema!("codes"; more "[[attribute]]\nname = \"user_id\"\ntype = \"string\"\nrole = \"subject\"\n", text "zip");

/// Records in all.
const RECORDS: usize = 4_000;
const PARTITIONS: i32 = 4;
/// Records that come at once.
const PART: usize = 4_000;

/// The same records for one instance, and for two and four with and without the topic: what was suppressed, and what went through the topic. They come
/// in parts, as a stream does whose batches close by time: a part is a batch of one instance, or divided among the batches of several.
#[test]
#[ignore = "minutes, and figures for docs/scale.md instead of an answer"]
fn what_handing_on_gains_on_wearable() {
    let broker = Broker::shared().expect("a broker");
    let records = wearable(RECORDS, PARTITIONS);
    for (instances, residue) in [(1, false), (2, false), (2, true), (4, false), (4, true)] {
        run(&Scene::of_partitions(broker, PARTITIONS), instances, residue, &records);
    }
}

fn run(scene: &Scene, instances: usize, residue: bool, records: &[Record]) {
    const NAMES: [&str; 4] = ["one", "two", "three", "four"];
    let instance = |name: &&'static str| Instance { place: Place::new(SCHEMA, ""), process: None, name };
    let mut all: Vec<Instance> = NAMES[..instances].iter().map(instance).collect();
    for instance in &mut all {
        let more = [
            ("BATCH__MAX_RECORDS", "10000"),
            ("BATCH__MAX_WAIT", "10s"),
            ("BATCH__MAX_AGE", "20s"),
            ("PRIVACY__K", "5"),
            ("PRIVACY__BATCH_CROWD", "5"),
            ("SINK__RESIDUE_TOPIC", if residue { scene.residue.as_str() } else { "" }),
            ("TELEMETRY__LOG_LEVEL", "warn"),
        ];
        scene.start(instance, &more, "");
    }
    let instances: Vec<&Instance> = all.iter().collect();
    let assigned = |instance: &&Instance| instance.metric("throng_partitions_assigned");
    let partitions = f64::from(PARTITIONS + i32::from(residue));
    wait("everybody has a partition", &instances, || instances.iter().map(assigned).sum::<f64>() == partitions);
    for (number, part) in (1..).zip(records.chunks(PART)) {
        scene.broker.produce_records(&scene.raw, part);
        wait("the part is settled", &instances, || {
            let Account { released, suppressed, .. } = together(&instances);
            released + suppressed == number * PART as u64
        });
    }
    let account = together(&instances);
    let mut batches: BTreeMap<Option<i64>, usize> = BTreeMap::new();
    scene.broker.read_committed(&scene.out).iter().for_each(|line| *batches.entry(line.timestamp).or_default() += 1);
    println!("  lines by batch: {batches:?}");
    println!("{} instance(s), residue {residue}: {account:?}", all.len());
    all.iter_mut().for_each(Instance::end);
}
