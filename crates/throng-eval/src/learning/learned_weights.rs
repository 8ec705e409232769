//! Attribute weights of a model (\[POD] Table 6.4).

use super::model_fitting::{FittedModel, LearningRecords};
use serde::Serialize;

/// Standard deviation of an attribute's score part, scaled to a maximum of 100.
#[derive(Clone, Debug, Serialize)]
pub struct LearnedWeight {
    /// Attribute name.
    pub attribute: String,
    /// Weight in the original model of all attributes.
    pub whole: Option<f64>,
    /// Weight in the original model of the group.
    pub before: Option<f64>,
    /// Weight in the model of lines.
    pub after: Option<f64>,
}

/// `every` in the first model, `own` in the others.
pub(super) fn weights_of_attributes(
    records: &LearningRecords<'_>,
    every: &[usize],
    own: &[usize],
    [whole, before, after]: [&FittedModel; 3],
) -> Vec<LearnedWeight> {
    let [whole, before, after] = [whole, before, after].map(|fitted| scaled_weights(records, fitted));
    let among = |weights: &Option<Vec<f64>>, attributes: &[usize], attribute: usize| {
        let at = attributes.iter().position(|a| *a == attribute)?;
        weights.as_ref().map(|weights| weights[at])
    };
    let of = |&attribute: &usize| LearnedWeight {
        attribute: records.original.schema.attributes[attribute].name.clone(),
        whole: among(&whole, every, attribute),
        before: among(&before, own, attribute),
        after: among(&after, own, attribute),
    };
    every.iter().map(of).collect()
}

fn scaled_weights(records: &LearningRecords<'_>, fitted: &FittedModel) -> Option<Vec<f64>> {
    let model = fitted.model.as_ref()?;
    let rows = records.tested.len().max(1) as f64;
    // Sums and squares by attribute and output.
    let mut sums: Vec<Vec<(f64, f64)>> = Vec::new();
    for &row in &records.tested {
        for (at, entries) in fitted.features.encode_by_attribute(records.original, row).enumerate() {
            if sums.len() == at {
                sums.push(Vec::new());
            }
            for (output, part) in model.contributions(entries).enumerate() {
                if sums[at].len() == output {
                    sums[at].push((0.0, 0.0));
                }
                let (sum, squares) = &mut sums[at][output];
                *sum += part;
                *squares += part * part;
            }
        }
    }
    let variance = |(sum, squares): &(f64, f64)| (squares / rows - (sum / rows).powi(2)).max(0.0);
    let spread =
        |outputs: &Vec<(f64, f64)>| (outputs.iter().map(variance).sum::<f64>() / outputs.len().max(1) as f64).sqrt();
    let spreads: Vec<f64> = sums.iter().map(spread).collect();
    let most = spreads.iter().copied().fold(0.0, f64::max);
    Some(spreads.iter().map(|spread| 100.0 * spread / most.max(1e-12)).collect())
}
