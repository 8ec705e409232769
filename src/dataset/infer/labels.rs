//! Groups of labels. What belongs together in the world is for people to say; what can be measured is proposed: neighbours
//! where labels begin with numbers, else neighbours by how frequent they are.

use super::values::Text;
use std::collections::BTreeSet;

/// What a group must have, level by level: labels, and a share of all cells. A group of few labels says much, one of many cells
/// finds its crowd. On ADULT these sizes lose as little as the hand-written hierarchies (tests/first_hour.rs).
const GROUP: [(usize, f64); 2] = [(2, 0.05), (6, 0.15)];

/// A row a label, from itself to its coarsest group; single labels are rows of their own.
pub(super) fn groups(labels: &[Text<'_>]) -> Vec<Vec<String>> {
    let mut labels = labels.to_vec();
    if labels.len() <= 3 {
        labels.sort_by_key(|label| label.text);
        return labels.iter().map(|label| vec![label.text.to_owned()]).collect();
    }
    let numbers: Option<Vec<f64>> = labels.iter().map(|label| leading_number(label.text)).collect();
    match numbers {
        Some(numbers) => {
            let mut order: Vec<(f64, Text<'_>)> = numbers.into_iter().zip(labels).collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.text.cmp(b.1.text)));
            neighbours(&order.into_iter().map(|(_, label)| label).collect::<Vec<_>>())
        }
        None => {
            labels.sort_by(|a, b| b.cells.cmp(&a.cells).then_with(|| a.text.cmp(b.text)));
            by_frequency(&labels)
        }
    }
}

/// `19.0`, `<19`, `2000-4999`, `More than 25000`, `1st-4th`: the first number in a label, where no letters but those before
/// a comparison are in front of it. `<` comes before what it names.
fn leading_number(label: &str) -> Option<f64> {
    let before = ["less than", "more than", "under", "over", "at least", "at most", "up to"];
    let lower = label.trim().to_lowercase();
    let bare = before.iter().find_map(|words| lower.strip_prefix(words)).unwrap_or(&lower).trim_start();
    let less = lower.starts_with("less than") || lower.starts_with("under") || lower.starts_with('<');
    let more = lower.starts_with("more than") || lower.starts_with("over") || lower.starts_with('>');
    let bare = bare.trim_start_matches(['<', '>', '=', '≤', '≥', ' ', '[', '(']);
    let end = bare.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(bare.len());
    let number: f64 = bare[..end].trim_end_matches('.').parse().ok()?;
    Some(number - if less { 1e-6 } else { 0.0 } + if more { 1e-6 } else { 0.0 })
}

/// Runs of neighbours: about a quarter of the labels, then about a tenth, at most.
fn neighbours(labels: &[Text<'_>]) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = labels.iter().map(|label| vec![label.text.to_owned()]).collect();
    let mut before = labels.len();
    for size in [2, 4, 8] {
        let runs = labels.len().div_ceil(size);
        if runs < 2 || runs == before {
            break;
        }
        before = runs;
        for (at, row) in rows.iter_mut().enumerate() {
            let first = at / size * size;
            let last = (first + size).min(labels.len()) - 1;
            row.push(match (labels[first].text, labels[last].text) {
                (only, same) if only == same => only.to_owned(),
                (first, last) => format!("{first} to {last}"),
            });
        }
    }
    distinct(rows)
}

/// Runs of labels that are about as frequent, the most frequent first; each level joins runs of the one before.
fn by_frequency(labels: &[Text<'_>]) -> Vec<Vec<String>> {
    let total: u64 = labels.iter().map(|label| label.cells).sum();
    let mut rows: Vec<Vec<String>> = labels.iter().map(|label| vec![label.text.to_owned()]).collect();
    // The ends of the runs.
    let mut ends: Vec<usize> = (1..=labels.len()).collect();
    for (fewest, share) in GROUP {
        let (mut joined, mut first) = (Vec::new(), 0);
        let share_of = |from: usize, to: usize| {
            labels[from..to].iter().map(|label| label.cells).sum::<u64>() as f64 / total.max(1) as f64
        };
        for &end in &ends {
            if end - first >= fewest && share_of(first, end) >= share {
                joined.push(end);
                first = end;
            }
        }
        // What is left is a run of its own, or too little for one.
        if first < labels.len() {
            if share_of(first, labels.len()) < share / 2.0 {
                joined.pop();
            }
            joined.push(labels.len());
        }
        if joined.len() < 2 || joined.len() == ends.len() {
            break;
        }
        ends = joined;
        let mut first = 0;
        for &end in &ends {
            let name = run_name(&labels[first..end]);
            rows[first..end].iter_mut().for_each(|row| row.push(name.clone()));
            first = end;
        }
    }
    distinct(rows)
}

/// Characters of a group's name that lists its labels.
const LISTED: usize = 40;

/// The labels themselves where they are few and short; else the first one and how many others.
fn run_name(labels: &[Text<'_>]) -> String {
    let all = labels.iter().map(|label| label.text).collect::<Vec<_>>().join(" or ");
    if labels.len() == 1 || labels.len() <= 3 && all.chars().count() <= LISTED {
        return all;
    }
    format!("{} and {} others", labels[0].text, labels.len() - 1)
}

/// No group is called like a label that it is not: such rows lose their groups.
fn distinct(rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let own: BTreeSet<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    let clash = rows.iter().any(|row| row[1..].iter().any(|group| group != &row[0] && own.contains(group.as_str())));
    let root = rows.iter().any(|row| row[1..].iter().any(|group| group == "*" || group.is_empty()));
    if clash || root {
        rows.into_iter()
            .map(|mut row| {
                row.truncate(1);
                row
            })
            .collect()
    } else {
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: &[(&str, u64)]) -> Vec<Vec<String>> {
        groups(&labels.iter().map(|&(text, cells)| Text { text, cells, people: cells }).collect::<Vec<_>>())
    }

    #[test]
    fn labels_join_those_that_are_about_as_frequent() {
        let rows = of(&[("us", 600), ("mx", 200), ("fr", 90), ("de", 60), ("it", 50)]);
        let row = |label: &str| rows.iter().find(|row| row[0] == label).expect("a row").clone();
        assert_eq!(row("us"), ["us", "us or mx"]);
        assert_eq!(row("de"), ["de", "fr or de"]);
        assert_eq!(row("it"), ["it", "it"], "enough cells to be left alone");
        assert_eq!(of(&[("a", 1), ("b", 9)]), [["a"], ["b"]]);
        let many: Vec<(String, u64)> = (0..20).map(|n| (format!("label {n:02}"), 100 - n)).collect();
        let many: Vec<(&str, u64)> = many.iter().map(|(text, cells)| (text.as_str(), *cells)).collect();
        let rows = of(&many);
        assert!(rows.iter().all(|row| row.len() == 3), "{rows:?}");
        assert_eq!(rows[0], ["label 00", "label 00 or label 01", "label 00 and 5 others"]);
        let of_level = |level: usize| rows.iter().map(|row| &row[level]).collect::<BTreeSet<_>>().len();
        assert_eq!(
            (of_level(1), of_level(2)),
            (10, 4),
            "what is left is a run of its own where it has enough: {rows:?}"
        );
    }

    #[test]
    fn numbers_join_their_neighbours() {
        let rows = of(&[("<19", 5), ("20.0", 5), ("19.0", 5), ("21.0", 9), (">=30", 5)]);
        assert_eq!(rows[0], ["<19", "<19 to 19.0", "<19 to 21.0"]);
        assert_eq!(rows[4], [">=30", ">=30", ">=30"]);
    }

    #[test]
    fn a_group_is_never_called_like_another_label() {
        let rows = of(&[("us", 900), ("mx", 300), ("us or mx", 60), ("de", 12), ("it", 8)]);
        assert!(rows.iter().all(|row| row.len() == 1));
    }
}
