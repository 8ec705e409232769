//! Tests `throng audit` on valid and invalid files: output, errors, and confidentiality.

#![allow(clippy::format_collect, reason = "short texts of a test")]

mod beyond;
mod numbers;
mod place;
mod refusals;
mod shapes;
mod silence;
