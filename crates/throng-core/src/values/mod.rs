//! Attributes, schemas and hierarchies; canonical values, their generalizations and codes.

pub mod canonical;
mod cell_table;
pub mod code_batch;
pub mod codebook;
pub mod date_formats;
pub mod decimal;
pub mod dictionary;
pub mod digest;
pub mod formula;
pub mod hierarchy;
pub mod identifier_shapes;
pub mod json;
pub mod moment;
pub mod raw_batch;
pub mod record_numbers;
pub mod record_window;
pub mod rejection;
pub mod resolved_times;
pub mod schema;
pub mod sealer;
pub mod spelling;
pub mod subject_digest;
pub mod subjects_by_value;
mod table_reader;
pub mod time_zone;
mod token_cache;
pub mod units;
