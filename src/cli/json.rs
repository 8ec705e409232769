//! JSON output of reports.

use super::outcome::Failure;
use anyhow::Context;
use serde::Serialize;
use serde_json::{Number, Value};

/// Formats `report` as indented JSON, with `-0.0` as `0.0`.
pub fn pretty_json(report: &impl Serialize) -> Result<String, Failure> {
    let mut value = serde_json::to_value(report).context("cannot serialize the report")?;
    remove_zero_signs(&mut value);
    Ok(serde_json::to_string_pretty(&value).context("cannot serialize the report")?)
}

fn remove_zero_signs(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_f64() == Some(0.0) && number.is_f64() => {
            *value = Number::from_f64(0.0).map_or(Value::Null, Value::Number);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_zero_signs),
        Value::Object(values) => values.values_mut().for_each(remove_zero_signs),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_zeros_are_printed_without_sign() {
        let report = serde_json::json!({ "b": [-0.0, 0.0, -1.5], "a": { "c": -0.0 }, "n": 0 });
        let text = pretty_json(&report).expect("JSON");
        let plain: String = text.split_whitespace().collect();
        assert_eq!(plain, r#"{"b":[0.0,0.0,-1.5],"a":{"c":0.0},"n":0}"#);
    }
}
