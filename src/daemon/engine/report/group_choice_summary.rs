//! Groups chosen by the planner, for `GET /plan`. One record changes a number only with a secret random draw
//! (docs/internals/threats.md, 28).

use crate::config::TreatmentMethod;
use crate::planner::group_merging::SeparationReason;
use crate::start::group_choice::ChosenGroups;
use crate::start::treatment_selection::SelectedTreatment;
use crate::telemetry::{RoundingDraws, round_to_step};
use serde_json::{Value, json};

const GROUP_LOSS_STEP: f64 = 0.05;
/// Step of information in bits.
const BITS_STEP: f64 = 0.5;
const MIN_SAMPLE_RECORDS: usize = 1_000;

/// Returns the method, the groups, and the outcome of the wishes.
#[must_use]
pub fn group_choice_summary(grown: &ChosenGroups, attribute_names: &[&str], draws: RoundingDraws) -> Value {
    let names = |attributes: &[usize]| attributes.iter().map(|&a| attribute_names[a]).collect::<Vec<_>>();
    // One record would change the numbers of a small sample.
    let step = |figure: &str, value: f64, step: f64| {
        (grown.records >= MIN_SAMPLE_RECORDS).then(|| round_to_step(value, step, draws.draw(figure, 0)))
    };
    let groups = grown.shapes.iter().zip(&grown.why).map(|(shape, why)| {
        let name = &shape.name;
        json!({
            "name": name,
            "expected_loss": why.as_ref().and_then(|why| step(&format!("group loss {name}"), why.loss, GROUP_LOSS_STEP)),
            "bits": why.as_ref().and_then(|why| step(&format!("group bits {name}"), why.bits, BITS_STEP)),
        })
    });
    let wishes = grown.wishes.iter().enumerate().map(|(number, (wish, answer))| {
        let apart = answer.separated_attributes.iter().map(|(attribute, why)| {
            json!({
                "attribute": attribute_names[*attribute],
                "why": why.name(),
                "loss": match why {
                    SeparationReason::Price { loss } => step(&format!("wish {number} {attribute}"), *loss, GROUP_LOSS_STEP),
                    SeparationReason::Identifier | SeparationReason::ChangeRate | SeparationReason::Width | SeparationReason::StrongerDependence | SeparationReason::Compartment => None,
                },
            })
        });
        json!({
            "attributes": names(&wish.attributes),
            "weight": wish.weight,
            "together": names(&answer.grouped_attributes_of_wish),
            "loss": step(&format!("wish {number}"), answer.loss, GROUP_LOSS_STEP),
            "apart": apart.collect::<Vec<_>>(),
        })
    });
    json!({"how": grown.how.name(), "groups": groups.collect::<Vec<_>>(), "wishes": wishes.collect::<Vec<_>>()})
}

/// Returns the selected treatments except generalization, the default.
#[must_use]
pub fn treatment_summary(treated: &[SelectedTreatment], attribute_names: &[&str]) -> Value {
    let of = |one: &SelectedTreatment| {
        json!({
            "attribute": attribute_names[one.attribute],
            "treatment": one.treat.name(),
            "by": one.by.key(),
        })
    };
    treated.iter().filter(|one| one.treat != TreatmentMethod::Generalize).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{GroupSelection, TreatmentPreset};
    use crate::planner::attribute_rarity::AttributeRarity;
    use crate::planner::group_merging::MergedGroup;
    use crate::planner::group_merging::{GroupingWish, WishResult};
    use crate::start::treatment_selection::TreatmentOrigin;
    use throng_core::plan::GroupShape;

    fn grown(loss: f64) -> ChosenGroups {
        let shape =
            GroupShape { name: "a".into(), quasi: vec![0, 1], sensitive: vec![], insensitive: vec![], ranges: false };
        let why = MergedGroup { attributes: vec![0, 1], loss, bits: loss };
        let answer = WishResult {
            grouped_attributes_of_wish: vec![0, 1],
            loss,
            separated_attributes: vec![(2, SeparationReason::Price { loss })],
        };
        let wish = GroupingWish { attributes: vec![0, 1, 2], weight: 2.0 };
        ChosenGroups {
            how: GroupSelection::Price,
            shapes: vec![shape],
            why: vec![Some(why)],
            wishes: vec![(wish, answer)],
            records: 1234,
        }
    }

    #[test]
    fn treatments_are_listed_without_their_shares() {
        let standing = Some(AttributeRarity { coverage: 0.4321, cardinality: 0.1234 });
        let of = |attribute, treat, by| SelectedTreatment { attribute, treat, by, standing };
        let preset = TreatmentOrigin::Preset(TreatmentPreset::Coverage);
        let treated = [
            of(0, TreatmentMethod::Perturb, TreatmentOrigin::Rule(2)),
            of(1, TreatmentMethod::Generalize, preset),
            of(2, TreatmentMethod::Compartment, preset),
        ];
        let expected = json!([
            {"attribute": "age", "treatment": "perturb", "by": "treatment.rule[2]"},
            {"attribute": "job", "treatment": "compartment", "by": "treatment.preset"},
        ]);
        assert_eq!(treatment_summary(&treated, &["age", "zip", "job"]), expected);
    }

    #[test]
    fn group_choice_page_hides_the_effect_of_one_record() {
        let shown = |loss| group_choice_summary(&grown(loss), &["age", "zip", "job"], RoundingDraws::new(&[3; 32]));
        let page = shown(0.4);
        assert_eq!(page["wishes"][0]["together"], json!(["age", "zip"]));
        assert_eq!(page["wishes"][0]["apart"][0]["attribute"], "job");
        assert_eq!(page["wishes"][0]["apart"][0]["why"], "price");
        // One of 3,000 records changes a mean by 1/3000.
        let moved =
            (0..100).map(|n| 0.002 + f64::from(n) / 100.0).filter(|loss| shown(*loss) != shown(loss + 1.0 / 3000.0));
        assert!(moved.count() < 10);
        assert!(!page.to_string().contains("1234"));
    }
}
