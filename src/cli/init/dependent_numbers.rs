//! Numbers that others determine: their differences could show values of one person.

use crate::dataset::infer::{InferredSchema, LinearDependence, NumberValues};
use crate::io::table::LoadedTable;
use crate::start::series_settings::is_signal;
use throng_core::printable::printable;

/// Number that is left out of a series.
#[derive(Debug, PartialEq)]
pub struct DependentNumber {
    /// Name of the number.
    pub name: String,
    /// Names of the numbers that determine it.
    pub others: Vec<String>,
    /// Measurement in the records.
    pub evidence: String,
}

impl DependentNumber {
    /// Formats a comment line.
    pub fn comment(&self) -> String {
        let verb = if self.others.len() == 1 { "nearly determines" } else { "together nearly determine" };
        let others: Vec<String> = self.others.iter().map(|name| comment_text(name)).collect();
        format!("# Left out, since {} {verb} it: {} ({})\n", others.join(", "), comment_text(&self.name), self.evidence)
    }
}

/// Formats a name of the input for a comment: a line break would end the comment.
pub fn comment_text(name: &str) -> String {
    toml_text(&printable(name))
}

/// Formats a string as TOML.
pub fn toml_text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Removes numbers until no number depends on the others.
pub fn remove_dependent_numbers(numbers: &mut Vec<(&str, NumberValues)>) -> Vec<DependentNumber> {
    let mut removed = Vec::new();
    loop {
        let values: Vec<&NumberValues> = numbers.iter().map(|(_, values)| values).collect();
        let Some(found) = LinearDependence::find(&values) else { return removed };
        let others = found.others.iter().map(|at| numbers[*at].0.to_owned()).collect();
        let (name, _) = numbers.remove(found.number);
        let evidence = format!(
            "R² {:.4} in nine of ten records; their differences could show values of one person",
            found.explained
        );
        removed.push(DependentNumber { name: name.to_owned(), others, evidence });
    }
}

/// Formats the key `signals` with comments; empty if no number depends on the others, since all are signals by default.
pub fn independent_signals_text(inferred: &InferredSchema, table: &LoadedTable) -> String {
    let signals = inferred.schema.attributes.iter().filter(|attribute| is_signal(attribute));
    let names: Vec<&str> = signals.map(|attribute| attribute.name.as_str()).collect();
    let values = names.iter().map(|name| NumberValues::read(inferred, table, name));
    let mut numbers: Vec<(&str, NumberValues)> =
        names.iter().zip(values).filter_map(|(name, values)| Some((*name, values?))).collect();
    let removed = remove_dependent_numbers(&mut numbers);
    if removed.is_empty() {
        return String::new();
    }
    let is_kept = |name: &&&str| removed.iter().all(|number| number.name != **name);
    let kept: Vec<String> = names.iter().filter(is_kept).map(|name| toml_text(name)).collect();
    let comments: String = removed.iter().map(DependentNumber::comment).collect();
    format!("signals = [{}]\n{comments}", kept.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: impl Fn(u32) -> u32) -> NumberValues {
        (0..200).map(|at| f64::from(of(at))).collect()
    }

    #[test]
    fn total_and_its_copy_are_removed_with_reasons() {
        let (walk, run) = (|at: u32| at * at % 97, |at: u32| at * 31 % 60);
        // The total of one record in 20 has no parts.
        let part = |at: u32, own: u32| if at % 20 == 7 { 0 } else { own };
        let total = |at: u32| walk(at) + run(at);
        let mut numbers = vec![
            ("total", values(total)),
            ("copy", values(total)),
            ("walk", values(|at| part(at, walk(at)))),
            ("run", values(|at| part(at, run(at)))),
            ("pulse", values(|at| at * 7919 % 101)),
        ];
        let removed = remove_dependent_numbers(&mut numbers);
        let names: Vec<&str> = numbers.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["walk", "run", "pulse"]);
        let comments: Vec<String> = removed.iter().map(DependentNumber::comment).collect();
        assert_eq!(comments.len(), 2);
        assert!(comments[0].starts_with("# Left out, since \"total\" nearly determines it: \"copy\" (R² 1.0000"));
        let reason = "# Left out, since \"walk\", \"run\" together nearly determine it: \"total\" (R² 1.0000";
        assert!(comments[1].starts_with(reason), "{}", comments[1]);
    }

    #[test]
    fn line_break_in_a_name_stays_in_the_comment() {
        let (name, others) = ("a\nkind = \"x\"".to_owned(), vec!["b\r\nc".to_owned()]);
        let comment = DependentNumber { name, others, evidence: "R² 1".to_owned() }.comment();
        assert!(comment.starts_with("# ") && comment.ends_with('\n'), "{comment}");
        assert_eq!(comment.matches(['\n', '\r']).count(), 1, "{comment}");
    }
}
