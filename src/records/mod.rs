//! Records: what an attribute is, how its values are typed, rounded, generalized and encoded as codes.

pub mod raw;
