//! A limit is divided completely and raises no limit; the suggested minimum is sufficient.

use super::*;
use crate::start::schema_loading::load_schema;
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
fn without_memory_limit_bounds_are_unchanged() {
    let (config, schema) = config(|_| {});
    assert_eq!(memory_division(&config, &schema), None);
    let bounds = memory_bounds(&config, &schema);
    assert_eq!((bounds.max_budget_entries, bounds.value_bytes, bounds.dictionary_bytes), (2_000_000, None, None));
    assert_eq!(batch_limits(&config, &schema), configured_limits(&config));
    let limits = usage_limits(&config, &schema);
    assert_eq!((limits.batch_records, limits.supporters, limits.memory_bytes), (10_000, 2_000_000, 0));
    assert_eq!((limits.said_lines, limits.profiles), (2_000_000, 0));
    assert_eq!(client_queue_sizes(&config), None);
    assert!(problems(&config, &schema, "t.toml").is_empty());
}

#[test]
fn too_small_memory_limit_names_sufficient_minimum() {
    let (mut config, schema) = config(|c| c.process.memory_limit = Some(64 << 20));
    let problems = problems(&config, &schema, "t.toml");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].key == "process.memory_limit" && problems[0].remedy.starts_with("give at least "));
    let named = problems[0].remedy.trim_start_matches("give at least ").split(',').next().expect("a size");
    let least = crate::config::parse_size(named).expect("a size");
    config.process.memory_limit = Some(least);
    assert!(memory_division(&config, &schema).is_some() && super::problems(&config, &schema, "t.toml").is_empty());
    config.process.memory_limit = Some(least - MIB);
    assert!(memory_division(&config, &schema).is_none());
    assert!(least < 1 << 30, "the configuration as it comes runs in {least} bytes");
}

#[test]
fn configured_client_queue_size_is_kept() {
    let (config, _) = config(|c| {
        c.process.memory_limit = Some(1 << 30);
        c.source.librdkafka.0.insert("queued.max.messages.kbytes".to_owned(), "65536".to_owned());
    });
    assert_eq!(client_queue_sizes(&config).map(|queues| queues.fetched_kib), Some(65_536));
}

#[test]
fn larger_memory_limit_lowers_no_bound() {
    let (mut config, schema) = config(|_| {});
    let mut before: Option<MemoryBounds> = None;
    for mib in (512..16_384).step_by(256) {
        config.process.memory_limit = Some(mib * MIB);
        let Some(MemoryDivision { bounds, .. }) = memory_division(&config, &schema) else { continue };
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
    fn memory_parts_sum_to_limit_and_no_bound_is_raised(
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
        let Some(division) = memory_division(&config, &schema) else {
            prop_assert_eq!(problems(&config, &schema, "t.toml").len(), 1);
            return Ok(());
        };
        let together: u64 = division.parts.iter().map(|(_, bytes)| bytes).sum();
        prop_assert!(together.abs_diff(mib * MIB) <= 8, "{} of {}", together, mib * MIB);
        let (own, asked) = (&division.bounds, configured_bounds(&config));
        prop_assert!(own.max_budget_entries <= asked.max_budget_entries);
        prop_assert!(own.max_said_lines <= asked.max_said_lines && own.max_waiting_lines <= asked.max_waiting_lines);
        prop_assert!(own.max_edges <= asked.max_edges && own.max_batch_bytes <= asked.max_batch_bytes);
        prop_assert!(own.max_batch_bytes >= config.source.max_record_bytes);
        prop_assert!(own.max_said_lines > 0 && own.max_waiting_lines > 0, "a line can wait");
    }
}
