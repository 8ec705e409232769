//! What an evaluation found.

use crate::evaluation::learning::Learning;
use crate::evaluation::quality::Quality;
use crate::evaluation::queries::QueryErrors;
use crate::evaluation::risk::GroupRisk;
use serde::Serialize;

/// Everything that is measured.
#[derive(Serialize)]
pub struct Evaluation {
    /// k of the configuration.
    pub k: usize,
    /// Records that could not be read.
    pub rejected: u64,
    /// What it is worth.
    pub quality: Quality,
    /// How far lines stand out, by group.
    pub risk: Vec<GroupRisk>,
    /// Errors of counts, by width.
    pub queries: Vec<QueryErrors>,
    /// A target each, as asked.
    pub learning: Vec<Learning>,
}
