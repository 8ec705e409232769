//! The daemon: the pipeline, its durable state, its pages.

pub mod anonymize;
pub mod assemble;
pub mod clock;
pub mod doubts;
pub mod encode;
pub mod engine;
pub mod file_run;
pub mod findings;
mod from_file;
mod from_kafka;
pub mod held;
pub mod http;
pub mod kafka_run;
mod model;
mod pages;
pub mod picture;
pub mod plan_page;
pub mod population;
pub mod prime;
pub mod protections;
pub mod run;
pub mod run_error;
pub mod state;
pub mod terms;
mod to_kafka;
pub mod whole_file;
