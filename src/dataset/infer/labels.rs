//! Groups of labels. What belongs together in the world is for people to say; what can be measured is proposed: neighbours
//! where labels begin with numbers, else what is rare in one group.

use super::values::Text;
use std::collections::BTreeSet;

/// A label with fewer cells than this share of all joins the group of the rare ones, level by level.
const RARE: [f64; 2] = [0.02, 0.10];

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
            rare(&labels)
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

/// Labels keep their own until they are rare; the rarer ones are one group, level by level.
fn rare(labels: &[Text<'_>]) -> Vec<Vec<String>> {
    let total: u64 = labels.iter().map(|label| label.cells).sum();
    let mut rows: Vec<Vec<String>> = labels.iter().map(|label| vec![label.text.to_owned()]).collect();
    let mut before = 1;
    for share in RARE {
        let pooled = labels.iter().filter(|label| (label.cells as f64) < share * total as f64).count();
        if pooled <= before || pooled == labels.len() {
            continue;
        }
        before = pooled;
        let kept = labels.len() - pooled;
        for (at, row) in rows.iter_mut().enumerate() {
            row.push(if at < kept { labels[at].text.to_owned() } else { format!("{pooled} others") });
        }
    }
    distinct(rows)
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
    fn what_is_rare_becomes_one_group() {
        let rows = of(&[("us", 900), ("mx", 60), ("fr", 20), ("de", 12), ("it", 8)]);
        let row = |label: &str| rows.iter().find(|row| row[0] == label).expect("a row").clone();
        assert_eq!(row("us"), ["us", "us", "us"]);
        assert_eq!(row("mx"), ["mx", "mx", "4 others"]);
        assert_eq!(row("de"), ["de", "2 others", "4 others"]);
        assert_eq!(of(&[("a", 1), ("b", 9)]), [["a"], ["b"]]);
    }

    #[test]
    fn numbers_join_their_neighbours() {
        let rows = of(&[("<19", 5), ("20.0", 5), ("19.0", 5), ("21.0", 9), (">=30", 5)]);
        assert_eq!(rows[0], ["<19", "<19 to 19.0", "<19 to 21.0"]);
        assert_eq!(rows[4], [">=30", ">=30", ">=30"]);
    }

    #[test]
    fn a_group_is_never_called_like_another_label() {
        let rows = of(&[("us", 900), ("2 others", 60), ("de", 12), ("it", 8)]);
        assert!(rows.iter().all(|row| row.len() == 1));
    }
}
