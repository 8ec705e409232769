//! A configuration that takes the place of another while the daemon runs.
//!
//! Somebody asks (SIGHUP, or `POST /reload`); the desk, on a thread of its own, has the configuration read and tried, and holds it
//! against the one in force; the stream swaps the engine between two batches. Whatever fails, the old one stays.
//!
//! | file | what it holds |
//! |---|---|
//! | [`door`] | who asks, and what is answered |
//! | [`candidate`] | a configuration on its way to the stream |
//! | [`desk`] | the thread between the two |

pub mod candidate;
pub mod desk;
pub mod door;
