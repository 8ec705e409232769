//! Values, generalization and the per-subject ledger of the throng anonymization daemon, without I/O, clock or
//! configuration.
//!
//! | module | contents |
//! |---|---|
//! | [`values`] | schema, hierarchies, canonical values, codes |
//! | [`printable`] | escaping of external text for log lines and errors |
//! | [`ledger`] | release log, tenure and class budgets of each subject |

pub mod ledger;
pub mod printable;
pub mod values;
