//! (wing: daemon)
