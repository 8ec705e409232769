//! (wing: generate)
