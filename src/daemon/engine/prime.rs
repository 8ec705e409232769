//! `plan.prime`: the first plan is made from a file, before the stream begins.
//!
//! The file says what the stream is expected to look like, and nothing else: its records are not released, support nobody,
//! and are in no window, ledger or reference of a privacy model. A plan decides what is worth trying and never what is safe, so a file of
//! other people costs utility until the stream has a plan of its own.

use crate::anonymity::plan::Plan;
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::planner::{GroupShape, PlannerSettings, guarded, make_plan};
use crate::config::Config;
use crate::start::memory::max_dictionary_values;
use crate::start::sampling::{Take, WholeFileError, read_whole};
use std::ops::ControlFlow;
use std::path::PathBuf;
use throng_core::values::codebook::{Code, Codebook};
use throng_core::values::schema::Schema;
use throng_core::values::subject::Subjects;

/// The first plan, and what it expects of the stream.
pub struct Primed {
    /// Version 1, marked as primed.
    pub plan: Plan,
    /// The distributions of the file's values, from which drift of the stream is measured.
    pub baseline: Baseline,
}

/// Why no plan can be made from the file of `plan.prime`. Each case ends the start before a record of the stream is
/// read.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum PrimeError {
    #[error("plan.prime: {}: {source}", .path.display())]
    File { path: PathBuf, source: WholeFileError },
    #[error("plan.prime: {} is no regular file: it is read at every start that has no plan yet; name a file", .0.display())]
    NoFile(PathBuf),
    #[error("plan.prime: {} has no records: name a file with some, or remove the key", .0.display())]
    Empty(PathBuf),
    #[error(
        "plan.prime: {}: attribute {attribute:?} has more than {limit} values; round the values, or name a shorter file",
        .path.display()
    )]
    Values { path: PathBuf, attribute: String, limit: usize },
}

/// The plan that `plan.prime` gives; `None` where no file is named. `books` and `subjects` are the file's own; the books know
/// digests under the key of the stream's. Memory: what is sampled of the file, its different values, and a few thousand
/// records.
///
/// # Errors
/// When the file is missing, has no records or any that does not fit the schema, or too many values.
pub(super) fn prime(
    config: &Config,
    schema: &Schema,
    shapes: &[GroupShape],
    mut books: Vec<Codebook>,
    mut subjects: Option<Subjects>,
    absent_as_null: bool,
    planner: &PlannerSettings,
) -> Result<Option<Primed>, PrimeError> {
    let Some(path) = &config.plan.prime else { return Ok(None) };
    if path.exists() && !path.is_file() {
        return Err(PrimeError::NoFile(path.clone()));
    }
    let mut sample = Sample::new(schema.attributes.len(), config.plan.sample_records(), config.plan.window_records);
    let mut rows = 0;
    let take: Take<'_> = &mut |batch, _, _| {
        sample.add(batch, rows);
        rows += batch.rows() as u64;
        ControlFlow::Continue(())
    };
    let whole = (path.as_path(), &[][..], &mut [][..]);
    read_whole(config, whole, schema, &mut books, subjects.as_mut(), absent_as_null, take)
        .map_err(|source| PrimeError::File { path: path.clone(), source })?;
    if rows == 0 {
        return Err(PrimeError::Empty(path.clone()));
    }
    if let Some(full) = books.iter().position(|book| book.overflowed() > 0) {
        let (attribute, limit) = (schema.attributes[full].name.clone(), max_dictionary_values(config, schema));
        return Err(PrimeError::Values { path: path.clone(), attribute, limit });
    }
    let plan = Plan { primed: true, ..make_plan(1, shapes, &sample, &books, planner) };
    Ok(Some(Primed { plan, baseline: baseline(shapes, &sample, &books, config.tuning.drift) }))
}

fn baseline(shapes: &[GroupShape], sample: &Sample, books: &[Codebook], threshold: f64) -> Baseline {
    let attributes = guarded(shapes);
    let mut baseline = Baseline::default();
    for attribute in attributes {
        let count = |codes: &[Code]| {
            let mut counts = vec![0_u64; books[attribute].codes()];
            codes.iter().for_each(|code| counts[*code as usize] += 1);
            counts
        };
        let (older, newer) = sample.column(attribute).split_at(sample.rows() / 2);
        baseline.watch(attribute, &count(older), &count(newer), &books[attribute], threshold);
    }
    baseline
}
