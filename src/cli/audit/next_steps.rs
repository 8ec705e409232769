//! Next steps after an audit.

use crate::cli::text_format::{number, sanitize_text};
use throng_risk::audit::AuditReport;

const MAX_QUOTED_NAMES: usize = 3;

fn quote_names(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(MAX_QUOTED_NAMES).map(|name| format!("\"{}\"", sanitize_text(name))).collect();
    let rest = names.len().saturating_sub(MAX_QUOTED_NAMES);
    if rest > 0 { format!("{} and {rest} more", shown.join(", ")) } else { shown.join(", ") }
}

/// Warns that arrays are not judged.
pub fn array_warning(report: &AuditReport) -> Option<String> {
    let names: Vec<&str> = report.arrays.iter().map(String::as_str).collect();
    let (what, hold) = match &names[..] {
        [] => return None,
        [_] => ("Column", "holds"),
        _ => ("Columns", "hold"),
    };
    let example = names.iter().find_map(|name| jq_path(name)).map_or(String::new(), |path| {
        format!(", for example: jq -c '{path}[]' FILE | throng audit - --format json --k {}", report.k)
    });
    Some(format!(
        "{what} {} {hold} arrays. Each array was judged as one text: this report does not cover the records inside, and \
         does not show that they are safe. Make one record of each element and audit those{example}",
        quote_names(&names),
    ))
}

/// jq path; `None` for other than letters, digits, `_`, `.`, `-` and spaces, because the command may be pasted into a
/// shell.
fn jq_path(name: &str) -> Option<String> {
    let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ' ');
    let is_word = |step: &str| {
        !step.starts_with(|c: char| c.is_ascii_digit()) && step.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let spelled = |step: &str| match step {
        "" => None,
        word if is_word(word) => Some(format!(".{word}")),
        other => Some(format!(".\"{other}\"")),
    };
    if name.chars().all(harmless) { name.split('.').map(spelled).collect() } else { None }
}

/// Recommends steps, the most urgent first.
pub fn recommended_steps(report: &AuditReport) -> Vec<String> {
    let mut steps: Vec<String> = array_warning(report).into_iter().collect();
    if let Some(id) = &report.likely_subject {
        steps.push(format!(
            "{0} is likely to be the id of a person: its name suggests it, and its values repeat. Such a pseudonym links all records of \
             a person: do not release it, however many records share a value. Name it as the subject (--subject {0}): until then a \
             class may be one person.",
            quote_names(&[id])
        ));
    } else if report.subject.is_none() {
        steps.push(
            "Name the subject column (--subject), if one person has several records: until then a class may be one person."
                .to_owned(),
        );
    }
    let identifiers: Vec<&str> = report.standalone_identifiers.iter().map(String::as_str).collect();
    if !identifiers.is_empty() {
        steps.push(format!(
            "Do not share {}: give the role `identifier` in the record schema, and throng removes them.",
            quote_names(&identifiers)
        ));
    }
    let is_id = |name: &String| report.likely_subject.as_ref() == Some(name);
    let most: Vec<&str> = report
        .attributes
        .iter()
        .filter(|attribute| attribute.searched && attribute.minimal_qids > 0 && !is_id(&attribute.name))
        .map(|attribute| attribute.name.as_str())
        .collect();
    if most.is_empty() && report.risk.attributes > 0 && report.complete && report.arrays.is_empty() {
        let but = report.likely_subject.as_ref().map_or(String::new(), |id| format!(" but {}", quote_names(&[id])));
        steps.push(format!(
            "The searched columns{but} can be shared with k = {} as they are. Check the inferences below, and columns that must \
             not be inferred at all.",
            report.k
        ));
    }
    if !most.is_empty() {
        steps.push(format!(
            "Generalize, beginning with {}: give them hierarchies in a record schema, and let `throng anonymize` find the \
             levels with the lowest loss.",
            quote_names(&most)
        ));
        let without_id =
            |set: &Vec<String>| -> Vec<String> { set.iter().filter(|name| !is_id(name)).cloned().collect() };
        let widest = report.maximal_non_qids.iter().map(without_id).max_by_key(Vec::len).filter(|set| set.len() > 1);
        if let Some(widest) = widest {
            let names: Vec<&str> = widest.iter().map(String::as_str).collect();
            steps.push(format!(
                "Or release the columns in separate groups: {} columns ({}) need no generalization as one group.",
                number(widest.len() as u64),
                quote_names(&names)
            ));
        }
    }
    if !report.complete {
        steps.push("Give the search more time (--max-seconds), or fewer columns (--columns).".to_owned());
    }
    if !report.inferences.is_empty() {
        steps.push(
            "Where a column must not be inferred, give it the role `sensitive` and a [[privacy.model]]: classes alone do not \
             hide the values that they share."
                .to_owned(),
        );
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::jq_path;

    #[test]
    fn jq_path_accepts_only_harmless_names() {
        for (name, path) in [
            ("entry", ".entry"),
            ("a.b_2", ".a.b_2"),
            ("my-list", ".\"my-list\""),
            ("my list.2nd", ".\"my list\".\"2nd\""),
        ] {
            assert_eq!(jq_path(name).as_deref(), Some(path));
        }
        for name in ["", "a..b", "x'; rm -rf ~; '", "a\"b", "a\\b", "$(id)", "`id`", "a\nb", "é", "a|b", "a;b"] {
            assert_eq!(jq_path(name), None, "{name:?}");
        }
    }
}
