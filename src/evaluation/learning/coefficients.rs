//! The weight of each attribute in a model ([POD] Table 6.4).

use super::fitting::{Fitted, Records};
use serde::Serialize;

/// The weight of an attribute: how far its values move the score, as the standard deviation over the tested records, scaled so that the
/// largest of the model is 100. Of a number this is the size of its standardized coefficient.
#[derive(Clone, Debug, Serialize)]
pub struct Coefficient {
    /// The attribute.
    pub attribute: String,
    /// In the model of all attributes before.
    pub whole: Option<f64>,
    /// In the model of the attributes of the group before.
    pub before: Option<f64>,
    /// In the model of the lines.
    pub after: Option<f64>,
}

/// By attribute of `every` its weight in the model of all of them, and in those of `own`.
pub(super) fn of(
    records: &Records<'_>,
    every: &[usize],
    own: &[usize],
    [whole, before, after]: [&Fitted; 3],
) -> Vec<Coefficient> {
    let [whole, before, after] = [whole, before, after].map(|fitted| scaled(records, fitted));
    let among = |weights: &Option<Vec<f64>>, attributes: &[usize], attribute: usize| {
        let at = attributes.iter().position(|a| *a == attribute)?;
        weights.as_ref().map(|weights| weights[at])
    };
    let of = |&attribute: &usize| Coefficient {
        attribute: records.original.schema.attributes[attribute].name.clone(),
        whole: among(&whole, every, attribute),
        before: among(&before, own, attribute),
        after: among(&after, own, attribute),
    };
    every.iter().map(of).collect()
}

/// By attribute of a model its weight, the largest 100; none without a model.
fn scaled(records: &Records<'_>, fitted: &Fitted) -> Option<Vec<f64>> {
    let model = fitted.model.as_ref()?;
    let rows = records.tested.len().max(1) as f64;
    // By attribute and output of the model: sum and sum of squares.
    let mut sums: Vec<Vec<(f64, f64)>> = Vec::new();
    for &row in &records.tested {
        for (at, entries) in fitted.features.by_attribute(records.original, row).enumerate() {
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
