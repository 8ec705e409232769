//! Groups of the planner, and results of wishes.

use crate::cli::text_format::counted;
use crate::planner::group_merging::{GroupingWish, SeparationReason, WishResult};
use crate::start::group_choice::ChosenGroups;
use throng_core::plan::GroupShape;
use throng_core::plan::plan_shared_attributes::find_shared_attributes;
use throng_core::values::schema::Schema;

/// Configuration text with reasons and costs.
pub(super) fn describe_chosen_groups(grown: &ChosenGroups, schema: &Schema, file: &str) -> String {
    let mut text = format!(
        "{file}: groups chosen from {} (plan.groups = {:?}):\n",
        counted(grown.records as u64, "record"),
        grown.how.name()
    );
    for (shape, why) in grown.shapes.iter().zip(&grown.why) {
        text += &format!(
            "  [[group]]\n  name = {:?}\n  attributes = [{}]",
            shape.name,
            quoted_attribute_names(&shape_attributes(shape), schema)
        );
        text += &match why {
            Some(why) => {
                format!("   # expected loss {:.3} per cell, {:.2} bits between its attributes\n", why.loss, why.bits)
            }
            None => "   # no other attribute of its kind to be released with\n".to_owned(),
        };
    }
    let shared = find_shared_attributes(grown.shapes.iter().map(|shape| shape.quasi.as_slice()));
    if !shared.is_empty() {
        text += &format!(
            "  plan.shared: {} is part of every group that changes within a person, at one level that each plan chooses; the loss above is that of the others\n",
            quoted_attribute_names(&shared, schema)
        );
    }
    for (wish, answer) in &grown.wishes {
        text += &format!("  [[keep]] {} (weight {}): ", quoted_attribute_names(&wish.attributes, schema), wish.weight);
        text += &describe_wish(wish, answer, schema);
    }
    text
}

fn shape_attributes(shape: &GroupShape) -> Vec<usize> {
    [&shape.quasi[..], &shape.sensitive, &shape.insensitive].concat()
}

fn quoted_attribute_names(attributes: &[usize], schema: &Schema) -> String {
    let names: Vec<String> = attributes.iter().map(|&a| format!("{:?}", schema.attributes[a].name)).collect();
    names.join(", ")
}

fn describe_wish(wish: &GroupingWish, answer: &WishResult, schema: &Schema) -> String {
    let price = format!("for {:.2} lost cells per record", answer.loss);
    let mut text = match answer.grouped_attributes_of_wish.len() {
        all if all == wish.attributes.len() => return format!("are released together, {price}\n"),
        0 | 1 => "each is released separately\n".to_owned(),
        _ => {
            format!(
                "{} are released together, {price}\n",
                quoted_attribute_names(&answer.grouped_attributes_of_wish, schema)
            )
        }
    };
    for (attribute, why) in &answer.separated_attributes {
        let reason = match why {
            SeparationReason::Identifier => "one of them identifies people and is never released".to_owned(),
            SeparationReason::ChangeRate => {
                "one of them changes within a person and the other does not (privacy.max_delay)".to_owned()
            }
            SeparationReason::Width => "the group would be too wide".to_owned(),
            SeparationReason::Compartment => "a rule keeps it in a compartment (treatment)".to_owned(),
            SeparationReason::StrongerDependence => {
                "it is released with attributes that are more closely related to it".to_owned()
            }
            SeparationReason::Price { loss } => {
                format!("it would lose {loss:.2} more cells per record (a higher weight or plan.price allows that)")
            }
        };
        text += &format!("    without {}: {reason}\n", quoted_attribute_names(&[*attribute], schema));
    }
    text
}
