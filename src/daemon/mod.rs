//! The daemon: the pipeline, its durable state, its pages.

pub mod assemble;
pub mod encode;
pub mod engine;
pub mod file_run;
pub mod held;
pub mod http;
pub mod kafka_run;
pub mod picture;
pub mod plan_page;
pub mod run;
pub mod state;
