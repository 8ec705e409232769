//! Encodes the next batch during delivery. Encoding changes only dictionaries, on which no output depends.

use crate::daemon::engine::build::settings::EngineSettings;
use crate::daemon::engine::core::ValueEncoding;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::stream::batch_encoding::encode;
use throng_core::stream::input_batch::InputBatch;
use throng_core::stream::release_sink::RejectedRecord;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::Codebook;
use throng_core::values::schema::Schema;
use throng_core::values::subject_digest::SubjectDigester;

/// Input batch, with codes if encoded ahead.
pub struct QueuedBatch {
    /// Batch as read.
    pub input: Box<InputBatch>,
    encoded: Option<EncodedBatch>,
}

impl From<Box<InputBatch>> for QueuedBatch {
    fn from(input: Box<InputBatch>) -> Self {
        Self { input, encoded: None }
    }
}

impl QueuedBatch {
    pub(crate) fn take_encoded(&mut self, numbering: u64) -> Option<EncodedBatch> {
        self.encoded.take().filter(|encoded| encoded.numbering == numbering)
    }
}

pub(crate) struct EncodedBatch {
    pub rows: CodeBatch,
    /// Records with cells of the wrong type.
    pub rejected: Vec<RejectedRecord>,
    /// Cells outside their hierarchies.
    pub uncovered_cells: u64,
    pub seconds: f64,
    numbering: u64,
}

/// Source of the next batch.
pub trait NextBatchSource: Send {
    /// Returns the next batch if it arrives before `over` is set.
    fn look(&mut self, over: &AtomicBool) -> Option<&mut QueuedBatch>;
}

/// Disables encoding ahead.
pub struct NoNextBatch;

impl NextBatchSource for NoNextBatch {
    fn look(&mut self, _: &AtomicBool) -> Option<&mut QueuedBatch> {
        None
    }
}

/// Interval at which delivery of the current batch is checked.
pub const POLL_INTERVAL: Duration = Duration::from_millis(1);

pub(crate) struct BatchEncoder<'a> {
    pub schema: &'a Schema,
    pub settings: &'a EngineSettings,
    pub subjects: Option<&'a mut SubjectDigester>,
    pub books: &'a mut [Codebook],
    pub numbering: u64,
}

impl<'a> BatchEncoder<'a> {
    /// Borrows the encoding state of an engine.
    pub fn new(schema: &'a Schema, settings: &'a EngineSettings, coding: &'a mut ValueEncoding) -> Self {
        let ValueEncoding { books, subjects, numbering, .. } = coding;
        Self { schema, settings, subjects: subjects.as_mut(), books, numbering: *numbering }
    }

    /// Encodes a batch.
    pub fn encode(&mut self, input: &InputBatch) -> EncodedBatch {
        let start = Instant::now();
        let uncovered = |books: &[Codebook]| books.iter().map(Codebook::uncovered).sum::<u64>();
        let before = uncovered(self.books);
        let (rows, rejected) =
            encode(input, self.schema, self.books, self.subjects.as_deref_mut(), self.settings.absent_as_null);
        EncodedBatch {
            rows,
            rejected,
            uncovered_cells: uncovered(self.books) - before,
            seconds: start.elapsed().as_secs_f64(),
            numbering: self.numbering,
        }
    }

    /// Encodes the next batch if it arrives before `over` is set, unless a dictionary needs compaction.
    pub fn encode_next(&mut self, upcoming: &mut dyn NextBatchSource, over: &AtomicBool) {
        let Some(turn) = upcoming.look(over) else { return };
        let coming = self.settings.max_new_values(turn.input.rows());
        let fits = |book: &Codebook| book.values() + coming <= self.settings.max_dictionary_values;
        if turn.encoded.is_none() && self.books.iter().all(fits) {
            turn.encoded = Some(self.encode(&turn.input));
        }
    }
}

/// Sets a flag on drop, so that waiting threads end.
pub(crate) struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
