//! Makes the first plan from the file of `plan.prime`, whose records are not released. A plan never decides safety.

use crate::config::Config;
use crate::planner::drift::DriftBaseline;
use crate::planner::planner_sample::PlannerSample;
use crate::planner::{PlannerSettings, grouped_attributes, make_plan};
use crate::start::memory_budget::max_dictionary_values;
use crate::start::sampling::{RecordCallback, WholeFileError, read_whole_file};
use std::ops::ControlFlow;
use std::path::PathBuf;
use throng_core::plan::GroupShape;
use throng_core::plan::Plan;
use throng_core::values::codebook::{Code, Codebook};
use throng_core::values::schema::Schema;
use throng_core::values::subject_digest::SubjectDigester;

/// First plan with its expected distributions.
pub struct PrimedPlan {
    /// Version 1, marked as primed.
    pub plan: Plan,
    /// Value distributions of the file, for drift.
    pub baseline: DriftBaseline,
}

/// Reason why `plan.prime` yields no plan; ends the start.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum PrimeError {
    #[error("plan.prime: {}: {source}", .path.display())]
    File { path: PathBuf, source: WholeFileError },
    #[error("plan.prime: {} is not a regular file, but is read at every start without a plan (name a file)", .0.display())]
    NoFile(PathBuf),
    #[error("plan.prime: {} has no records (name a file with records, or remove the key)", .0.display())]
    Empty(PathBuf),
    #[error(
        "plan.prime: {}: attribute {attribute:?} has more than {limit} values (round the values, or name a shorter file)",
        .path.display()
    )]
    Values { path: PathBuf, attribute: String, limit: usize },
}

/// Makes the plan of `plan.prime`, if configured.
///
/// # Errors
/// When the file is missing, empty, does not fit the schema, or has too many values.
pub(crate) fn prime(
    config: &Config,
    schema: &Schema,
    shapes: &[GroupShape],
    mut books: Vec<Codebook>,
    mut subjects: Option<SubjectDigester>,
    absent_as_null: bool,
    planner: &PlannerSettings,
) -> Result<Option<PrimedPlan>, PrimeError> {
    let Some(path) = &config.plan.prime else { return Ok(None) };
    if path.exists() && !path.is_file() {
        return Err(PrimeError::NoFile(path.clone()));
    }
    let mut sample =
        PlannerSample::new(schema.attributes.len(), config.plan.sample_records(), config.plan.window_records);
    let mut rows = 0;
    let take: RecordCallback<'_> = &mut |batch, _, _| {
        sample.add(batch, rows);
        rows += batch.rows() as u64;
        ControlFlow::Continue(())
    };
    let whole = (path.as_path(), &[][..], &mut [][..]);
    read_whole_file(config, whole, schema, &mut books, subjects.as_mut(), absent_as_null, take)
        .map_err(|source| PrimeError::File { path: path.clone(), source })?;
    if rows == 0 {
        return Err(PrimeError::Empty(path.clone()));
    }
    if let Some(full) = books.iter().position(|book| book.overflowed() > 0) {
        let (attribute, limit) = (schema.attributes[full].name.clone(), max_dictionary_values(config, schema));
        return Err(PrimeError::Values { path: path.clone(), attribute, limit });
    }
    let plan = Plan { primed: true, ..make_plan(1, shapes, &sample, &books, planner) };
    Ok(Some(PrimedPlan { plan, baseline: baseline(shapes, &sample, &books, config.tuning.drift) }))
}

fn baseline(shapes: &[GroupShape], sample: &PlannerSample, books: &[Codebook], threshold: f64) -> DriftBaseline {
    let attributes = grouped_attributes(shapes);
    let mut baseline = DriftBaseline::default();
    for attribute in attributes {
        let count = |codes: &[Code]| {
            let mut counts = vec![0_u64; books[attribute].codes()];
            codes.iter().for_each(|code| counts[*code as usize] += 1);
            counts
        };
        let (older, newer) = sample.column(attribute).split_at(sample.rows() / 2);
        baseline.add_if_steady(attribute, &count(older), &count(newer), &books[attribute], threshold);
    }
    baseline
}
