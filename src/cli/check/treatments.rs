//! What the rules of `[treatment]` have come to.

use crate::start::composition::{By, Treated};
use throng_core::values::schema::Schema;

/// Every attribute with its treatment and why it gets that.
pub(super) fn described(treated: &[Treated], schema: &Schema, file: &str) -> String {
    if treated.is_empty() {
        return String::new();
    }
    let mut text = format!("{file}: treatments by rules:\n");
    let width = treated.iter().map(|one| schema.attributes[one.attribute].name.chars().count()).max().unwrap_or(0);
    for one in treated {
        let name = &schema.attributes[one.attribute].name;
        let why = reason(one).unwrap_or_else(|| "no rule fits it".to_owned());
        text += &format!("  {name:<width$}  {:<15}  {why}\n", one.treat.name());
    }
    text
}

/// Which rule decides, and by what; none where no rule fits.
pub(super) fn reason(one: &Treated) -> Option<String> {
    let rule = match one.by {
        By::Rule(index) => format!("treatment.rule[{index}] fits it"),
        By::Preset(preset) => format!("treatment.preset = {:?} says so", preset.name()),
        By::Nobody => return None,
    };
    let shares = one.standing.map_or_else(String::new, |standing| {
        format!(": coverage {:.1} %, cardinality {:.1} %", 100.0 * standing.coverage, 100.0 * standing.cardinality)
    });
    Some(rule + &shares)
}
