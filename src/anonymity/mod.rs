//! (wing: anonymity)
