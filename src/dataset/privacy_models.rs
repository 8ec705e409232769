//! Converts `[privacy]` into the models of a search.

use super::error::{AnonymizeError, operator_error};
use super::input_encoding::DatasetInput;
use crate::config::{Config, DiversityKind, ModelKind};
use throng_core::domain::Domain;
use throng_core::privacy::{ClassPrivacyModel, ValueRequirement};
use throng_core::values::schema::Role;

/// Returns k-anonymity by `privacy.k`, and every `[[privacy.model]]`.
pub fn models(
    config: &Config,
    file: &str,
    input: &DatasetInput,
    sensitive_domains: &[Domain],
) -> Result<Vec<ClassPrivacyModel>, AnonymizeError> {
    let mut models = vec![ClassPrivacyModel::KAnonymity { k: config.privacy.required_subjects() as u64 }];
    for (index, model) in config.privacy.model.iter().enumerate() {
        let key = |name: &str| format!("privacy.model[{index}].{name}");
        let attribute = || {
            let name = model.attribute.as_deref().unwrap_or_default();
            let position = input.schema.position(name);
            match position.map(|a| input.schema.attributes[a].role) {
                Some(Role::Sensitive) => {}
                Some(role) => {
                    let message =
                        format!("{name:?} has the role {}, but the model protects a sensitive attribute", role.name());
                    let remedy = "give it the role sensitive in the schema: it cannot be quasi too";
                    return Err(operator_error(file, key("attribute"), message, remedy));
                }
                None => {
                    let message = format!("the schema has no attribute {name:?}");
                    return Err(operator_error(file, key("attribute"), message, "correct the name"));
                }
            }
            Ok(input.sensitive.iter().position(|&a| Some(a) == position).unwrap_or_default())
        };
        let whole = |l: f64| {
            if l.fract() == 0.0 && (1.0..1e9).contains(&l) {
                return Ok(l as usize);
            }
            Err(operator_error(
                file,
                key("l"),
                "this diversity counts values".to_owned(),
                "give a whole number, 1 or more",
            ))
        };
        let l = model.l.unwrap_or_default();
        models.push(match (model.kind, model.diversity) {
            (ModelKind::KAnonymity, _) => ClassPrivacyModel::KAnonymity { k: model.k.unwrap_or_default() },
            (ModelKind::KMap, _) => ClassPrivacyModel::KMap { k: model.k.unwrap_or_default() },
            (ModelKind::LDiversity, DiversityKind::Distinct) => {
                let attribute = attribute()?;
                ClassPrivacyModel::Sensitive {
                    attribute,
                    of: ValueRequirement::Distinct { l: whole(l)? + config.privacy.colluders },
                }
            }
            (ModelKind::LDiversity, DiversityKind::Entropy) => {
                ClassPrivacyModel::Sensitive { attribute: attribute()?, of: ValueRequirement::Entropy { l } }
            }
            (ModelKind::LDiversity, DiversityKind::Recursive) => {
                let attribute = attribute()?;
                let c = model.c.unwrap_or_default();
                ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Recursive { c, l: whole(l)? } }
            }
            (ModelKind::TCloseness, _) => {
                let attribute = attribute()?;
                let closeness = ValueRequirement::Closeness { t: model.t.unwrap_or_default(), ground: model.ground };
                ClassPrivacyModel::Sensitive {
                    attribute,
                    of: closeness.with_ground_metric(&sensitive_domains[attribute].parents()),
                }
            }
            (ModelKind::DeltaPresence, _) => {
                if input.schema.subject.is_some() {
                    let message = "delta_presence counts records, but the schema names a subject".to_owned();
                    let remedy = "give one record per person, and the subject the role identifier";
                    return Err(operator_error(file, key("kind"), message, remedy));
                }
                ClassPrivacyModel::Presence { min: model.min.unwrap_or_default(), max: model.max.unwrap_or_default() }
            }
        });
    }
    Ok(models)
}
