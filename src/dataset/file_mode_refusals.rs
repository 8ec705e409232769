//! Limits of a data set in a file, checked before anything is read.

use super::error::{AnonymizeError, operator_error};
use crate::config::{Config, ModelKind, RecodingScope};

/// Refuses settings that need the records in memory.
///
/// # Errors
/// Names the key at fault and an alternative.
pub fn refuse_memory_only_settings(config: &Config, file: &str) -> Result<(), AnonymizeError> {
    let refuse = |key: &str, message: &str, remedy: &str| {
        Err(operator_error(file, key, format!("{message}, which a data set in a file (--temp) has not"), remedy))
    };
    let settings = &config.anonymize;
    if settings.transformation == RecodingScope::Local {
        let message = "local recoding searches again among the records that a pass left";
        return refuse("anonymize.transformation", message, "set it to \"full_domain\", or leave --temp out");
    }
    if !settings.microaggregation.is_empty() {
        let message = "an aggregate is of the numbers of all records of a class at once";
        return refuse("anonymize.microaggregation", message, "generalize the attribute instead, or leave --temp out");
    }
    if settings.ceiling.is_enabled() {
        let message = "counterfeits are drawn among all classes at once";
        return refuse("anonymize.ceiling.lines", message, "remove [anonymize.ceiling], or leave --temp out");
    }
    if !config.join.is_empty() {
        let message = "profiles are held in memory beside the records";
        return refuse("join", message, "join them into the input first, or leave --temp out");
    }
    let of_population = |kind| matches!(kind, ModelKind::KMap | ModelKind::DeltaPresence);
    if let Some(index) = config.privacy.model.iter().position(|model| of_population(model.kind)) {
        let message = "the model compares every class with all members of a population";
        let key = format!("privacy.model[{index}].kind");
        return refuse(&key, message, "ask for another model, or leave --temp out");
    }
    Ok(())
}
