//! Groups of labels: neighbours in order, if they begin with numbers, or in frequency.

use super::column_texts::DistinctText;
use std::collections::BTreeSet;

/// Minimum labels and share of a group, per level. On ADULT these lose as little as hand-written hierarchies
/// (tests/first_hour.rs).
const GROUP_MINIMUMS: [(usize, f64); 2] = [(2, 0.05), (6, 0.15)];

/// Rows from a label to its coarsest group. Up to three labels get none.
pub(super) fn propose_groups(labels: &[DistinctText<'_>]) -> Vec<Vec<String>> {
    let mut labels = labels.to_vec();
    if labels.len() <= 3 {
        labels.sort_by_key(|label| label.text);
        return labels.iter().map(|label| vec![label.text.to_owned()]).collect();
    }
    let numbers: Option<Vec<f64>> = labels.iter().map(|label| leading_number(label.text)).collect();
    match numbers {
        Some(numbers) => {
            let mut order: Vec<(f64, DistinctText<'_>)> = numbers.into_iter().zip(labels).collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.text.cmp(b.1.text)));
            group_neighbours(&order.into_iter().map(|(_, label)| label).collect::<Vec<_>>())
        }
        None => {
            labels.sort_by(|a, b| b.cells.cmp(&a.cells).then_with(|| a.text.cmp(b.text)));
            by_frequency(&labels)
        }
    }
}

/// First number of `19.0`, `<19`, `2000-4999`, `More than 25000` or `1st-4th`, after words of comparison only. `<`
/// sorts before its number.
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

/// Runs of 2, 4 and 8, if there are at least two.
fn group_neighbours(labels: &[DistinctText<'_>]) -> Vec<Vec<String>> {
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
    without_name_clashes(rows)
}

/// Runs of similar frequency, the most frequent first; each level merges runs.
fn by_frequency(labels: &[DistinctText<'_>]) -> Vec<Vec<String>> {
    let total: u64 = labels.iter().map(|label| label.cells).sum();
    let mut rows: Vec<Vec<String>> = labels.iter().map(|label| vec![label.text.to_owned()]).collect();
    // Ends of runs.
    let mut ends: Vec<usize> = (1..=labels.len()).collect();
    for (fewest, share) in GROUP_MINIMUMS {
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
        // The rest is a run, or joins the last one.
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
    without_name_clashes(rows)
}

/// Of a name that lists its labels.
const MAX_GROUP_NAME: usize = 40;

/// The labels, or the first one and the number of others.
fn run_name(labels: &[DistinctText<'_>]) -> String {
    let all = labels.iter().map(|label| label.text).collect::<Vec<_>>().join(" or ");
    if labels.len() == 1 || labels.len() <= 3 && all.chars().count() <= MAX_GROUP_NAME {
        return all;
    }
    format!("{} and {} others", labels[0].text, labels.len() - 1)
}

/// Removes all groups if one has the name of another label, or is `*` or empty.
fn without_name_clashes(rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
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
        propose_groups(
            &labels.iter().map(|&(text, cells)| DistinctText { text, cells, people: cells }).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn labels_are_grouped_by_similar_frequency() {
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
    fn number_labels_are_grouped_with_neighbours() {
        let rows = of(&[("<19", 5), ("20.0", 5), ("19.0", 5), ("21.0", 9), (">=30", 5)]);
        assert_eq!(rows[0], ["<19", "<19 to 19.0", "<19 to 21.0"]);
        assert_eq!(rows[4], [">=30", ">=30", ">=30"]);
    }

    #[test]
    fn group_named_like_other_label_removes_groups() {
        let rows = of(&[("us", 900), ("mx", 300), ("us or mx", 60), ("de", 12), ("it", 8)]);
        assert!(rows.iter().all(|row| row.len() == 1));
    }
}
