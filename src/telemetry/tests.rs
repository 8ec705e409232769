//! Conservation, a constant number of series, and a valid exposition.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use proptest::prelude::*;

use super::labels::QidSize;
use super::*;

fn telemetry() -> Telemetry {
    Telemetry::new(5, &["person".into(), "signals".into()]).with_attribute_series(&["age", "zip"])
}

fn series(text: &str) -> Vec<String> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.rsplit_once(' ').map(|(name, _)| name.to_owned())).collect()
}

fn sample(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')));
    line.unwrap_or_else(|| panic!("no sample {name}")).parse().expect("a number")
}

fn outcome(text: &str, outcome: &str) -> f64 {
    sample(text, &format!("throng_records_total{{outcome=\"{outcome}\"}}"))
}

/// Conserves records for any numbers: `shares` divide them.
fn report(consumed: u64, shares: [u64; 4], was_held: u64) -> BatchReport {
    let treated = consumed + was_held;
    let mut left = treated;
    let mut take = |share: u64| {
        let taken = left * share / 100;
        left -= taken;
        taken
    };
    let (released, suppressed, dead, dropped) = (take(shares[0]), take(shares[1]), take(shares[2]), take(shares[3]));
    BatchReport {
        records: treated,
        consumed,
        released,
        suppressed: [(SuppressionReason::Quiet, suppressed)].into_iter().collect(),
        dead_lettered: [(RejectionReason::MalformedJson, dead / 2), (RejectionReason::WrongType, dead - dead / 2)]
            .into_iter()
            .collect(),
        dropped,
        held: left,
        unknown_cells: dead,
        fragments_by_group: vec![released, released, released, 1],
        ..BatchReport::default()
    }
}

#[test]
fn start_time_is_the_time_before_the_first_scrape() {
    let telemetry = telemetry();
    let created = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock after 1970");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let started = sample(&telemetry.render(), "process_start_time_seconds");
    assert!(started <= created.as_secs_f64(), "{started} is later than {created:?}");
}

fn reports() -> impl Strategy<Value = Vec<(u64, [u64; 4])>> {
    prop::collection::vec((0u64..1_000, [0u64..100, 0u64..100, 0u64..100, 0u64..100]), 0..30)
}

fn everything_else(telemetry: &Telemetry, seed: u64) {
    let pick = |n: usize| usize::try_from(seed % n as u64).expect("small");
    BatchAborted { reason: AbortReason::ALL[pick(AbortReason::ALL.len())] }.emit(telemetry);
    LimitReached { limit: Limit::ALL[pick(Limit::ALL.len())] }.emit(telemetry);
    SourceLost { address: "broker:9092" }.emit(telemetry);
    let refusal = SecurityRefusal::ALL[pick(SecurityRefusal::ALL.len())];
    SourceRefused { refusal, message: "renew it" }.emit(telemetry);
    SourceConnected.emit(telemetry);
    PartitionsChanged { assigned: seed, revoked: seed / 2, lost: 1 }.emit(telemetry);
    PlanAdopted { version: seed, why: "interval", groups: 2, ladder_nodes: seed, static_groups: seed, seconds: 0.5 }
        .emit(telemetry);
    PlannerFailed.emit(telemetry);
    let involvement = vec![("age".to_owned(), 1.0), ("zip".to_owned(), 0.5)];
    EvidenceGathered { plan: seed, by_size: vec![0; pick(12)], involvement, ..EvidenceGathered::default() }
        .emit(telemetry);
    DeviceUsed { held_bytes: seed, launches: 1, fallbacks: seed % 2, lost: true, ..DeviceUsed::default() }
        .emit(telemetry);
    VerificationRefused { violations: seed }.emit(telemetry);
    StateRecovered { sequence: seed, deltas: 1, seconds: 0.1, bytes: seed }.emit(telemetry);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_are_conserved_across_scrapes_and_restarts(batches in reports(), restart in 0usize..30) {
        let (mut telemetry, mut totals, mut held) = (telemetry(), RecordTotals::default(), 0);
        for (index, (consumed, shares)) in batches.into_iter().enumerate() {
            if index == restart {
                telemetry = self::telemetry();
                telemetry.restore(totals, 0);
            }
            let report = report(consumed, shares, held);
            held = report.held;
            totals.add(&report);
            BatchCommitted(report).emit(&telemetry);
            let text = telemetry.render();
            let gone: f64 = ["released", "suppressed", "dead_lettered", "dropped"].iter().map(|o| outcome(&text, o)).sum();
            let open = outcome(&text, "consumed") - gone - sample(&text, "throng_records_held");
            prop_assert!(open.abs() < 0.5, "{} records are unaccounted for", open);
            let status = telemetry.status();
            prop_assert!(status.conserved);
            prop_assert_eq!((status.totals, status.held), (totals, held));
        }
    }

    #[test]
    fn metric_series_count_stays_constant(batches in reports(), seed: u16) {
        let telemetry = telemetry();
        let at_start = series(&telemetry.render());
        for (consumed, shares) in batches {
            BatchCommitted(report(consumed, shares, 0)).emit(&telemetry);
            everything_else(&telemetry, u64::from(seed));
        }
        prop_assert_eq!(series(&telemetry.render()), at_start);
    }
}

#[test]
fn all_metric_series_start_at_zero() {
    let text = telemetry().render();
    for outcome in ["consumed", "released", "suppressed", "dead_lettered", "dropped"] {
        assert_eq!(self::outcome(&text, outcome).to_bits(), 0f64.to_bits(), "{outcome}");
    }
    for reason in RejectionReason::ALL {
        let name = format!("throng_dead_letters_total{{reason=\"{reason}\",stage=\"{}\"}}", stage_of(*reason));
        assert_eq!(sample(&text, &name).to_bits(), 0f64.to_bits());
    }
    for stage in Stage::ALL {
        assert!(text.contains(&format!("throng_batch_duration_seconds_count{{stage=\"{stage}\"}} 0")));
    }
    assert!(text.contains("throng_fragments_total{group=\"other\"} 0") && text.contains("throng_privacy_k 5"));
}

#[test]
fn batch_report_updates_metrics() {
    let telemetry = telemetry();
    let mut report = report(2000, [50, 50, 50, 0], 0);
    report.risk_before = RiskFigures { highest: 1.0, average: 0.5, share_below_k: 0.25 };
    report.seconds.add(Stage::Verify, 0.25);
    report.append_to_commit_seconds = Some(0.5);
    BatchCommitted(report).emit(&telemetry);
    let text = telemetry.render();
    for (name, value) in [
        ("throng_reidentification_risk{picture=\"before\",statistic=\"highest\"}", 1.0),
        ("throng_records_below_k_share{picture=\"before\"}", 0.25),
        ("throng_batch_duration_seconds_sum{stage=\"verify\"}", 0.25),
        ("throng_append_to_commit_seconds_count", 1.0),
        ("throng_suppressed_records_total{reason=\"quiet\"}", 500.0),
        ("throng_dead_letters_total{reason=\"malformed_json\",stage=\"decode\"}", 125.0),
        ("throng_dead_letters_total{reason=\"wrong_type\",stage=\"encode\"}", 125.0),
        ("throng_unknown_cells_total{format=\"json\"}", 250.0),
        ("throng_fragments_total{group=\"person\"}", 1000.0),
        ("throng_fragments_total{group=\"other\"}", 1001.0),
        ("throng_batches_total{outcome=\"committed\"}", 1.0),
    ] {
        assert!((sample(&text, name) - value).abs() < 1e-9, "{name}: {}", sample(&text, name));
    }
}

#[test]
fn evidence_sets_size_and_attribute_gauges() {
    let telemetry = telemetry();
    let told = |by_size: &[u64], involvement: &[(&str, f64)]| {
        let involvement = involvement.iter().map(|(name, share)| ((*name).to_owned(), *share)).collect();
        EvidenceGathered { by_size: by_size.to_vec(), involvement, ..EvidenceGathered::default() }.emit(&telemetry);
        let text = telemetry.render();
        let sizes =
            QidSize::ALL.iter().map(|size| sample(&text, &format!("throng_quasi_identifiers{{size=\"{size}\"}}")));
        let of = |name| sample(&text, &format!("throng_attribute_involvement{{attribute=\"{name}\"}}"));
        (sizes.collect::<Vec<_>>(), of("age"), of("zip"))
    };
    let first = told(&[1, 0, 3, 0, 0, 0, 2, 0, 5], &[("age", 0.25), ("zip", 0.5)]);
    assert_eq!(first, (vec![1.0, 0.0, 3.0, 0.0, 0.0, 0.0, 7.0], 0.25, 0.5));
    assert_eq!(told(&[], &[("age", 0.0), ("zip", 0.0)]), (vec![0.0; 7], 0.0, 0.0));
}

#[test]
fn readiness_requires_source_and_assignment() {
    let telemetry = telemetry();
    assert_eq!(telemetry.readiness().reasons().len(), 3);
    telemetry.set_readiness(|readiness| readiness.schema = true);
    SourceConnected.emit(&telemetry);
    PartitionsChanged { assigned: 2, ..PartitionsChanged::default() }.emit(&telemetry);
    assert!(telemetry.readiness().reasons().is_empty());
    assert!(telemetry.render().contains("\nthrong_ready 1"));
    PartitionsChanged { revoked: 1, lost: 1, ..PartitionsChanged::default() }.emit(&telemetry);
    assert_eq!(telemetry.status().reasons, ["no partition is assigned"]);
    assert!(telemetry.render().contains("\nthrong_ready 0"));
}

#[test]
fn lag_series_exist_for_assigned_partitions_only() {
    let telemetry = telemetry();
    let at_start = series(&telemetry.render());
    assert!(sample(&telemetry.render(), "throng_source_lag_records").is_nan(), "unknown before the first statistics");
    SourceLag { partitions: &[("raw", 0, Some(7)), ("raw", 1, None), ("other", 0, Some(5))] }.emit(&telemetry);
    let text = telemetry.render();
    let of = |text: &str, topic: &str, partition: i32| {
        sample(text, &format!("throng_source_partition_lag_records{{partition=\"{partition}\",topic=\"{topic}\"}}"))
    };
    assert!((of(&text, "raw", 0) - 7.0).abs() < 1e-9 && (of(&text, "other", 0) - 5.0).abs() < 1e-9);
    assert!(of(&text, "raw", 1).is_nan());
    assert!((sample(&text, "throng_source_lag_records") - 12.0).abs() < 1e-9, "the known ones");
    SourceLag { partitions: &[("raw", 1, Some(3))] }.emit(&telemetry);
    let text = telemetry.render();
    assert!((of(&text, "raw", 1) - 3.0).abs() < 1e-9 && series(&text).len() == at_start.len() + 1);
    SourceLag { partitions: &[] }.emit(&telemetry);
    assert_eq!(series(&telemetry.render()), at_start);
    assert!(sample(&telemetry.render(), "throng_source_lag_records").is_nan());
}

#[test]
fn configured_limits_are_metrics() {
    let telemetry = telemetry();
    let limits = LimitsConfigured {
        batch_records: 1,
        supporters: 2,
        waiting_lines: 3,
        said_lines: 4,
        model_edges: 5,
        profiles: 6,
        memory_bytes: 7,
    };
    limits.emit(&telemetry);
    let text = telemetry.render();
    for (name, limit) in [
        ("throng_batch_records_limit", 1.0),
        ("throng_ledger_supporters_limit", 2.0),
        ("throng_waiting_lines_limit", 3.0),
        ("throng_said_lines_limit", 4.0),
        ("throng_model_edges_limit", 5.0),
        ("throng_profiles_limit", 6.0),
        ("throng_process_memory_limit_bytes", 7.0),
    ] {
        assert!((sample(&text, name) - limit).abs() < 1e-9, "{name}: {}", sample(&text, name));
    }
}

#[test]
fn promtool_accepts_the_exposition() {
    let telemetry = telemetry();
    SourceLag { partitions: &[("raw", 0, Some(7)), ("raw", 1, None)] }.emit(&telemetry);
    everything_else(&telemetry, 3);
    BatchCommitted(report(100, [50, 50, 50, 50], 0)).emit(&telemetry);
    let spawned = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut promtool = match spawned {
        Ok(promtool) => promtool,
        Err(error) => {
            eprintln!("skipped: promtool is not there ({error}); install the package prometheus");
            return;
        }
    };
    let mut input = promtool.stdin.take().expect("piped");
    input.write_all(telemetry.render().as_bytes()).expect("promtool reads");
    drop(input);
    let output = promtool.wait_with_output().expect("promtool ends");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}

#[test]
fn records_represented_by_series_are_not_lost() {
    let of = |represented: u64, released: u64, monitored: u64, suppressed: u64, unreadable: u64| {
        let telemetry = telemetry();
        let reasons = [(SuppressionReason::Monitoring, monitored), (SuppressionReason::Quiet, suppressed)];
        BatchCommitted(BatchReport {
            consumed: released + monitored + suppressed + unreadable,
            released,
            suppressed: reasons.into_iter().collect(),
            dead_lettered: [(RejectionReason::WrongType, unreadable)].into_iter().collect(),
            ..BatchReport::default()
        })
        .emit(&telemetry);
        SeriesPublished {
            best: SeriesRecords { records: 100, represented, ..SeriesRecords::default() },
            ..SeriesPublished::default()
        }
        .emit(&telemetry);
        telemetry.share_lost(ShareScope::WholeState, 0)
    };
    assert!((of(50, 0, 198, 0, 1) - 0.01).abs() < 1e-12, "1 of 99 represented ones and itself");
    assert!((of(0, 0, 198, 0, 1) - 1.0).abs() < 1e-12, "no row represents a record");
    assert!(of(50, 0, 198, 0, 0).abs() < 1e-12);
    assert!((of(50, 2, 0, 196, 1) - 0.01).abs() < 1e-12, "fragments and series: series lose fewer");
    assert!((of(1, 150, 0, 48, 2) - 0.25).abs() < 1e-12, "fragments lose fewer");
    assert!(serde_json::to_value(SeriesPublished::default()).expect("JSON").get("people_seen").is_none());
}
