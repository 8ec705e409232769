//! Limits of a data set in a file.

use super::error::{AnonymizeError, operator_error};
use crate::config::{Config, ModelKind, RecodingScope};

/// Refuses settings that need the records in memory.
///
/// # Errors
/// Names the key and an alternative.
pub fn refuse_memory_only_settings(config: &Config, file: &str) -> Result<(), AnonymizeError> {
    let refuse = |key: &str, message: &str, remedy: &str| {
        Err(operator_error(file, key, format!("{message}; not supported for a data set in a file (--temp)"), remedy))
    };
    let settings = &config.anonymize;
    if settings.transformation == RecodingScope::Local {
        let message = "local recoding repeats the search over unreleased records";
        return refuse("anonymize.transformation", message, "set it to \"full_domain\", or omit --temp");
    }
    if !settings.microaggregation.is_empty() {
        let message = "an aggregate needs the numbers of all records of a class in memory";
        return refuse("anonymize.microaggregation", message, "generalize the attribute instead, or omit --temp");
    }
    if settings.ceiling.is_enabled() {
        let message = "counterfeits are drawn from all classes together";
        return refuse("anonymize.ceiling.lines", message, "remove [anonymize.ceiling], or omit --temp");
    }
    if !config.join.is_empty() {
        let message = "profiles are held in memory with the records";
        return refuse("join", message, "join them into the input first, or omit --temp");
    }
    let of_population = |kind| matches!(kind, ModelKind::KMap | ModelKind::DeltaPresence);
    if let Some(index) = config.privacy.model.iter().position(|model| of_population(model.kind)) {
        let message = "the model compares every class with all members of a population";
        let key = format!("privacy.model[{index}].kind");
        return refuse(&key, message, "use another model, or omit --temp");
    }
    Ok(())
}
