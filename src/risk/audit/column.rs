//! A column as it was read.

use crate::records::dictionary::Dictionary;
use crate::records::schema::Role;

/// A column of the table to judge.
#[derive(Clone, Debug)]
pub struct AuditColumn {
    /// Its name in the input.
    pub name: String,
    /// The role that a schema gives it; none without a schema.
    pub role: Option<Role>,
    /// It has a generalization hierarchy: recoded and not removed, however many values it has.
    pub recodable: bool,
    /// A code of the dictionary a row.
    pub codes: Vec<u32>,
    /// The values behind the codes.
    pub dictionary: Dictionary,
}
