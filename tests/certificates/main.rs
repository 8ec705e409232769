//! Certificates of what has left: one for each committed batch, signed and chained, and whatever is changed afterwards is named.
#![cfg(feature = "failpoints")]

#[path = "../support/mod.rs"]
mod support;

mod files;
mod scene;
mod tampering;
mod topics;
mod twin;
