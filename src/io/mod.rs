//! (wing: io)
