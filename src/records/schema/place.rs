//! The keys of an attribute that say where it is found: `from`, `column`, `pointer`.

use super::attribute::{Origin, Place};
use crate::records::keys::Keys;

/// The part of a message that has the attribute; the value where nothing is said, or nothing that can be understood.
pub(super) fn from(keys: &mut Keys<'_>) -> Origin {
    let Some(name) = keys.optional::<String>("from") else { return Origin::Value };
    Origin::of_name(&name).unwrap_or_else(|| {
        keys.problem("from", "not one of value, key, header:NAME, timestamp, topic, join:NAME");
        Origin::Value
    })
}

/// Where that part has it; its own name where nothing is said.
pub(super) fn place(keys: &mut Keys<'_>, name: Option<&str>, from: &Origin) -> Option<Place> {
    let column: Option<String> = keys.optional("column");
    let pointer: Option<String> = keys.optional("pointer");
    if !from.has_fields() {
        for (key, given) in [("column", column.is_some()), ("pointer", pointer.is_some())] {
            if given {
                let message = format!("from = \"{}\" is taken as a whole: remove the key", from.name());
                keys.problem(key, message);
            }
        }
        return Some(Place::Pointer(String::new()));
    }
    match (column, pointer) {
        (Some(_), Some(_)) => {
            keys.problem("pointer", "column and pointer exclude each other: keep one");
            None
        }
        (Some(column), None) => Some(Place::Column(column)),
        (None, Some(pointer)) => {
            let escaped = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
            let whole = pointer.is_empty() && *from == Origin::Key;
            if !whole && (!pointer.starts_with('/') || !escaped) {
                keys.problem("pointer", "not a JSON pointer: it starts with / and writes ~ as ~0 and / as ~1");
                return None;
            }
            Some(Place::Pointer(pointer))
        }
        (None, None) => name.map(|name| Place::Column(name.to_owned())),
    }
}
