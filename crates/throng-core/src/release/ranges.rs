//! Verification of classes that show ranges (docs/internals/methods.md §10.7).
//!
//! Claim. If [`check_ranges`] returns `Ok`: (1) bounds of ranges are bounds of the hierarchy or domain; (2) cells cover
//! the values of their rows; (3) no row of a class fits in another class.
//!
//! For (3), attributes repeatedly divide the classes: into cells that do not touch, or into different labels and a rest
//! without their rows. Any division is sufficient, because subsets of divisible classes are divisible.

use super::violation::Violation::{self, NotInRange, Overlap, UnknownCell};
use crate::values::codebook::{ABSENT, Code, Codebook, NULL, UNCOVERED};
use crate::values::decimal::floor_ticks;
use crate::values::hierarchy::Ruler;
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct RangeLine<'a> {
    pub class: u128,
    pub cells: Vec<String>,
    pub rows: &'a [u32],
}

/// Closed interval along the order of an attribute.
type CellExtent = (i128, i128);

const EVERYTHING: CellExtent = (i128::MIN, i128::MAX);
/// Missing values are below all values.
const MISSING: i128 = i128::MIN + 1;
const OMITTED: i128 = i128::MIN + 2;
const VALUES: CellExtent = (i128::MIN + 3, i128::MAX - 1);
const DECIMALS: u32 = 9;

/// `columns` are the raw codes by attribute and row.
pub(super) fn check_ranges(
    lines: &[RangeLine<'_>],
    attributes: &[usize],
    columns: &[Vec<Code>],
    books: &[Codebook],
) -> Result<(), Violation> {
    let mut classes: BTreeMap<u128, RangeClass> = BTreeMap::new();
    for line in lines {
        classes.entry(line.class).or_default().rows.extend(line.rows);
    }
    let mut views = Vec::with_capacity(attributes.len());
    for (place, &attribute) in attributes.iter().enumerate() {
        let column = columns.get(attribute).ok_or(NotInRange)?;
        if lines.iter().flat_map(|line| line.rows).any(|&row| column.get(row as usize).is_none()) {
            return Err(NotInRange);
        }
        let order = CodeOrder::of(&books[attribute], column, lines);
        let mut known: HashMap<&str, CellExtent> = HashMap::new();
        for line in lines {
            let text = line.cells.get(place).ok_or(UnknownCell)?.as_str();
            let extent = match known.get(text) {
                Some(&extent) => extent,
                None => *known.entry(text).or_insert(order.extent(text)?),
            };
            if !line.rows.iter().all(|&row| order.is_in(column[row as usize], extent)) {
                return Err(NotInRange);
            }
            let extents = &mut classes.entry(line.class).or_default().extents;
            match extents.get(place) {
                None => extents.push(extent),
                Some(before) if *before == extent => {}
                Some(_) => return Err(UnknownCell),
            }
        }
        views.push(RangeAttribute { column, keys: order.keys() });
    }
    if separable(&classes.into_values().collect::<Vec<_>>(), &views) { Ok(()) } else { Err(Overlap) }
}

#[derive(Default)]
struct RangeClass {
    extents: Vec<CellExtent>,
    rows: Vec<u32>,
}

struct RangeAttribute<'a> {
    column: &'a [Code],
    /// Coarse labels first.
    keys: Vec<LabelGrouping>,
}

#[derive(Default)]
struct LabelGrouping {
    of_code: HashMap<Code, u32>,
    extents: Vec<CellExtent>,
}

impl LabelGrouping {
    fn of(codes: impl Iterator<Item = (Code, u128, CellExtent)>) -> Self {
        let (mut keys, mut numbers) = (Self::default(), HashMap::<u128, u32>::new());
        for (code, label, extent) in codes {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let number = *numbers.entry(label).or_insert(next);
            if number == next {
                keys.extents.push(extent);
            }
            let whole = &mut keys.extents[number as usize];
            *whole = (whole.0.min(extent.0), whole.1.max(extent.1));
            keys.of_code.insert(code, number);
        }
        keys
    }
}

fn separable(classes: &[RangeClass], views: &[RangeAttribute<'_>]) -> bool {
    let mut open = vec![(0..classes.len()).collect::<Vec<usize>>()];
    while let Some(together) = open.pop() {
        if together.len() < 2 {
            continue;
        }
        let by_cells = (0..views.len()).find_map(|place| parts_by_cells(&together, classes, place));
        let by_labels = || {
            let mut views = views.iter().enumerate();
            views.find_map(|(place, view)| {
                view.keys.iter().find_map(|keys| parts_by_labels(&together, classes, place, view, keys))
            })
        };
        match by_cells.or_else(by_labels) {
            Some(parts) => open.extend(parts),
            None => return false,
        }
    }
    true
}

/// None for only one part.
fn parts_by_cells(together: &[usize], classes: &[RangeClass], place: usize) -> Option<Vec<Vec<usize>>> {
    let mut sorted = together.to_vec();
    sorted.sort_unstable_by_key(|&class| classes[class].extents[place]);
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut highest = i128::MIN;
    for class in sorted {
        let (low, high) = classes[class].extents[place];
        match parts.last_mut() {
            Some(part) if low <= highest => part.push(class),
            _ => parts.push(vec![class]),
        }
        highest = highest.max(high);
    }
    (parts.len() > 1).then_some(parts)
}

/// None for only one part.
fn parts_by_labels(
    together: &[usize],
    classes: &[RangeClass],
    place: usize,
    view: &RangeAttribute<'_>,
    keys: &LabelGrouping,
) -> Option<Vec<Vec<usize>>> {
    let mut within: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let (mut rest, mut of_rest): (Vec<usize>, BTreeSet<u32>) = (Vec::new(), BTreeSet::new());
    for &class in together {
        let labels: BTreeSet<Option<u32>> =
            classes[class].rows.iter().map(|&row| keys.of_code.get(&view.column[row as usize]).copied()).collect();
        let (low, high) = classes[class].extents[place];
        let covered = |label: u32| keys.extents[label as usize].0 <= low && high <= keys.extents[label as usize].1;
        match (labels.len(), labels.first().copied().flatten()) {
            (1, Some(label)) if covered(label) => within.entry(label).or_default().push(class),
            _ => {
                rest.push(class);
                of_rest.extend(labels.into_iter().flatten());
            }
        }
    }
    let (apart, mixed): (Vec<_>, Vec<_>) = within.into_iter().partition(|(label, _)| !of_rest.contains(label));
    rest.extend(mixed.into_iter().flat_map(|(_, classes)| classes));
    let mut parts: Vec<Vec<usize>> = apart.into_iter().map(|(_, classes)| classes).collect();
    if !rest.is_empty() {
        parts.push(rest);
    }
    (parts.len() > 1).then_some(parts)
}

enum CodeOrder<'a> {
    Numbers {
        book: &'a Codebook,
        ruler: &'a Ruler,
        codes: Vec<Code>,
    },
    /// Labels cover neighbours.
    Labels {
        book: &'a Codebook,
        places: BTreeMap<Code, i128>,
        extents: HashMap<u128, CellExtent>,
    },
}

impl<'a> CodeOrder<'a> {
    fn of(book: &'a Codebook, column: &[Code], lines: &[RangeLine<'_>]) -> Self {
        let mut codes: Vec<Code> = lines.iter().flat_map(|line| line.rows).map(|&row| column[row as usize]).collect();
        codes.sort_unstable();
        codes.dedup();
        if let Some(ruler) = book.attribute().hierarchy.ruler() {
            return Self::Numbers { book, ruler, codes };
        }
        let digest = |code: Code, level: usize| book.digests(level)[code as usize];
        codes.sort_by_cached_key(|&code| (0..book.levels()).rev().map(|level| digest(code, level)).collect::<Vec<_>>());
        let mut extents: HashMap<u128, CellExtent> = HashMap::new();
        for (&code, place) in codes.iter().zip(0..) {
            for level in 0..book.levels() {
                extents.entry(digest(code, level)).or_insert((place, place)).1 = place;
            }
        }
        Self::Labels { book, places: codes.into_iter().zip(0..).collect(), extents }
    }

    /// Groups missing values first, then by the labels of each level.
    fn keys(&self) -> Vec<LabelGrouping> {
        let kind = |code: Code| u128::from(code.min(UNCOVERED));
        // Uncovered values have no label.
        let covered = |code: &Code| *code != UNCOVERED;
        match self {
            Self::Numbers { codes, .. } => {
                let codes = || codes.iter().copied().filter(covered);
                let of_kind = |code| match code {
                    NULL => (MISSING, MISSING),
                    ABSENT => (OMITTED, OMITTED),
                    _ => VALUES,
                };
                let place = |code| self.place(code).map(|place| (code, u128::from(code), (place, place)));
                vec![
                    LabelGrouping::of(codes().map(|code| (code, kind(code), of_kind(code)))),
                    LabelGrouping::of(codes().filter_map(place)),
                ]
            }
            Self::Labels { book, places, .. } => {
                let codes =
                    || places.iter().map(|(code, place)| (*code, (*place, *place))).filter(|(code, _)| covered(code));
                let kinds = LabelGrouping::of(codes().map(|(code, at)| (code, kind(code), at)));
                let of_level = |level: usize| {
                    LabelGrouping::of(codes().map(|(code, at)| (code, book.digests(level)[code as usize], at)))
                };
                std::iter::once(kinds).chain((0..book.levels()).rev().map(of_level)).collect()
            }
        }
    }

    fn place(&self, code: Code) -> Option<i128> {
        match self {
            Self::Labels { places, .. } => places.get(&code).copied(),
            Self::Numbers { .. } if code == NULL => Some(MISSING),
            Self::Numbers { .. } if code == ABSENT => Some(OMITTED),
            Self::Numbers { book, .. } => floor_ticks(book.canonical(code), DECIMALS).map(|floor| floor.ticks),
        }
    }

    fn extent(&self, text: &str) -> Result<CellExtent, Violation> {
        match self {
            _ if text == r#""*""# => Ok(EVERYTHING),
            Self::Labels { book, extents, .. } => {
                let coverage = book.coverage_of(text).ok_or(UnknownCell)?;
                extents.get(&coverage).copied().ok_or(UnknownCell)
            }
            Self::Numbers { .. } if text == "null" => Ok((MISSING, MISSING)),
            Self::Numbers { .. } if text.is_empty() => Ok((OMITTED, OMITTED)),
            Self::Numbers { ruler, .. } => interval(text, ruler).ok_or(UnknownCell),
        }
    }

    fn is_in(&self, code: Code, (low, high): CellExtent) -> bool {
        (low, high) == EVERYTHING || self.place(code).is_some_and(|place| low <= place && place <= high)
    }
}

/// Returns none if a bound is not an interval bound.
fn interval(text: &str, ruler: &Ruler) -> Option<CellExtent> {
    let place = |number: &str| floor_ticks(number, DECIMALS).map(|floor| floor.ticks);
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        let value = place(text)?;
        return Some((value, value));
    };
    let (low, high, open) = match inner.strip_prefix('[') {
        Some(rest) => {
            let (low, rest) = rest.split_once(',')?;
            let open = rest.ends_with(')');
            (low, rest.strip_suffix(if open { ')' } else { ']' })?, open)
        }
        None => {
            let dash = 1 + inner.get(1..)?.find('-')?;
            (&inner[..dash], &inner[dash + 1..], false)
        }
    };
    let on_grid = ruler.starts_interval(low)
        && if open { ruler.starts_interval(high) } else { ruler.ends_domain_or_interval(high) };
    let (low, high) = (place(low)?, place(high)?);
    (on_grid && low <= high).then_some((low, if open { high - 1 } else { high }))
}

#[cfg(test)]
mod tests;
