//! Numbers for a model: most days have a value of every one.

use super::dependent_numbers::{DependentNumber, comment_text, remove_dependent_numbers, toml_text};
use crate::dataset::infer::{InferredSchema, NumberValues, SubjectDays};
use crate::io::table::LoadedTable;
use crate::start::series_settings::is_signal;

const MAX_MODEL_NUMBERS: usize = 8;
/// Share of complete days, relative to the most frequent number.
const MIN_COMPLETE_SHARE: f64 = 0.75;
/// A linear model cannot separate such a pair.
const COLLINEAR_CORRELATION: f64 = 0.99;

/// Numbers of a model, and reasons for omissions.
#[derive(Debug, PartialEq)]
pub struct ModelNumbers {
    chosen: Vec<String>,
    /// Share of complete days, relative to the most frequent number.
    share: f64,
    /// Omitted because enough are chosen.
    beyond_maximum: Vec<String>,
    /// Omitted as rare, with the resulting share of complete days.
    rare: Vec<(String, f64)>,
    /// Omitted because chosen numbers determine them.
    dependent: Vec<DependentNumber>,
}

impl ModelNumbers {
    /// Chooses the numbers with the most subject-days while enough days are complete, without those that others
    /// determine. `None` for fewer than two.
    pub fn choose(inferred: &InferredSchema, table: &LoadedTable) -> Option<Self> {
        let none = SubjectDays::default();
        let names = inferred.schema.attributes.iter().filter(|attribute| is_signal(attribute)).map(|a| a.name.as_str());
        let numbers: Vec<_> = names.map(|name| (name, inferred.days.get(name).unwrap_or(&none))).collect();
        Self::choose_from_days(&numbers, |name| NumberValues::read(inferred, table, name))
    }

    /// In schema order.
    fn choose_from_days(
        numbers: &[(&str, &SubjectDays)],
        values_of: impl Fn(&str) -> Option<NumberValues>,
    ) -> Option<Self> {
        if numbers.len() < 2 {
            return None;
        }
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(numbers[*at].1.count()));
        let mut complete = numbers[order[0]].1.clone();
        let most = complete.count().max(1) as f64;
        let (mut chosen, mut more, mut rare) = (vec![order[0]], Vec::new(), Vec::new());
        let mut values: Vec<(&str, NumberValues)> = Vec::new();
        values.extend(values_of(numbers[order[0]].0).map(|first| (numbers[order[0]].0, first)));
        let mut dependent = Vec::new();
        for &at in &order[1..] {
            let name = numbers[at].0;
            let common = complete.common(numbers[at].1);
            let share = common.count() as f64 / most;
            // A model needs two numbers.
            if share < MIN_COMPLETE_SHARE && chosen.len() > 1 {
                rare.push((name.to_owned(), share));
            } else if chosen.len() == MAX_MODEL_NUMBERS {
                more.push(name.to_owned());
            } else {
                let own = values_of(name);
                if let Some(number) = own.as_ref().and_then(|own| collinear_number(name, own, &values)) {
                    dependent.push(number);
                    continue;
                }
                chosen.push(at);
                values.extend(own.map(|own| (name, own)));
                let removed = remove_dependent_numbers(&mut values);
                chosen.retain(|at| removed.iter().all(|number| number.name != numbers[*at].0));
                complete = complete_days(numbers, &chosen);
                dependent.extend(removed);
            }
        }
        if chosen.len() == 1 && !dependent.is_empty() {
            // A model needs two numbers, even if one determines the other.
            let number = dependent.remove(0);
            chosen.push(numbers.iter().position(|(name, _)| *name == number.name)?);
            complete = complete_days(numbers, &chosen);
        }
        chosen.sort_unstable();
        let chosen = chosen.into_iter().map(|at| numbers[at].0.to_owned()).collect();
        Some(Self { chosen, share: complete.count() as f64 / most, beyond_maximum: more, rare, dependent })
    }

    /// Formats the keys of a series with comments; `buckets` is a word such as `days`.
    pub fn series_keys_text(&self, buckets: &str) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let mut keys = format!(
            "# The numbers of the model, 2 to 16: only {buckets} with a value of every number count. {} of the days with any value have all.\nsignals = [{}]\n",
            percent(self.share),
            self.chosen.iter().map(|name| toml_text(name)).collect::<Vec<_>>().join(", ")
        );
        if !self.beyond_maximum.is_empty() {
            let names: Vec<String> = self.beyond_maximum.iter().map(|name| comment_text(name)).collect();
            keys += &format!("# Left out, since {MAX_MODEL_NUMBERS} are enough to begin with: {}\n", names.join(", "));
        }
        if !self.rare.is_empty() {
            let names: Vec<String> =
                self.rare.iter().map(|(name, share)| format!("{} ({})", comment_text(name), percent(*share))).collect();
            keys += &format!(
                "# Left out, since so few of the days would have a value of every number: {}\n",
                names.join(", ")
            );
        }
        for number in &self.dependent {
            keys += &number.comment();
        }
        keys + "moments = \"28d\"\n"
    }
}

/// Returns the reason against a number that one of `chosen` nearly determines.
fn collinear_number(name: &str, own: &NumberValues, chosen: &[(&str, NumberValues)]) -> Option<DependentNumber> {
    let mut correlations = chosen.iter().filter_map(|(other, values)| Some((*other, own.correlation(values)?)));
    let (other, r) = correlations.find(|(_, r)| r.abs() >= COLLINEAR_CORRELATION)?;
    let evidence = format!("correlation {r:.3} in the records");
    Some(DependentNumber { name: name.to_owned(), others: vec![other.to_owned()], evidence })
}

fn complete_days(numbers: &[(&str, &SubjectDays)], chosen: &[usize]) -> SubjectDays {
    let mut days = chosen.iter().map(|at| numbers[*at].1);
    let first = days.next().cloned().unwrap_or_default();
    days.fold(first, |complete, own| complete.common(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(of: impl Iterator<Item = usize>) -> SubjectDays {
        of.collect()
    }

    #[test]
    fn frequent_numbers_are_chosen_and_rare_ones_listed() {
        let all = days(0..100);
        let (most, half) = (days(0..90), days((0..100).step_by(2)));
        let names: Vec<String> = (0..9).map(|at| format!("all{at}")).collect();
        let mut numbers: Vec<(&str, &SubjectDays)> = vec![("half", &half), ("most", &most)];
        numbers.extend(names.iter().take(6).map(|name| (name.as_str(), &all)));
        let found = ModelNumbers::choose_from_days(&numbers, |_| None).expect("numbers");
        assert_eq!(found.chosen, ["most", "all0", "all1", "all2", "all3", "all4", "all5"]);
        assert_eq!((found.share, &found.rare), (0.9, &vec![("half".to_owned(), 0.45)]));
        assert!(
            found
                .series_keys_text("days")
                .contains("# Left out, since so few of the days would have a value of every number: \"half\" (45 %)\n")
        );
        numbers.extend(names.iter().skip(6).map(|name| (name.as_str(), &all)));
        let found = ModelNumbers::choose_from_days(&numbers, |_| None).expect("numbers");
        assert_eq!((found.chosen.len(), found.beyond_maximum), (8, vec!["all8".to_owned(), "most".to_owned()]));
    }

    #[test]
    fn line_break_in_a_name_stays_in_its_comment() {
        let numbers = ModelNumbers {
            chosen: vec!["pulse".to_owned()],
            share: 1.0,
            beyond_maximum: vec!["a\nb".to_owned()],
            rare: vec![("c\nd".to_owned(), 0.1)],
            dependent: Vec::new(),
        };
        let keys = numbers.series_keys_text("days");
        let is_expected = |line: &str| ["# ", "signals = ", "moments = "].iter().any(|start| line.starts_with(start));
        assert!(keys.lines().all(is_expected) && keys.contains("\"a b\"") && keys.contains("\"c d\""), "{keys}");
    }

    #[test]
    fn two_numbers_are_always_chosen() {
        let (one, other) = (days(0..100), days(90..120));
        let found = ModelNumbers::choose_from_days(&[("one", &one), ("other", &other)], |_| None).expect("numbers");
        assert_eq!((found.chosen, found.share), (vec!["one".to_owned(), "other".to_owned()], 0.1));
        assert_eq!(ModelNumbers::choose_from_days(&[("one", &one)], |_| None), None);
    }

    #[test]
    fn collinear_pair_keeps_one_number() {
        let all = days(0..100);
        let values = |name: &str| {
            let of = |at: u32| match name {
                "steps" => f64::from(at * at % 97),
                "distance" => f64::from(at * at % 97) * 0.7 + f64::from(at % 2) * 0.1,
                _ => f64::from(at % 13),
            };
            Some((0..100).map(of).collect::<NumberValues>())
        };
        let numbers = [("steps", &all), ("distance", &all), ("pulse", &all)];
        let found = ModelNumbers::choose_from_days(&numbers, values).expect("numbers");
        assert_eq!(found.chosen, ["steps", "pulse"]);
        let keys = found.series_keys_text("days");
        assert!(
            keys.contains("# Left out, since \"steps\" nearly determines it: \"distance\" (correlation 1.000"),
            "{keys}"
        );
        let found = ModelNumbers::choose_from_days(&numbers[..2], values).expect("numbers");
        assert_eq!((found.chosen.len(), found.dependent.len()), (2, 0));
    }

    #[test]
    fn total_of_chosen_numbers_is_left_out_and_replaced() {
        let all = days(0..100);
        let part = |seed: u32, at: u32| f64::from((at * at * seed + at * 7) % 89);
        let values = |name: &str| {
            let of = |at: u32| match name.strip_prefix("part").and_then(|seed| seed.parse().ok()) {
                Some(seed) => part(seed, at),
                None => part(1, at) + part(2, at) + part(3, at),
            };
            Some((0..100).map(of).collect::<NumberValues>())
        };
        let parts: Vec<String> = (1..=8).map(|seed| format!("part{seed}")).collect();
        let mut numbers: Vec<(&str, &SubjectDays)> = vec![("total", &all)];
        numbers.extend(parts.iter().map(|name| (name.as_str(), &all)));
        let found = ModelNumbers::choose_from_days(&numbers, values).expect("numbers");
        assert_eq!(found.chosen, parts);
        let left_out =
            "# Left out, since \"part1\", \"part2\", \"part3\" together nearly determine it: \"total\" (R² 1.0000";
        assert!(found.series_keys_text("days").contains(left_out), "{}", found.series_keys_text("days"));
    }
}
