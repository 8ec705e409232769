//! Attributes, schemas and hierarchies; canonical values, their generalization and their codes.

pub mod based;
mod cache;
pub mod canonical;
mod cells;
pub mod codebook;
pub mod dates;
pub mod decimal;
pub mod dictionary;
pub mod digest;
pub mod formula;
pub mod hierarchy;
pub mod holders;
pub mod json;
mod keys;
pub mod moment;
pub mod numbers;
pub mod raw;
pub mod rejection;
pub mod schema;
pub mod sealer;
pub mod shapes;
pub mod spelling;
pub mod subject;
pub mod table;
pub mod units;
pub mod window;
pub mod zone;
