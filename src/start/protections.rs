//! Converts `[[privacy.model]]` to requirements on sensitive attributes.

use crate::config::{Config, ConfigProblem, DiversityKind, ModelKind, PrivacyModel};
use throng_core::privacy::protection::{SensitiveProtection, ValueRequirement};
use throng_core::values::schema::{Role, Schema};

/// Returns the protected attributes in schema order, with their requirements.
///
/// # Errors
/// Returns every model that a stream cannot guarantee.
pub fn protections(
    config: &Config,
    schema: &Schema,
    file: &str,
) -> Result<Vec<SensitiveProtection>, Vec<ConfigProblem>> {
    let mut problems = Vec::new();
    let mut found: Vec<SensitiveProtection> = Vec::new();
    for (index, model) in config.privacy.model.iter().enumerate() {
        match asked(model, config, schema) {
            Ok(None) => {}
            Ok(Some((attribute, requirement))) => match found.iter_mut().find(|p| p.attribute == attribute) {
                Some(protection) => protection.requirements.push(requirement),
                None => found.push(SensitiveProtection {
                    attribute,
                    requirements: vec![requirement],
                    colluders: config.privacy.colluders,
                }),
            },
            Err((key, message, remedy)) => {
                problems.push(ConfigProblem::new(file, format!("privacy.model[{index}].{key}"), message, remedy));
            }
        }
    }
    found.sort_unstable_by_key(|protection| protection.attribute);
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

type ModelRefusal = (&'static str, String, &'static str);

/// None if R(k) implies the model.
fn asked(
    model: &PrivacyModel,
    config: &Config,
    schema: &Schema,
) -> Result<Option<(usize, ValueRequirement)>, ModelRefusal> {
    let whole = |l: f64| {
        let sound = l.fract() == 0.0 && (1.0..1e9).contains(&l);
        let refused = || ("l", "this diversity is a number of values".to_owned(), "give a whole number, 2 to 1000");
        if sound { Ok(l as usize) } else { Err(refused()) }
    };
    let l = model.l.unwrap_or_default();
    let requirement = match (model.kind, model.diversity) {
        (ModelKind::KAnonymity, _) => {
            let message = "a stream has a single k, privacy.k".to_owned();
            return implied(model, config, message, "set privacy.k to the greater of the two");
        }
        (ModelKind::KMap, _) => {
            let message = "a stream has no population except its subjects, and each class has privacy.k of them";
            return Err(("kind", message.to_owned(), "remove the model, or use throng anonymize"));
        }
        (ModelKind::DeltaPresence, _) => {
            let message = "a stream cannot guarantee δ-presence: absent subjects are unknown before it ends";
            return Err(("kind", message.to_owned(), "remove the model, or use throng anonymize"));
        }
        (ModelKind::LDiversity, DiversityKind::Distinct) => ValueRequirement::Distinct { l: whole(l)? },
        (ModelKind::LDiversity, DiversityKind::Entropy) => ValueRequirement::Entropy { l },
        (ModelKind::LDiversity, DiversityKind::Recursive) => {
            ValueRequirement::Recursive { c: model.c.unwrap_or_default(), l: whole(l)? }
        }
        (ModelKind::TCloseness, _) => {
            ValueRequirement::Closeness { t: model.t.unwrap_or_default(), ground: model.ground }
        }
    };
    requirement
        .check()
        .map_err(|(key, range)| (key, format!("{key} is out of range; give {range}"), "correct the value"))?;
    let name = model.attribute.as_deref().unwrap_or_default();
    let Some(attribute) = schema.position(name) else {
        return Err(("attribute", format!("the schema has no attribute {name:?}"), "correct the name"));
    };
    match schema.attributes[attribute].role {
        Role::Sensitive => Ok(Some((attribute, requirement))),
        role => {
            let message =
                format!("{name:?} has the role {}, but the model protects a sensitive attribute", role.name());
            Err(("attribute", message, "give it the role sensitive in the schema: it cannot be quasi too"))
        }
    }
}

/// R(k) implies the model if its k is at most `privacy.k`.
fn implied(
    model: &PrivacyModel,
    config: &Config,
    message: String,
    remedy: &'static str,
) -> Result<Option<(usize, ValueRequirement)>, ModelRefusal> {
    match model.k {
        Some(k) if (1..=config.privacy.k as u64).contains(&k) => Ok(None),
        _ => Err(("k", message, remedy)),
    }
}
