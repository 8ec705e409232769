//! Numbers of a model: those with a value on most days, so that most days have a value of every one.

use crate::dataset::infer::{Inferred, NumberValues, PersonDays};
use crate::io::table::WholeTable;
use crate::start::series::is_signal;

/// Numbers at most that a configuration begins with.
const MOST_NUMBERS: usize = 8;
/// Share of the days of the number with most that must have a value of every number.
const LEAST_SHARE: f64 = 0.75;
/// Absolute correlation from which one of two numbers is left out: a linear model cannot tell their parts.
const COLLINEAR: f64 = 0.99;

/// Numbers that a model begins with, and why the others are left out.
#[derive(Debug, PartialEq)]
pub struct ModelNumbers {
    /// In the order of the schema.
    chosen: Vec<String>,
    /// Share of the days of the number with most that have a value of every chosen one.
    share: f64,
    /// Enough are chosen.
    more: Vec<String>,
    /// With the share of the days that would have a value of every number.
    rare: Vec<(String, f64)>,
    /// With the chosen number that nearly determines it, and their correlation.
    collinear: Vec<(String, String, f64)>,
}

impl ModelNumbers {
    /// Chooses the numbers with most days of people, as long as enough days have a value of every one, and one of each nearly collinear
    /// pair; none with fewer than two numbers.
    pub fn choose(inferred: &Inferred, table: &WholeTable) -> Option<Self> {
        let none = PersonDays::default();
        let names = inferred.schema.attributes.iter().filter(|attribute| is_signal(attribute)).map(|a| a.name.as_str());
        let numbers: Vec<_> = names.map(|name| (name, inferred.days.get(name).unwrap_or(&none))).collect();
        Self::of(&numbers, |name| NumberValues::read(inferred, table, name))
    }

    /// The same of numbers with their days, in the order of the schema, and their values.
    fn of(numbers: &[(&str, &PersonDays)], values_of: impl Fn(&str) -> Option<NumberValues>) -> Option<Self> {
        if numbers.len() < 2 {
            return None;
        }
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(numbers[*at].1.count()));
        let mut complete = numbers[order[0]].1.clone();
        let most = complete.count().max(1) as f64;
        let (mut chosen, mut more, mut rare) = (vec![order[0]], Vec::new(), Vec::new());
        let mut values = vec![(order[0], values_of(numbers[order[0]].0))];
        let mut collinear = Vec::new();
        for &at in &order[1..] {
            let common = complete.common(numbers[at].1);
            let share = common.count() as f64 / most;
            // A model has two numbers.
            if share < LEAST_SHARE && chosen.len() > 1 {
                rare.push((numbers[at].0.to_owned(), share));
            } else if chosen.len() == MOST_NUMBERS {
                more.push(numbers[at].0.to_owned());
            } else {
                let own = values_of(numbers[at].0);
                let correlation = |(other, values): &(usize, Option<NumberValues>)| {
                    Some((*other, own.as_ref()?.correlation(values.as_ref()?)?))
                };
                let nearly = values.iter().filter_map(correlation).find(|(_, r)| r.abs() >= COLLINEAR);
                if let Some((other, r)) = nearly {
                    collinear.push((numbers[at].0.to_owned(), numbers[other].0.to_owned(), r));
                    continue;
                }
                chosen.push(at);
                values.push((at, own));
                complete = common;
            }
        }
        if let ([_], Some((name, ..))) = (&chosen[..], collinear.first()) {
            // A model has two numbers, even of one pair.
            let at = numbers.iter().position(|(own, _)| own == name)?;
            complete = complete.common(numbers[at].1);
            chosen.push(at);
            collinear.remove(0);
        }
        chosen.sort_unstable();
        let chosen = chosen.into_iter().map(|at| numbers[at].0.to_owned()).collect();
        Some(Self { chosen, share: complete.count() as f64 / most, more, rare, collinear })
    }

    /// The keys of a series of buckets that are `buckets`, with comments.
    pub fn keys(&self, buckets: &str) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let quoted = |name: &String| toml::Value::String(name.clone()).to_string();
        let mut keys = format!(
            "# The numbers of the model, 2 to 16: only {buckets} with a value of every one count. {} of the days with any have every one.\nsignals = [{}]\n",
            percent(self.share),
            self.chosen.iter().map(quoted).collect::<Vec<_>>().join(", ")
        );
        if !self.more.is_empty() {
            let names: Vec<String> = self.more.iter().map(quoted).collect();
            keys += &format!("# Left out, since {MOST_NUMBERS} are enough to begin with: {}\n", names.join(", "));
        }
        if !self.rare.is_empty() {
            let names: Vec<String> =
                self.rare.iter().map(|(name, share)| format!("{} ({})", quoted(name), percent(*share))).collect();
            keys += &format!(
                "# Left out, since so few of the days would have a value of every number: {}\n",
                names.join(", ")
            );
        }
        for (name, other, r) in &self.collinear {
            keys += &format!(
                "# Left out, since {} nearly determines it: {} (correlation {r:.3} in the records)\n",
                quoted(other),
                quoted(name)
            );
        }
        keys + "moments = \"28d\"\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(of: impl Iterator<Item = usize>) -> PersonDays {
        of.collect()
    }

    #[test]
    fn numbers_of_most_days_are_chosen_and_rare_ones_named() {
        let all = days(0..100);
        let (most, half) = (days(0..90), days((0..100).step_by(2)));
        let names: Vec<String> = (0..9).map(|at| format!("all{at}")).collect();
        let mut numbers: Vec<(&str, &PersonDays)> = vec![("half", &half), ("most", &most)];
        numbers.extend(names.iter().take(6).map(|name| (name.as_str(), &all)));
        let found = ModelNumbers::of(&numbers, |_| None).expect("numbers");
        assert_eq!(found.chosen, ["most", "all0", "all1", "all2", "all3", "all4", "all5"]);
        assert_eq!((found.share, &found.rare), (0.9, &vec![("half".to_owned(), 0.45)]));
        assert!(
            found
                .keys("days")
                .contains("# Left out, since so few of the days would have a value of every number: \"half\" (45 %)\n")
        );
        numbers.extend(names.iter().skip(6).map(|name| (name.as_str(), &all)));
        let found = ModelNumbers::of(&numbers, |_| None).expect("numbers");
        assert_eq!((found.chosen.len(), found.more), (8, vec!["all8".to_owned(), "most".to_owned()]));
    }

    #[test]
    fn two_numbers_are_chosen_however_rare() {
        let (one, other) = (days(0..100), days(90..120));
        let found = ModelNumbers::of(&[("one", &one), ("other", &other)], |_| None).expect("numbers");
        assert_eq!((found.chosen, found.share), (vec!["one".to_owned(), "other".to_owned()], 0.1));
        assert_eq!(ModelNumbers::of(&[("one", &one)], |_| None), None);
    }

    #[test]
    fn one_of_two_collinear_numbers_is_chosen() {
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
        let found = ModelNumbers::of(&numbers, values).expect("numbers");
        assert_eq!(found.chosen, ["steps", "pulse"]);
        let keys = found.keys("days");
        assert!(
            keys.contains("# Left out, since \"steps\" nearly determines it: \"distance\" (correlation 1.000"),
            "{keys}"
        );
        // A model has two numbers.
        let found = ModelNumbers::of(&numbers[..2], values).expect("numbers");
        assert_eq!((found.chosen.len(), found.collinear.len()), (2, 0));
    }
}
