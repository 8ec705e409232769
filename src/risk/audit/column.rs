//! A column as it was read.

use crate::records::dictionary::Dictionary;
use crate::records::schema::Role;
use crate::risk::identifiers::Profile;
use std::collections::BTreeMap;

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

/// What was counted of a column until it had more different values than can be held.
#[derive(Clone, Debug)]
pub struct GivenUp {
    /// Its profile, over the records until then.
    pub profile: Profile,
    /// How many values had so many records.
    pub sizes: BTreeMap<u64, u64>,
}
