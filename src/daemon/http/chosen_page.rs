//! Groups that the planner chose, as `GET /plan` shows them: names, and figures so coarse that one record of the sample changes them
//! but by a draw that nobody foresees (docs/threats.md, 28).

use crate::anonymity::planner::grouping::Apart;
use crate::config::Treat;
use crate::start::chosen::Grown;
use crate::start::composition::Treated;
use crate::telemetry::{Draws, in_steps};
use serde_json::{Value, json};

/// Losses, of a cell and of a record in cells, are in steps of this.
const LOSS: f64 = 0.05;
/// Bits are in steps of this.
const BITS: f64 = 0.5;
/// Records that groups must be chosen from for their figures to be shown.
const FEWEST_RECORDS: usize = 1_000;

/// How the groups were chosen, what speaks for each, and what the wishes have come to.
#[must_use]
pub fn summary(grown: &Grown, attribute_names: &[&str], draws: Draws) -> Value {
    let names = |attributes: &[usize]| attributes.iter().map(|&a| attribute_names[a]).collect::<Vec<_>>();
    // Of few records no figure is shown: one of them would move it.
    let step = |figure: &str, value: f64, step: f64| {
        (grown.records >= FEWEST_RECORDS).then(|| in_steps(value, step, draws.draw(figure, 0)))
    };
    let groups = grown.shapes.iter().zip(&grown.why).map(|(shape, why)| {
        let name = &shape.name;
        json!({
            "name": name,
            "expected_loss": why.as_ref().and_then(|why| step(&format!("group loss {name}"), why.loss, LOSS)),
            "bits": why.as_ref().and_then(|why| step(&format!("group bits {name}"), why.bits, BITS)),
        })
    });
    let wishes = grown.wishes.iter().enumerate().map(|(number, (wish, answer))| {
        let apart = answer.apart.iter().map(|(attribute, why)| {
            json!({
                "attribute": attribute_names[*attribute],
                "why": why.name(),
                "loss": match why {
                    Apart::Price { loss } => step(&format!("wish {number} {attribute}"), *loss, LOSS),
                    Apart::Identifier | Apart::Pace | Apart::Width | Apart::Elsewhere | Apart::Compartment => None,
                },
            })
        });
        json!({
            "attributes": names(&wish.attributes),
            "weight": wish.weight,
            "together": names(&answer.together),
            "loss": step(&format!("wish {number}"), answer.loss, LOSS),
            "apart": apart.collect::<Vec<_>>(),
        })
    });
    json!({"how": grown.how.name(), "groups": groups.collect::<Vec<_>>(), "wishes": wishes.collect::<Vec<_>>()})
}

/// Which treatments the rules have come to: names and rules, and none of the shares that they go by. Attributes that are
/// generalized, as without any rule, are left out.
#[must_use]
pub fn treatments(treated: &[Treated], attribute_names: &[&str]) -> Value {
    let of = |one: &Treated| {
        json!({
            "attribute": attribute_names[one.attribute],
            "treatment": one.treat.name(),
            "by": one.by.key(),
        })
    };
    treated.iter().filter(|one| one.treat != Treat::Generalize).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymity::planner::GroupShape;
    use crate::anonymity::planner::coverage::Standing;
    use crate::anonymity::planner::grouping::GrownGroup;
    use crate::anonymity::planner::grouping::{Wish, WishAnswer};
    use crate::config::{Grouping, Preset};
    use crate::start::composition::By;

    fn grown(loss: f64) -> Grown {
        let shape =
            GroupShape { name: "a".into(), quasi: vec![0, 1], sensitive: vec![], insensitive: vec![], ranges: false };
        let why = GrownGroup { attributes: vec![0, 1], loss, bits: loss };
        let answer = WishAnswer { together: vec![0, 1], loss, apart: vec![(2, Apart::Price { loss })] };
        let wish = Wish { attributes: vec![0, 1, 2], weight: 2.0 };
        Grown {
            how: Grouping::Price,
            shapes: vec![shape],
            why: vec![Some(why)],
            wishes: vec![(wish, answer)],
            records: 1234,
        }
    }

    #[test]
    fn treatments_are_named_without_the_shares_that_they_go_by() {
        let standing = Some(Standing { coverage: 0.4321, cardinality: 0.1234 });
        let of = |attribute, treat, by| Treated { attribute, treat, by, standing };
        let preset = By::Preset(Preset::Coverage);
        let treated =
            [of(0, Treat::Perturb, By::Rule(2)), of(1, Treat::Generalize, preset), of(2, Treat::Compartment, preset)];
        let expected = json!([
            {"attribute": "age", "treatment": "perturb", "by": "treatment.rule[2]"},
            {"attribute": "job", "treatment": "compartment", "by": "treatment.preset"},
        ]);
        assert_eq!(treatments(&treated, &["age", "zip", "job"]), expected);
    }

    #[test]
    fn the_page_has_names_and_no_figure_of_one_record() {
        let shown = |loss| summary(&grown(loss), &["age", "zip", "job"], Draws::new(&[3; 32]));
        let page = shown(0.4);
        assert_eq!(page["wishes"][0]["together"], json!(["age", "zip"]));
        assert_eq!(page["wishes"][0]["apart"][0]["attribute"], "job");
        assert_eq!(page["wishes"][0]["apart"][0]["why"], "price");
        // A sample of 3,000 records: one of them moves a mean by a three-thousandth, and next to no page by that.
        let moved =
            (0..100).map(|n| 0.002 + f64::from(n) / 100.0).filter(|loss| shown(*loss) != shown(loss + 1.0 / 3000.0));
        assert!(moved.count() < 10);
        assert!(!page.to_string().contains("1234"));
    }
}
