//! Audit records: one plain JSON line per committed batch, in its transaction (`sink.audit_topic`) or next to the
//! outputs (`sink.audit_file`).
//!
//! A record contains no value of the data. Its counts by outcome are exact on the status page too (decision 0025). The
//! smallest class size is capped at the required one: a larger number would reveal the size of one class.

use crate::config::{Config, SourceKind};
use crate::daemon::state::records::OffsetRange;
use crate::start::policy_hash::PolicyDigest;
use crate::telemetry::{BatchReport, Label, RecordTotals, SeriesPublished};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::stream::release_sink::AuditLine;

/// Version of the format of audit records.
const FORMAT: u32 = 1;

/// Audit record of one committed batch.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditRecord {
    /// Version of this format.
    #[schemars(range(min = 1, max = 1))]
    pub format: u32,
    /// Subjects and records that the release represents after this batch, since the state was created.
    pub represented: RepresentedInput,
    /// Version of throng.
    pub throng: String,
    /// SHA-256 of the policy in force: the configuration without secrets, addresses and paths, the record schema and
    /// its hierarchies.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub policy: String,
    /// Value of `source.group`.
    pub group: String,
    /// Identity of the state that released the batch.
    #[schemars(regex(pattern = "^[0-9a-f-]{36}$"))]
    pub instance: String,
    /// Number of the batch. Each instance counts from 1 without gaps.
    #[schemars(range(min = 1))]
    pub sequence: u64,
    /// Clock of the batch in milliseconds since 1970; it never decreases.
    pub clock_ms: i64,
    /// Consumed offsets by partition; empty for a batch that only settles held records.
    pub offsets: Vec<ConsumedOffsets>,
    /// Records by outcome. Held before + consumed = released + suppressed + dead-lettered + dropped + held.
    pub records: RecordCounts,
    /// Distinct subjects that each class needs: `privacy.k` plus the configured number of colluders.
    pub required_crowd: u64,
    /// Released lines by group.
    pub groups: Vec<GroupRelease>,
    /// Mean information loss of the cells that this batch settled, 0 (exact) to 1 (all suppressed), rounded to four
    /// digits.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mean_loss: f64,
    /// Result of the recount of the encoded lines before the release.
    pub verification: Verification,
}

/// Subjects and records that the release represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepresentedInput {
    /// Subjects with values in published rows of series; absent without series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub people: Option<u64>,
    /// Subjects with at least one record; absent without series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub people_seen: Option<u64>,
    /// Records of closed buckets of the series that represents most, and those that no bucket could take; absent
    /// without series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series_records: Option<u64>,
    /// Of these, records of subjects that are in a published row of their bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series_represented: Option<u64>,
    /// Readable records that were released or suppressed; absent if no records are released as fragments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment_records: Option<u64>,
    /// Of these, records with at least one released line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment_represented: Option<u64>,
    /// Unreadable records, counted in addition to both numbers of records. Absent if the source is a topic: its
    /// unreadable records do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable_records: Option<u64>,
}

impl RepresentedInput {
    fn of(fragments: Option<RecordTotals>, series: Option<SeriesPublished>, unreadable: Option<u64>) -> Self {
        Self {
            people: series.map(|series| series.people),
            people_seen: series.map(|series| series.people_seen),
            series_records: series.map(|series| series.best.completed_records()),
            series_represented: series.map(|series| series.best.represented),
            fragment_records: fragments.map(|totals| totals.released + totals.suppressed),
            fragment_represented: fragments.map(|totals| totals.released),
            unreadable_records: unreadable,
        }
    }
}

/// Consumed offsets of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsumedOffsets {
    /// Topic; absent if the source is a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Partition; 0 for a file.
    pub partition: i32,
    /// First offset; for a file the number of its first record.
    pub from: i64,
    /// Offset after the last one.
    pub to: i64,
}

/// Records of a batch by outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordCounts {
    /// Records read from the source.
    pub consumed: u64,
    /// Records with at least one cell other than `*` released for the first time.
    pub released: u64,
    /// Records without a released cell, by reason.
    pub suppressed: BTreeMap<String, u64>,
    /// Records held for a later batch, after this one.
    pub held: u64,
    /// Records that could not be read, by reason.
    pub dead_lettered: BTreeMap<String, u64>,
    /// Tombstones, and held records of erased subjects.
    pub dropped: u64,
}

/// Lines released by one attribute group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupRelease {
    /// Name of the group.
    pub name: String,
    /// Number of released lines.
    pub lines: u64,
    /// Distinct subjects of its smallest class in this batch, at most `required_crowd`; 0 if no line was released.
    pub smallest_crowd: u64,
}

/// Result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verification {
    /// Every line passed. A batch that does not pass is not released.
    Passed,
}

/// Creates the audit records of one state.
#[derive(Clone, Debug)]
pub struct Auditor {
    policy: String,
    group: String,
    instance: String,
    /// Names of the consumed topics, by index; empty for a file.
    topics: Vec<String>,
    required_crowd: u64,
}

/// Input for the audit record of one batch.
pub(crate) struct AuditedBatch<'a> {
    pub sequence: u64,
    pub clock_ms: i64,
    pub ranges: &'a [OffsetRange],
    pub verified: &'a ReleasableBatch,
    pub report: &'a BatchReport,
    /// Records by outcome after the batch; `None` if no records are released as fragments.
    pub fragments: Option<RecordTotals>,
    /// Records that could not be read, after the batch.
    pub unreadable: u64,
    /// Rows of series after the batch; `None` without series.
    pub series: Option<SeriesPublished>,
    /// Group names, in the order of `verified`.
    pub groups: Vec<&'a str>,
}

impl Auditor {
    /// Creates the auditor of the state `instance`, if configured.
    pub fn new(config: &Config, policy: &PolicyDigest, instance: &str) -> Option<Self> {
        config.sink.is_audited().then(|| Self {
            policy: policy.to_string(),
            group: config.source.group.clone(),
            instance: instance.to_owned(),
            topics: match config.source.kind {
                SourceKind::Kafka => config.consumed_topics(),
                SourceKind::File => Vec::new(),
            },
            required_crowd: config.privacy.required_subjects() as u64,
        })
    }

    /// Returns the encoded audit record of a batch.
    pub(crate) fn line(&self, batch: &AuditedBatch<'_>) -> AuditLine {
        let line = serde_json::to_vec(&self.record(batch)).expect("texts and numbers always serialize");
        AuditLine { key: format!("{}/{:020}", self.instance, batch.sequence), line }
    }

    fn record(&self, batch: &AuditedBatch<'_>) -> AuditRecord {
        let AuditedBatch { sequence, clock_ms, ranges, verified, report, fragments, unreadable, series, groups } =
            batch;
        let unreadable = self.topics.is_empty().then_some(*unreadable);
        let groups = groups.iter().enumerate().map(|(at, name)| GroupRelease {
            name: (*name).to_owned(),
            lines: verified.len(at) as u64,
            smallest_crowd: verified.smallest_crowd(at).min(self.required_crowd),
        });
        AuditRecord {
            format: FORMAT,
            represented: RepresentedInput::of(*fragments, *series, unreadable),
            throng: env!("CARGO_PKG_VERSION").to_owned(),
            policy: self.policy.clone(),
            group: self.group.clone(),
            instance: self.instance.clone(),
            sequence: *sequence,
            clock_ms: *clock_ms,
            offsets: ranges.iter().map(|range| self.offsets(range)).collect(),
            records: RecordCounts {
                consumed: report.consumed,
                released: report.released,
                suppressed: by_reason(report.suppressed.iter()),
                held: report.held,
                dead_lettered: by_reason(report.dead_lettered.iter()),
                dropped: report.dropped,
            },
            required_crowd: self.required_crowd,
            groups: groups.collect(),
            mean_loss: (report.loss * 1e4).round() / 1e4,
            verification: Verification::Passed,
        }
    }

    fn offsets(&self, range: &OffsetRange) -> ConsumedOffsets {
        let OffsetRange { topic, partition, from, to } = *range;
        ConsumedOffsets { topic: self.topics.get(usize::from(topic)).cloned(), partition, from, to }
    }
}

fn by_reason<L: Label>(counts: impl Iterator<Item = (L, u64)>) -> BTreeMap<String, u64> {
    counts.filter(|(_, records)| *records > 0).map(|(reason, n)| (reason.as_str().to_owned(), n)).collect()
}

/// Returns the JSON Schema in `schemas/audit-record.schema.json`.
pub fn audit_record_schema() -> String {
    let mut schema = schemars::schema_for!(AuditRecord);
    schema.insert("title".to_owned(), "Audit record of a committed batch".into());
    serde_json::to_string_pretty(&schema).expect("a schema always serializes") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn audit_record_schema_has_not_drifted() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/audit-record.schema.json");
        if std::env::var_os("THRONG_BLESS").is_some() {
            std::fs::write(&file, audit_record_schema()).expect("a writable checkout");
        }
        let checked_in = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(checked_in == audit_record_schema(), "{} has drifted; THRONG_BLESS=1 writes it again", file.display());
    }
}
