//! (wing: release)
