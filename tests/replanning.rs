//! Tests plans that follow a changing stream, with kills during the search and adoption of a plan.
#![cfg(feature = "failpoints")]

use crate::support;

use std::fs;

use support::daemon::{Dice, LOT, Stage, conserved, sound, state};
use support::kafka::{Record, TestCluster};

const BATCH: usize = 40;
const TOTAL: usize = 40 * BATCH;

fn shifting(seed: u64) -> Vec<Record> {
    let mut dice = Dice::new(seed);
    let payload = |number: usize, dice: &mut Dice| {
        let (ages, wards) = if number < TOTAL / 2 {
            ([20, 21, 22, 23], ["north", "south", "north", "tent"])
        } else {
            ([70, 71, 20, 75], ["east", "west", "east", "south"])
        };
        let (age, ward) = (ages[dice.roll(4) as usize], wards[dice.roll(4) as usize]);
        format!("{{\"person\":\"p{number}\",\"lot\":\"L{}\",\"age\":{age},\"ward\":\"{ward}\"}}", number / LOT)
            .into_bytes()
    };
    let record = |number| Record { partition: Some(0), payload: Some(payload(number, &mut dice)), ..Record::default() };
    (0..TOTAL).map(record).collect()
}

fn stage(broker: &TestCluster, seed: u64, handover: usize) -> Stage<'_> {
    let stage = Stage::new(broker, 1).with_static_membership();
    let file = stage.configure("only", 0, BATCH, "1h");
    let plan = "[plan]\nwindow_records = 320\n";
    fs::write(file.with_extension("tuning"), format!("handover_batches = {handover}")).expect("a file");
    let text = fs::read_to_string(&file).expect("the configuration").replace("[plan]\n", plan);
    fs::write(file, text).expect("the configuration");
    broker.produce_records(&stage.raw, &shifting(seed));
    stage
}

fn finish(stage: &Stage) -> (Vec<String>, String) {
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(TOTAL, &mut [&mut daemon]);
    daemon.stop();
    assert_eq!(conserved(&stage.state("only")), TOTAL as u64);
    let released: Vec<String> = stage.released().into_values().flatten().collect();
    assert!(sound(released.iter()) > TOTAL);
    (released, daemon.said())
}

#[test]
fn drift_replanning_with_kills_keeps_output_identical() {
    let Some(broker) = TestCluster::shared() else { return };
    let calm = stage(broker, 3, 4);
    let (undisturbed, said) = finish(&calm);
    let drifts = said.matches("why=\"drift\"").count();
    assert!(drifts >= 1, "the stream has drifted and no plan was made for it: {said}");
    let plans = said.matches("plan adopted").count();

    let stage = stage(broker, 3, 4);
    // Each start adopts the plan at which the previous process was killed, and is killed at the next one.
    for _ in 1..plans {
        stage.start("only", Some("plan-adopted=1*off->return")).crashes("plan-adopted");
    }
    // The last plan is still pending.
    stage.start("only", Some("planning=return")).crashes("planning");
    let (released, _) = finish(&stage);
    assert!(released == undisturbed, "the disturbed run has released something else");
    let (calm, disturbed) = (state(&calm.state("only")), state(&stage.state("only")));
    assert_eq!(calm.plan, disturbed.plan);
    assert_eq!(calm.baseline, disturbed.baseline);
    let rows = |recovered: &throng::daemon::state::store::RecoveredState| {
        recovered.rows.iter().map(|(_, r)| r.clone()).collect::<Vec<_>>()
    };
    assert_eq!(rows(&calm), rows(&disturbed), "the rows of the window differ");
}

#[test]
fn drift_without_handover_replans_between_batches() {
    let Some(broker) = TestCluster::shared() else { return };
    let (_, said) = finish(&stage(broker, 4, 0));
    assert!(said.contains("why=\"drift\""), "{said}");
    assert!(!said.contains("failed or timed out"), "{said}");
}
