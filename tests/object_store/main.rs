//! `throng audit` of objects in a store: the answers for files on disk, and what is refused by name.
//!
//! The store is one of this machine that can be told to fail (`stub`).

#![allow(clippy::format_collect, reason = "short texts of a test")]

mod failures;
mod place;
mod plans;
mod readings;
mod stub;
