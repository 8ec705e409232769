//! The next batch is encoded while the one before it leaves.
//!
//! Most of a commit is waiting for a disk or a broker, and encoding touches nothing but dictionaries, on which no output
//! depends: a batch encoded ahead and then dropped, after an abort for example, leaves values in them and nothing else.

use super::core::Coding;
use super::settings::EngineSettings;
use crate::io::input::InputBatch;
use crate::release::sink::Rejected;
use crate::start::encode::encode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::values::codebook::Codebook;
use throng_core::values::schema::Schema;
use throng_core::values::subject::Subjects;
use throng_core::values::table::Batch;

/// An input batch and, where it was encoded before its turn, its codes.
pub struct Turn {
    /// The batch as the source gave it; encoding leaves it unchanged.
    pub input: Box<InputBatch>,
    encoded: Option<Encoded>,
}

impl From<Box<InputBatch>> for Turn {
    fn from(input: Box<InputBatch>) -> Self {
        Self { input, encoded: None }
    }
}

impl Turn {
    /// The codes, where they were made ahead and `numbering` still stands.
    pub(super) fn take_encoded(&mut self, numbering: u64) -> Option<Encoded> {
        self.encoded.take().filter(|encoded| encoded.numbering == numbering)
    }
}

/// Codes of an input batch.
pub(super) struct Encoded {
    pub rows: Batch,
    /// Records whose cells their types cannot take.
    pub rejected: Vec<Rejected>,
    /// Cells that their hierarchies miss.
    pub uncovered_cells: u64,
    pub seconds: f64,
    /// The numbering of the dictionaries that the codes are of.
    numbering: u64,
}

/// Where the batch comes from that follows the one in hand.
pub trait Upcoming: Send {
    /// The next batch, where it is there before `over` is set.
    fn look(&mut self, over: &AtomicBool) -> Option<&mut Turn>;
}

/// Nothing is looked at before its turn.
pub struct Unseen;

impl Upcoming for Unseen {
    fn look(&mut self, _: &AtomicBool) -> Option<&mut Turn> {
        None
    }
}

/// How often whoever waits for the next batch looks whether the one before it has left.
pub const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// What encoding changes of an engine.
pub(super) struct Encoder<'a> {
    pub schema: &'a Schema,
    pub settings: &'a EngineSettings,
    pub subjects: Option<&'a mut Subjects>,
    pub books: &'a mut [Codebook],
    pub numbering: u64,
}

impl<'a> Encoder<'a> {
    /// The encoder of an engine.
    pub fn new(schema: &'a Schema, settings: &'a EngineSettings, coding: &'a mut Coding) -> Self {
        let Coding { books, subjects, numbering, .. } = coding;
        Self { schema, settings, subjects: subjects.as_mut(), books, numbering: *numbering }
    }

    /// Encodes `input`.
    pub fn encode(&mut self, input: &InputBatch) -> Encoded {
        let start = Instant::now();
        let uncovered = |books: &[Codebook]| books.iter().map(Codebook::uncovered).sum::<u64>();
        let before = uncovered(self.books);
        let (rows, rejected) =
            encode(input, self.schema, self.books, self.subjects.as_deref_mut(), self.settings.absent_as_null);
        Encoded {
            rows,
            rejected,
            uncovered_cells: uncovered(self.books) - before,
            seconds: start.elapsed().as_secs_f64(),
            numbering: self.numbering,
        }
    }

    /// Encodes what comes next before `over` is set, unless a dictionary would have to be compacted first: the batch in
    /// hand still needs its numbers.
    pub fn look_ahead(&mut self, upcoming: &mut dyn Upcoming, over: &AtomicBool) {
        let Some(turn) = upcoming.look(over) else { return };
        let coming = self.settings.values_of(turn.input.rows());
        let fits = |book: &Codebook| book.values() + coming <= self.settings.max_dictionary_values;
        if turn.encoded.is_none() && self.books.iter().all(fits) {
            turn.encoded = Some(self.encode(&turn.input));
        }
    }
}

/// Sets a flag at the end, whatever the end is: whoever waits for it must not wait for ever.
pub(super) struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
