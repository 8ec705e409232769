use serde::Deserialize as _;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use throng_core::values::rejection::RejectionReason;

/// Returns the texts of the 1 to `most` elements of a JSON array.
pub(super) fn elements(json: &str, most: usize) -> Result<Vec<&str>, RejectionReason> {
    match json.trim_ascii().as_bytes().first() {
        Some(b'[') => {}
        Some(b'n') if json.trim_ascii() == "null" => return Err(RejectionReason::NoElements),
        _ => return Err(not_an_array(json)),
    }
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let found = Vec::<&RawValue>::deserialize(&mut deserializer).map_err(|error| syntax_rejection(&error))?;
    deserializer.end().map_err(|_| RejectionReason::TrailingText)?;
    match found.len() {
        0 => Err(RejectionReason::NoElements),
        count if count > most => Err(RejectionReason::TooManyElements),
        _ => Ok(found.into_iter().map(RawValue::get).collect()),
    }
}

fn not_an_array(json: &str) -> RejectionReason {
    match serde_json::from_str::<IgnoredAny>(json) {
        Ok(_) => RejectionReason::NotAnArray,
        Err(error) => syntax_rejection(&error),
    }
}

pub(super) fn syntax_rejection(error: &serde_json::Error) -> RejectionReason {
    if error.is_eof() { RejectionReason::Truncated } else { RejectionReason::MalformedJson }
}
