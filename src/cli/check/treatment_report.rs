//! Treatments by the rules of `[treatment]`.

use crate::cli::text_format::percent;
use crate::start::treatment_selection::{SelectedTreatment, TreatmentOrigin};
use throng_core::values::schema::Schema;

pub(super) fn describe_treatments(treated: &[SelectedTreatment], schema: &Schema, file: &str) -> String {
    if treated.is_empty() {
        return String::new();
    }
    let mut text = format!("{file}: treatments by rules:\n");
    let width = treated.iter().map(|one| schema.attributes[one.attribute].name.chars().count()).max().unwrap_or(0);
    for one in treated {
        let name = &schema.attributes[one.attribute].name;
        let why = deciding_rule(one).unwrap_or_else(|| "no rule matches it".to_owned());
        text += &format!("  {name:<width$}  {:<15}  {why}\n", one.treat.name());
    }
    text
}

/// `None` if no rule matches.
pub(super) fn deciding_rule(one: &SelectedTreatment) -> Option<String> {
    let rule = match one.by {
        TreatmentOrigin::Rule(index) => format!("treatment.rule[{index}] matches it"),
        TreatmentOrigin::Preset(preset) => format!("treatment.preset = {:?} selects it", preset.name()),
        TreatmentOrigin::NoRule => return None,
    };
    let shares = one.standing.map_or_else(String::new, |standing| {
        format!(": coverage {}, cardinality {}", percent(standing.coverage), percent(standing.cardinality))
    });
    Some(rule + &shares)
}
