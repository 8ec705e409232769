//! `throng audit` on good and on bad files: what it says, what it refuses, and what it never shows.

#![allow(clippy::format_collect, reason = "short texts of a test")]

mod beyond;
mod numbers;
mod place;
mod refusals;
mod shapes;
mod silence;
