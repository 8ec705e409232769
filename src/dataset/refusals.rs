//! What a data set in a file cannot be asked, before anything is read.

use super::error::{AnonymizeError, problem};
use crate::config::{Config, ModelKind, Transformation};

/// Refuses by name what needs the records in memory.
///
/// # Errors
/// The key at fault, with what would do instead.
pub fn refuse(config: &Config, file: &str) -> Result<(), AnonymizeError> {
    let refuse = |key: &str, message: &str, remedy: &str| {
        Err(problem(file, key, format!("{message}, which a data set in a file (--temp) has not"), remedy))
    };
    let settings = &config.anonymize;
    if settings.transformation == Transformation::Local {
        let message = "local recoding searches again among the records that a pass left";
        return refuse("anonymize.transformation", message, "set it to \"full_domain\", or leave --temp out");
    }
    if !settings.microaggregation.is_empty() {
        let message = "an aggregate is of the numbers of all records of a class at once";
        return refuse("anonymize.microaggregation", message, "generalize the attribute instead, or leave --temp out");
    }
    if settings.ceiling.is_on() {
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
