//! (wing: daemon)

pub mod http;
