//! Construction of an engine from a configuration and a state directory.

pub mod assemble;
pub(crate) mod prime;
pub(crate) mod settings;
