//! Records and attributes that were not as expected.

use crate::telemetry::labels::{Label, Stage, WrittenAs};
use crate::telemetry::reason::RejectionReason;
use crate::telemetry::status::Telemetry;

/// Records became dead letters. Emitted by [`BatchCommitted`] from its report.
#[derive(Clone, Copy, Debug)]
pub struct RecordDeadLettered {
    /// The stage that refused them.
    pub stage: Stage,
    /// Why.
    pub reason: RejectionReason,
    /// How many.
    pub records: u64,
}

impl RecordDeadLettered {
    pub(super) fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().flow.dead_letters.of(self.reason).inc_by(self.records);
        if telemetry.may_log("record_dead_lettered", self.reason.as_str()) {
            let (stage, reason, remedy) = (self.stage.as_str(), self.reason.as_str(), self.reason.remedy());
            tracing::warn!(
                stage,
                reason,
                remedy,
                records = self.records,
                "records could not be read; their coordinates are dead letters"
            );
        }
    }
}

/// The data has attributes that the record schema does not know. Emitted by [`BatchCommitted`] from its report.
#[derive(Clone, Copy, Debug)]
pub struct UnknownAttribute {
    /// How many.
    pub cells: u64,
}

impl UnknownAttribute {
    pub(super) fn emit(self, telemetry: &Telemetry) {
        let format = telemetry.board().written_as.unwrap_or(WrittenAs::Json);
        telemetry.metrics().quality.unknown_cells.of(format).inc_by(self.cells);
        if telemetry.may_log("unknown_attribute", "") {
            tracing::warn!(
                cells = self.cells,
                "cells of keys or columns that the schema does not know were dropped (keys may be data and are not named: compare a record with the schema)"
            );
        }
    }
}

/// Attributes of the schema had no value in any record so far. Names are the schema's own.
#[derive(Clone, Debug)]
pub struct AttributesNeverMet {
    /// Names of the schema.
    pub attributes: Vec<String>,
    /// Records that were looked at.
    pub records: u64,
}

impl AttributesNeverMet {
    /// Tells the log and the metrics.
    pub fn emit(&self) {
        tracing::warn!(
            attributes = self.attributes.join(", "),
            records = self.records,
            "attributes had no value in any record: check their `pointer` or `column` in the schema"
        );
    }
}

/// Values that their hierarchy misses; they count as the root. Emitted by [`BatchCommitted`] from its report.
#[derive(Clone, Copy, Debug)]
pub struct UncoveredCells {
    /// How many.
    pub cells: u64,
}

impl UncoveredCells {
    pub(super) fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().quality.uncovered_cells.inc_by(self.cells);
        if telemetry.may_log("uncovered_cells", "") {
            tracing::warn!(
                cells = self.cells,
                "cells whose value the hierarchy misses, or that look like an identifier, count as its root"
            );
        }
    }
}

/// A doubt about the schema, in words that name attributes and never a value. It stays on the status page.
#[derive(Clone, Debug)]
pub struct Doubt(pub String);

impl Doubt {
    /// Tells the log and the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        if telemetry.board().doubt(&self.0) {
            tracing::warn!("{}", self.0);
        }
    }
}

/// A job whose files do not fit into one batch.
#[derive(Clone, Copy, Debug)]
pub struct FileDivided<'a> {
    /// The file that the first batch ends in.
    pub path: &'a std::path::Path,
    /// Records that a batch holds at most.
    pub max_records: u64,
    /// Bytes that a batch holds at most.
    pub max_bytes: u64,
}

impl FileDivided<'_> {
    /// Tells the log.
    pub fn emit(&self) {
        let (path, max_records, max_bytes) = (self.path.display(), self.max_records, self.max_bytes);
        tracing::warn!(
            %path,
            max_records,
            max_bytes,
            "the input does not fit into one batch and is divided: each batch needs its own crowds, and more is lost (more memory or process.memory_limit makes batches larger)"
        );
    }
}

/// A file of several that is begun.
#[derive(Clone, Copy, Debug)]
pub struct FileOpened<'a> {
    /// The file.
    pub path: &'a std::path::Path,
    /// Number of its first record among those of all files, from 0.
    pub first_record: u64,
}

impl FileOpened<'_> {
    /// Tells the log.
    pub fn emit(&self) {
        tracing::info!(path = %self.path.display(), first_record = self.first_record, "a file of the source begins");
    }
}

/// Columns of a file that the schema does not know.
#[derive(Clone, Debug)]
pub struct ColumnsDropped<'a> {
    /// The file.
    pub path: &'a std::path::Path,
    /// Their names.
    pub columns: &'a [String],
}

impl ColumnsDropped<'_> {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        if !self.columns.is_empty() && telemetry.may_log("columns_dropped", "") {
            let (path, columns) = (self.path.display(), self.columns.join(", "));
            tracing::warn!(%path, columns, "columns that the schema does not know are dropped");
        }
    }
}

/// Records with a cell that the type of its attribute cannot take: whose, and where the first of them is. The cell itself
/// stays unsaid.
#[derive(Clone, Debug)]
pub struct WrongType<'a> {
    /// Name of the attribute.
    pub attribute: &'a str,
    /// Its type.
    pub expected: &'static str,
    /// How many.
    pub records: u64,
    /// `record 17`, or `partition 2, offset 16`.
    pub first: String,
}

impl WrongType<'_> {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        if telemetry.may_log("wrong_type", "") {
            let Self { attribute, expected, records, first } = self;
            tracing::warn!(attribute, expected, records, first, "cells are not of the type of their attribute");
        }
    }
}
