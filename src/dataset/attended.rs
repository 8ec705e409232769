//! Who attends while a data set is anonymized.

use super::step::Step;
use crate::anonymity::lattice::search::Progress;
use crate::start::findings::Finding;
use std::sync::atomic::AtomicBool;

/// What is watched while the search runs.
pub type Watch<'a> = &'a (dyn Fn(&Progress) + Sync);

/// Who attends while a data set is anonymized.
#[derive(Clone, Copy)]
pub struct Attended<'a> {
    /// Hears every now and then how far the search is, and how much time is left.
    pub watch: Watch<'a>,
    /// Once set, the search ends with the best that it has found.
    pub stop: &'a AtomicBool,
    /// Hears what the data lack, before the search.
    pub note: &'a dyn Fn(&Finding),
    /// Hears how far everything else is.
    pub step: &'a dyn Fn(Step),
}
