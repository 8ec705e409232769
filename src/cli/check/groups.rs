//! The groups that the planner chose, and what the wishes have come to.

use crate::anonymity::plan::shared::in_several;
use crate::anonymity::planner::GroupShape;
use crate::anonymity::planner::grouping::{Apart, Wish, WishAnswer};
use crate::start::chosen::Grown;
use throng_core::values::schema::Schema;

/// The groups, ready to be put into the configuration, what speaks for each, and the price of every wish.
pub(super) fn described(grown: &Grown, schema: &Schema, file: &str) -> String {
    let mut text =
        format!("{file}: groups grown from {} records (plan.groups = {:?}):\n", grown.records, grown.how.name());
    for (shape, why) in grown.shapes.iter().zip(&grown.why) {
        text +=
            &format!("  [[group]]\n  name = {:?}\n  attributes = [{}]", shape.name, names(&attributes(shape), schema));
        text += &match why {
            Some(why) => {
                format!("   # expected loss {:.3} a cell, {:.2} bits between its attributes\n", why.loss, why.bits)
            }
            None => "   # nothing of its kind to leave with\n".to_owned(),
        };
    }
    let shared = in_several(grown.shapes.iter().map(|shape| shape.quasi.as_slice()));
    if !shared.is_empty() {
        text += &format!(
            "  plan.shared: {} stands in every group that changes within a person, at one level that each plan chooses; the loss above is of the others\n",
            names(&shared, schema)
        );
    }
    for (wish, answer) in &grown.wishes {
        text += &format!("  [[keep]] {} (weight {}): ", names(&wish.attributes, schema), wish.weight);
        text += &granted(wish, answer, schema);
    }
    text
}

fn attributes(shape: &GroupShape) -> Vec<usize> {
    [&shape.quasi[..], &shape.sensitive, &shape.insensitive].concat()
}

fn names(attributes: &[usize], schema: &Schema) -> String {
    let names: Vec<String> = attributes.iter().map(|&a| format!("{:?}", schema.attributes[a].name)).collect();
    names.join(", ")
}

/// What a wish has come to, in a sentence.
fn granted(wish: &Wish, answer: &WishAnswer, schema: &Schema) -> String {
    let price = format!("for {:.2} lost cells of a record", answer.loss);
    let mut text = match answer.together.len() {
        all if all == wish.attributes.len() => return format!("leave together, {price}\n"),
        0 | 1 => "each leaves apart\n".to_owned(),
        _ => format!("{} leave together, {price}\n", names(&answer.together, schema)),
    };
    for (attribute, why) in &answer.apart {
        let reason = match why {
            Apart::Identifier => "one of them identifies people and never leaves".to_owned(),
            Apart::Pace => "the one changes within a person and the other does not (privacy.max_delay)".to_owned(),
            Apart::Width => "the group would be too wide".to_owned(),
            Apart::Compartment => "a rule keeps it in a compartment (treatment)".to_owned(),
            Apart::Elsewhere => "it leaves beside attributes that say more of it".to_owned(),
            Apart::Price { loss } => {
                format!("it would lose {loss:.2} more cells of a record (a higher weight or plan.price allows that)")
            }
        };
        text += &format!("    without {}: {reason}\n", names(&[*attribute], schema));
    }
    text
}
