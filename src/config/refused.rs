//! Values that somebody may look for here, and that are refused by name instead of as a slip.

/// A value of a key that is not built, on purpose.
pub(super) struct Refused {
    key: &'static str,
    value: &'static str,
    /// Why.
    pub message: &'static str,
    /// What to do instead.
    pub remedy: &'static str,
}

const REFUSED: [Refused; 1] = [Refused {
    key: "plan.groups",
    value: "rowwise",
    message: "groups of each record by itself are not released: which attributes stay together is a value without a crowd, and says which values of the record are rare (docs/decisions/0042-no-groups-of-single-records.md)",
    remedy: "set \"price\", with a [[keep]] for what is needed together",
}];

/// What is said of `value` at `key`; none where it is only unknown.
pub(super) fn refused(key: &str, value: &str) -> Option<&'static Refused> {
    REFUSED.iter().find(|refused| refused.key == key && refused.value == value)
}
