//! Verification of micro-aggregated cells.
//!
//! Claim. If [`verify_aggregates`] returns `Ok`, every such cell is the canonical mean of k or more subjects of its
//! class, null without numbers, or `*`.

use super::verified_batch::ReleasableBatch;
use super::violation::DataSetRefusal;
use crate::line_encoder::LineLayout;
use crate::values::canonical::{CanonicalKind, Rounding, ValueTyping};
use crate::values::raw_batch::RawToken;
use crate::values::subject_digest::NO_SUBJECT;
use std::collections::{BTreeMap, BTreeSet};

/// Terms of one attribute.
pub struct AggregateTerms<'a> {
    /// Position in the line.
    pub column: usize,
    /// Type and rounding of the numbers.
    pub typing: &'a ValueTyping,
    /// Canonical text of a row; `null` or empty without a number.
    pub text: Box<dyn Fn(u32) -> &'a str + 'a>,
}

/// Verifies `group`; `quasi` marks the class cells, and `subjects` is by row.
///
/// # Errors
/// The first violated claim.
pub fn verify_aggregates(
    verified: &ReleasableBatch,
    group: usize,
    layout: &LineLayout,
    quasi: &[bool],
    terms: &[AggregateTerms<'_>],
    subjects: &[u64],
    k: usize,
) -> Result<(), DataSetRefusal> {
    if terms.is_empty() {
        return Ok(());
    }
    let mut classes: BTreeMap<Vec<String>, Vec<u32>> = BTreeMap::new();
    let mut cells = Vec::new();
    for line in verified.lines(group) {
        layout.read(line.bytes, &mut cells).ok_or(DataSetRefusal::Aggregate("a line does not match the layout"))?;
        let own = |(cell, &quasi): (&String, &bool)| if quasi { cell.clone() } else { String::new() };
        classes.entry(cells.iter().zip(quasi).map(own).collect()).or_default().push(line.row);
    }
    for (class, rows) in &classes {
        for term in terms {
            term.holds(&class[term.column], rows, subjects, k).map_err(DataSetRefusal::Aggregate)?;
        }
    }
    Ok(())
}

impl AggregateTerms<'_> {
    fn holds(&self, shown: &str, rows: &[u32], subjects: &[u64], k: usize) -> Result<(), &'static str> {
        if shown == r#""*""# {
            return Ok(());
        }
        let present: Vec<(u32, &str)> = rows
            .iter()
            .map(|&row| (row, (self.text)(row)))
            .filter(|(_, text)| !text.is_empty() && *text != "null")
            .collect();
        if shown.is_empty() || shown == "null" {
            return if present.is_empty() { Ok(()) } else { Err("a cell is empty where members have numbers") };
        }
        let mut canonical = String::new();
        let read = self.typing.without_conversion().canonical(RawToken::Number(shown), &mut canonical);
        if read != Ok(CanonicalKind::Value) || canonical != shown {
            return Err("an aggregate does not have the number format of its attribute");
        }
        let people: BTreeSet<u64> =
            present.iter().map(|&(row, _)| subjects[row as usize]).filter(|&subject| subject != NO_SUBJECT).collect();
        if people.len() < k {
            return Err("an aggregate covers fewer than k people");
        }
        let (step, decimals) = match self.typing.rounding {
            Rounding::Step { ticks, decimals } => (i128::from(ticks), decimals),
            _ => (1, 0),
        };
        let number = |text: &str| ticks(text, decimals).ok_or("a number has more digits than its attribute");
        let shown = number(shown)?;
        let numbers: Vec<i128> = present.iter().map(|(_, text)| number(text)).collect::<Result<_, _>>()?;
        let n = numbers.len() as i128;
        // Ties are rounded away from zero.
        let sum: i128 = numbers.iter().sum();
        let off = 2 * (shown * n - sum).abs();
        let holds = off < step * n || off == step * n && (shown * n).abs() > sum.abs();
        if holds { Ok(()) } else { Err("a cell is not the mean of its class") }
    }
}

/// Reads a number in units of 10⁻ᵈ.
fn ticks(text: &str, decimals: u32) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let zeros = (decimals as usize).checked_sub(fraction.len())?;
    format!("{whole}{fraction}{}", "0".repeat(zeros)).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::canonical::{AttributeType, MissingSpellings};

    fn verdict(shown: &str, texts: &[&str]) -> Result<(), &'static str> {
        let typing = ValueTyping {
            attribute: "a".into(),
            kind: AttributeType::Float,
            rounding: Rounding::Step { ticks: 5, decimals: 1 },
            missing: MissingSpellings::new(None, true),
            spelling: crate::values::spelling::Spelling::default(),
            dates: crate::values::date_formats::DateFormats::default(),
            conversion: None,
            decimal_comma: false,
            zone: None,
        };
        let term = AggregateTerms { column: 0, typing: &typing, text: Box::new(|row| texts[row as usize]) };
        let rows: Vec<u32> = (0..texts.len() as u32).collect();
        let subjects: Vec<u64> = (1..=texts.len() as u64).collect();
        term.holds(shown, &rows, &subjects, 2)
    }

    #[test]
    fn aggregate_other_than_mean_is_refused() {
        // 1.5 is nearest to the mean 4/3.
        for (shown, texts, holds) in [
            ("1.5", &["1", "1.5", "1.5"][..], true),
            ("1", &["1", "1.5", "1.5"], false),
            ("1.5", &["1", "1.5"], true),
            ("1", &["1", "1.5"], false),
            ("-1.5", &["-1", "-1.5"], true),
            ("-1", &["-1", "-1.5"], false),
            ("0", &["-0.5", "0.5", "null"], true),
            ("1.50", &["1.5", "1.5"], false),
            ("1.3", &["1", "1.5", "1.5"], false),
            ("1.5", &["1.5", "null"], false),
            ("null", &["null", ""], true),
            ("null", &["null", "1"], false),
            ("\"*\"", &["1", "7"], true),
            ("\"1.5\"", &["1.5", "1.5"], false),
        ] {
            assert_eq!(verdict(shown, texts).is_ok(), holds, "{shown} of {texts:?}");
        }
    }
}
