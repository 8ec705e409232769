//! What to do next, from what was found.

use super::text::{clean, number};
use crate::risk::audit::Report;

/// Names that a sentence holds.
const NAMED: usize = 3;

fn named(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).map(|name| format!("\"{}\"", clean(name))).collect();
    let rest = names.len().saturating_sub(NAMED);
    if rest > 0 { format!("{} and {rest} more", shown.join(", ")) } else { shown.join(", ") }
}

/// What the arrays of a table leave unsaid; none where there are none.
pub fn about_arrays(report: &Report) -> Option<String> {
    let names: Vec<&str> = report.arrays.iter().map(String::as_str).collect();
    let (first, what, hold) = match &names[..] {
        [] => return None,
        [one] => (*one, "Column", "holds"),
        [first, ..] => (*first, "Columns", "hold"),
    };
    Some(format!(
        "{what} {} {hold} arrays. Each array was judged as one text: nothing is said of the records inside, and they are \
         not safe because of this report. Make one record of each element and audit those, for example: jq -c \
         '.{}[]' FILE | throng audit - --format json --k {}",
        named(&names),
        clean(first),
        report.k
    ))
}

/// Steps, the most urgent first.
pub fn steps(report: &Report) -> Vec<String> {
    let mut steps: Vec<String> = about_arrays(report).into_iter().collect();
    if report.subject.is_none() {
        steps.push(
            "Name the column that says whose record it is (--subject), if one person has several: until then a crowd may be \
             one person."
                .to_owned(),
        );
    }
    let identifiers: Vec<&str> = report.standalone_identifiers.iter().map(String::as_str).collect();
    if !identifiers.is_empty() {
        steps.push(format!(
            "Do not share {}: give the role `identifier` in the record schema, and throng removes them.",
            named(&identifiers)
        ));
    }
    let most: Vec<&str> = report
        .attributes
        .iter()
        .filter(|attribute| attribute.searched && attribute.minimal_qids > 0)
        .map(|attribute| attribute.name.as_str())
        .collect();
    if most.is_empty() && report.risk.attributes > 0 && report.complete && report.arrays.is_empty() {
        steps.push(format!(
            "The searched columns can be shared with k = {} as they are. Look at what gives what away below, and at columns \
             that must not be inferred at all.",
            report.k
        ));
    }
    if !most.is_empty() {
        steps.push(format!(
            "Generalize, beginning with {}: give them hierarchies in a record schema, and let `throng anonymize` find the \
             levels that cost least.",
            named(&most)
        ));
        let widest = report.maximal_non_qids.iter().max_by_key(|set| set.len()).filter(|set| set.len() > 1);
        if let Some(widest) = widest {
            let names: Vec<&str> = widest.iter().map(String::as_str).collect();
            steps.push(format!(
                "Or release columns apart: {} columns ({}) need no generalization as one group.",
                number(widest.len() as u64),
                named(&names)
            ));
        }
    }
    if !report.complete {
        steps.push("Give the search more time (--max-seconds), or fewer columns (--columns).".to_owned());
    }
    if !report.inferences.is_empty() {
        steps.push(
            "Where a column must not be inferred, give it the role `sensitive` and a [[privacy.model]]: crowds alone do not \
             hide what they share."
                .to_owned(),
        );
    }
    steps
}
