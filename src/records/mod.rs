//! Records: what an attribute is, how its values are typed, rounded, generalized and encoded as codes.

pub mod canonical;
mod decimal;
pub mod digest;
pub mod hierarchy;
mod keys;
pub mod moment;
pub mod raw;
pub mod schema;
