//! JSON of reports.

use super::outcome::Failure;
use anyhow::Context;
use serde::Serialize;
use serde_json::{Number, Value};

/// Prints `report` on several lines. Zero has no sign: `-0.0`, the sum of no numbers, is `0.0`.
pub fn pretty(report: &impl Serialize) -> Result<String, Failure> {
    let mut value = serde_json::to_value(report).context("the report has no JSON")?;
    unsign_zeros(&mut value);
    Ok(serde_json::to_string_pretty(&value).context("the report has no JSON")?)
}

fn unsign_zeros(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_f64() == Some(0.0) && number.is_f64() => {
            *value = Number::from_f64(0.0).map_or(Value::Null, Value::Number);
        }
        Value::Array(values) => values.iter_mut().for_each(unsign_zeros),
        Value::Object(values) => values.values_mut().for_each(unsign_zeros),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_have_no_sign() {
        let report = serde_json::json!({ "b": [-0.0, 0.0, -1.5], "a": { "c": -0.0 }, "n": 0 });
        let text = pretty(&report).expect("JSON");
        let plain: String = text.split_whitespace().collect();
        assert_eq!(plain, r#"{"b":[0.0,0.0,-1.5],"a":{"c":0.0},"n":0}"#);
    }
}
