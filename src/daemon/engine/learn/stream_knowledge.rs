//! Statistics learned from the stream.

use super::model::{ModelSize, StreamModel};
use crate::daemon::engine::build::settings::EngineSettings;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::StreamProgress;
use crate::daemon::state::store::StateStore;
use crate::planner::drift::DriftBaseline;
use crate::planner::grouped_attributes;
use crate::planner::planner_sample::PlannerSample;
use crate::start::run_findings::RunStatistics;
use crate::telemetry::{AttributesNeverMet, Limit, LimitReached, Telemetry};
use throng_core::plan::GroupShape;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{Code, Codebook};
use throng_core::values::schema::Schema;
use throng_risk::multigrid::CoarseError;

/// Records after which attributes without values are logged.
const UNMET_REPORT_RECORDS: u64 = 1000;

pub(crate) struct StreamKnowledge {
    pub model: StreamModel,
    /// At most one batch behind the stream.
    pub model_size: ModelSize,
    pub sample: PlannerSample,
    /// Distributions of the plan in force.
    pub baseline: DriftBaseline,
    pub met: RunStatistics,
    /// Record count of the next check for unprotected values.
    pub next_value_check: u64,
}

pub(crate) fn new_model(
    schema: &Schema,
    shapes: &[GroupShape],
    settings: &EngineSettings,
    progress: &StreamProgress,
    store: &StateStore,
) -> Result<StreamModel, StateError> {
    StreamModel::new(schema.attributes.len(), grouped_attributes(shapes), settings.model, progress)
        .map_err(|error| store.damage_error(&format!("its model cannot be restored: {error}")))
}

impl StreamKnowledge {
    /// Adds a released batch. After one error the model is counted again; after two it stays empty.
    pub fn learn(&mut self, fresh: &CodeBatch, books: &[Codebook], telemetry: &Telemetry) {
        self.wait_for_model(telemetry);
        if let Err(error) = self.model.learn(fresh, books) {
            self.recover_model(&error);
        }
    }

    /// Waits until all pairs are counted.
    pub fn wait_for_model(&mut self, telemetry: &Telemetry) {
        if let Err(error) = self.model.wait_for_pairs() {
            self.recover_model(&error);
        }
        let size = self.model.size();
        if size.left_out_pairs > self.model_size.left_out_pairs {
            LimitReached { limit: Limit::ModelEdges }.emit(telemetry);
        }
        self.model_size = size;
    }

    pub fn renumber(&mut self, attribute: usize, map: &[Code]) {
        if let Err(error) = self.model.remap(attribute, map) {
            self.recover_model(&error);
        }
    }

    fn recover_model(&mut self, error: &CoarseError) {
        tracing::error!(%error, "the counts of the planner's model do not match its window: recounting the window");
        if let Err(error) = self.model.rebuild() {
            tracing::error!(%error, "the window cannot be counted: the planner's model stays empty until the next start");
            self.model.stop();
        }
    }

    /// Updates the findings, and logs attributes without values after [`UNMET_REPORT_RECORDS`] records.
    pub fn update_findings(&mut self, met: Option<&RunStatistics>, schema: &Schema) {
        let Some(met) = met else { return };
        let before = std::mem::replace(&mut self.met, met.clone()).decoded_here();
        if before < UNMET_REPORT_RECORDS && self.met.decoded_here() >= UNMET_REPORT_RECORDS {
            let name = |a: usize| schema.attributes[a].name.clone();
            let attributes: Vec<String> = self.met.attributes_without_values(schema).into_iter().map(name).collect();
            if !attributes.is_empty() {
                AttributesNeverMet { attributes, records: self.met.records() }.emit();
            }
        }
    }

    /// Returns whether the check of unprotected values is due.
    pub fn is_value_check_due(&mut self, rows: u64) -> bool {
        let is_due = rows >= self.next_value_check;
        if is_due {
            self.next_value_check = rows.saturating_mul(4).max(1);
        }
        is_due
    }
}
