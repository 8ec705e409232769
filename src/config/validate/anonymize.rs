//! What a release of one data set at once asks of its configuration.

use std::time::Duration;

use crate::config::complaint::Complaints;
use crate::config::{Config, Diversity, ModelKind, Transformation};

/// `[anonymize]`, and the keys of privacy models.
pub(super) fn anonymize(config: &Config, found: &mut Complaints) {
    let share = (0.0..=1.0).contains(&config.anonymize.suppression_limit);
    found.unless(share, "anonymize.suppression_limit", "a share is between 0 and 1", "give 0 to 1; 0.05 is usual");
    let time = config.anonymize.time_limit.is_none_or(|limit| limit > Duration::ZERO);
    found.unless(time, "anonymize.time_limit", "a search needs time", "give at least 1ms, or remove the key");
    let share = (0.0..=1.0).contains(&config.anonymize.pass_limit);
    found.unless(share, "anonymize.pass_limit", "a share is between 0 and 1", "give 0 to 1");
    presence(config, found);
    ceiling(config, found);
    for (index, model) in config.privacy.model.iter().enumerate() {
        for key in model.missing_keys() {
            let key = format!("privacy.model[{index}].{key}");
            found.unless(false, &key, "this model needs the key", "set it; docs/configuration.md has an example");
        }
    }
}

/// δ-presence speaks of everybody whom a class covers, present or not. A class that is absent says something of them too, and
/// an aggregate covers nobody.
fn presence(config: &Config, found: &mut Complaints) {
    if !config.privacy.model.iter().any(|model| model.kind == ModelKind::DeltaPresence) {
        return;
    }
    found.unless(
        config.anonymize.transformation == Transformation::FullDomain,
        "anonymize.transformation",
        "delta_presence does not hold for local recoding: that a class was left for a later pass tells who is present",
        "set \"full_domain\", or remove the model",
    );
    found.unless(
        config.anonymize.microaggregation.is_empty(),
        "anonymize.microaggregation",
        "delta_presence counts those whom the cells of a class cover, and an aggregate covers nobody",
        "remove it, or the model",
    );
}

/// A class of more lines than a ceiling can fill would be a mistake in the unit.
const MOST_LINES: usize = 1000;

/// What an h-ceiling goes with.
fn ceiling(config: &Config, found: &mut Complaints) {
    let (settings, ceiling) = (&config.anonymize, &config.anonymize.ceiling);
    let h = ceiling.h.is_none_or(|h| (0.0..=1.0).contains(&h));
    found.unless(h, "anonymize.ceiling.h", "a degree is between 0 and 1", "give 0 to 1, or remove the key");
    let share = (0.0..=1.0).contains(&ceiling.share);
    found.unless(share, "anonymize.ceiling.share", "a share is between 0 and 1", "give 0 to 1; 0.02 is usual");
    let Some(lines) = ceiling.lines else {
        let remedy = "set anonymize.ceiling.lines, which asks for the ceiling, or remove the key";
        found.unless(ceiling.h.is_none(), "anonymize.ceiling.h", "no ceiling is asked for", remedy);
        let none = ceiling.catalog.is_none();
        found.unless(none, "anonymize.ceiling.catalog", "there is no catalog without a ceiling", remedy);
        return;
    };
    found.unless(
        (config.privacy.crowd() + 1..=MOST_LINES).contains(&lines),
        "anonymize.ceiling.lines",
        "counterfeits count for no crowd, so a class has more lines than people it needs",
        "give more than privacy.k and privacy.colluders together, and at most 1000",
    );
    let full = settings.transformation == Transformation::FullDomain;
    let message = "a ceiling is kept by one policy for all records";
    found.unless(full, "anonymize.transformation", message, "set \"full_domain\", or remove anonymize.ceiling.lines");
    let message = "an aggregate is a number of members, and counterfeits have none";
    let remedy = "remove it, or anonymize.ceiling.lines";
    found.unless(settings.microaggregation.is_empty(), "anonymize.microaggregation", message, remedy);
    for (index, model) in config.privacy.model.iter().enumerate() {
        let holds = match model.kind {
            ModelKind::KAnonymity | ModelKind::KMap => true,
            ModelKind::LDiversity => model.diversity == Diversity::Distinct,
            ModelKind::TCloseness | ModelKind::DeltaPresence => false,
        };
        let key = format!("privacy.model[{index}].kind");
        let message = "counterfeits would change what a reader sees of this model in a class";
        let remedy =
            "remove it or anonymize.ceiling.lines; k_anonymity, k_map and distinct l_diversity go with a ceiling";
        found.unless(holds, &key, message, remedy);
    }
}
