//! Readers for the evaluation of a release, from its configuration; the recount of its guarantees. The measures and
//! attacks are in the crate `throng_eval`. No code here takes part in a release.
//!
//! | module | content |
//! |---|---|
//! | [`original`] | reader of the original records |
//! | [`released_groups`], [`released_series_rows`], [`series_evidence`] | readers of released lines and series |
//! | [`release_guarantees`] | guarantees of a configuration |
//! | [`verification`] | recount of the guarantees from the released bytes |

mod nested_reader;
pub mod original;
pub mod release_guarantees;
pub mod released_groups;
pub mod released_series_rows;
pub mod series_evidence;
pub mod verification;
