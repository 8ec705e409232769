//! (wing: config)
