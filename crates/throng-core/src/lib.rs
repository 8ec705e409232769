//! Values, generalization and history of the throng anonymization daemon: no I/O, no clock, no configuration.
//!
//! | module | contents |
//! |---|---|
//! | [`values`] | schema, hierarchies, canonical values, codes |
//! | [`printable`] | texts from outside in log lines and errors |
//! | [`ledger`] | release log, tenure and budgets of each subject |

pub mod ledger;
pub mod printable;
pub mod values;
