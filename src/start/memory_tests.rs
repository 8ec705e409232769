//! A limit is divided without a rest, lowers limits and raises none, and the least that is named does.

use super::*;
use crate::start::schema::load_schema;
use proptest::prelude::*;
use std::sync::Arc;

fn config(change: impl FnOnce(&mut Config)) -> (Config, Arc<Schema>) {
    let mut config = Config::default();
    config.schema.file = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/wearable.toml").into();
    config.source.topics = vec!["raw".to_owned()];
    config.sink.topic = "out".to_owned();
    change(&mut config);
    let schema = load_schema(&config).unwrap_or_else(|problems| panic!("{problems:?}"));
    (config, schema)
}

#[test]
fn without_a_limit_nothing_is_lowered() {
    let (config, schema) = config(|_| {});
    assert_eq!(division(&config, &schema), None);
    let bounds = bounds(&config, &schema);
    assert_eq!((bounds.max_budget_entries, bounds.value_bytes, bounds.dictionary_bytes), (2_000_000, None, None));
    assert_eq!(closing(&config, &schema), Limits::of(&config));
    assert_eq!(queues(&config), None);
    assert!(problems(&config, &schema, "t.toml").is_empty());
}

#[test]
fn a_limit_that_is_too_small_names_the_least_that_does() {
    let (mut config, schema) = config(|c| c.process.memory_limit = Some(64 << 20));
    let problems = problems(&config, &schema, "t.toml");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].key == "process.memory_limit" && problems[0].remedy.starts_with("give at least "));
    let named = problems[0].remedy.trim_start_matches("give at least ").split(',').next().expect("a size");
    let least = crate::config::parse_size(named).expect("a size");
    config.process.memory_limit = Some(least);
    assert!(division(&config, &schema).is_some() && super::problems(&config, &schema, "t.toml").is_empty());
    config.process.memory_limit = Some(least - MIB);
    assert!(division(&config, &schema).is_none());
    assert!(least < 1 << 30, "the configuration as it comes runs in {least} bytes");
}

#[test]
fn what_an_operator_has_named_of_the_client_stays() {
    let (config, _) = config(|c| {
        c.process.memory_limit = Some(1 << 30);
        c.source.librdkafka.0.insert("queued.max.messages.kbytes".to_owned(), "65536".to_owned());
    });
    assert_eq!(queues(&config).map(|queues| queues.fetched_kib), Some(65_536));
}

#[test]
fn more_memory_lowers_no_limit() {
    let (mut config, schema) = config(|_| {});
    let mut before: Option<Bounds> = None;
    for mib in (512..16_384).step_by(256) {
        config.process.memory_limit = Some(mib * MIB);
        let Some(Division { bounds, .. }) = division(&config, &schema) else { continue };
        if let Some(before) = before {
            assert!(bounds.max_budget_entries >= before.max_budget_entries, "at {mib} MiB");
            assert!(bounds.max_edges >= before.max_edges && bounds.max_batch_bytes >= before.max_batch_bytes);
            assert!(bounds.dictionary_bytes >= before.dictionary_bytes, "at {mib} MiB");
        }
        before = Some(bounds);
    }
    let largest = before.expect("some do");
    assert_eq!(
        (largest.max_budget_entries, largest.max_edges, largest.max_batch_bytes),
        (2_000_000, 2_000_000, 64 << 20)
    );
}

proptest! {
    #[test]
    fn parts_are_the_limit_and_no_limit_is_raised(
        mib in 1_u64..8_192,
        k in 2_usize..40,
        window in 1_000_usize..400_000,
        classes in 1_usize..20_000_000,
        batch in 1_u64..256,
        tenure in 0_u32..2,
    ) {
        let (config, schema) = config(|c| {
            c.process.memory_limit = Some(mib * MIB);
            c.privacy.k = k;
            c.plan.window_records = window;
            c.privacy.min_tenure = tenure;
            c.state.max_budget_entries = classes;
            c.batch.max_bytes = batch * MIB;
        });
        let Some(division) = division(&config, &schema) else {
            prop_assert_eq!(problems(&config, &schema, "t.toml").len(), 1);
            return Ok(());
        };
        let together: u64 = division.parts.iter().map(|(_, bytes)| bytes).sum();
        prop_assert!(together.abs_diff(mib * MIB) <= 8, "{} of {}", together, mib * MIB);
        let (own, asked) = (&division.bounds, unlimited(&config));
        prop_assert!(own.max_budget_entries <= asked.max_budget_entries);
        prop_assert!(own.max_said_lines <= asked.max_said_lines && own.max_waiting_lines <= asked.max_waiting_lines);
        prop_assert!(own.max_edges <= asked.max_edges && own.max_batch_bytes <= asked.max_batch_bytes);
        prop_assert!(own.max_batch_bytes >= config.source.max_record_bytes);
        prop_assert!(own.max_said_lines > 0 && own.max_waiting_lines > 0, "a line can wait");
    }
}
