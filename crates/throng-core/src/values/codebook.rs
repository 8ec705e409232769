//! Codebook of one attribute: maps tokens to codes, and codes to the cells of every level.

use std::borrow::Cow;
use std::sync::Arc;

use crate::values::canonical::{CanonicalKind, CellError};
use crate::values::cell_table::CellTable;
pub use crate::values::cell_table::{CellId, MISSING, OMITTED, SUPPRESSED};
use crate::values::digest::{DigestKey, KeyedDigest};
use crate::values::hierarchy::{MAX_POSITIONS, ValueCover};
use crate::values::identifier_shapes::{self, IdentifierShape};
use crate::values::raw_batch::{RawBatch, RawToken};
use crate::values::schema::{Attribute, AttributeType, Role};
use crate::values::token_cache::TokenCache;

/// Number of a value; depends on the order of arrival.
pub type Code = u32;
/// Missing cell.
pub const ABSENT: Code = 0;
/// Null cell.
pub const NULL: Code = 1;
/// Uncovered value, identifier, or value without room: `*` on every level.
pub const UNCOVERED: Code = 2;
/// First code of a value.
pub const FIRST_VALUE: Code = 3;
/// Result of [`Codebook::retain`] for a removed code.
pub const FORGOTTEN: Code = Code::MAX;

/// Range cells: this bit, and the positions of both end intervals.
const RANGE_BASE: CellId = 1 << 30;
const POSITION_BITS: u32 = 15;
const _: () = assert!(MAX_POSITIONS < 1 << POSITION_BITS);

const NO_POSITION: u32 = u32::MAX;

const VALUE_OVERHEAD: usize = 200;

const MAX_SPELLINGS: usize = 1 << 17;

/// Error for an invalid `max_values`.
#[derive(Debug, thiserror::Error)]
#[error("attribute \"{attribute}\" with {levels} levels cannot have {values} values: use 1 to {limit}")]
pub struct CodebookError {
    attribute: Arc<str>,
    levels: usize,
    values: usize,
    limit: usize,
}

#[derive(Clone, Debug, Default)]
struct LevelColumns {
    cells: Vec<CellId>,
    digests: Vec<u128>,
    losses: Vec<f32>,
}

impl LevelColumns {
    fn push(&mut self, cells: &CellTable, cell: CellId, loss: f32) {
        self.cells.push(cell);
        self.digests.push(cells.get(cell).digest);
        self.losses.push(loss);
    }
}

/// Codes and cells of one attribute.
#[derive(Clone, Debug)]
pub struct Codebook {
    attribute: Arc<Attribute>,
    keyed: KeyedDigest,
    cells: CellTable,
    /// [`FORGOTTEN`] for cells that only generalize.
    codes: Vec<Code>,
    /// [`SUPPRESSED`] if only the root is above.
    coarser_cells: Vec<CellId>,
    levels: Vec<LevelColumns>,
    positions: Vec<u32>,
    cache: TokenCache<Code>,
    max_values: usize,
    uncovered: u64,
    overflowed: u64,
    first_shape: Option<IdentifierShape>,
    buffer: String,
}

impl Codebook {
    /// Returns the largest valid `max_values`.
    pub fn value_limit(attribute: &Attribute) -> usize {
        (RANGE_BASE as usize / 2) / attribute.hierarchy.levels()
    }

    /// Creates an empty codebook for at most `max_values` distinct values.
    ///
    /// # Errors
    /// Fails outside 1 to [`value_limit`](Self::value_limit).
    pub fn new(attribute: Arc<Attribute>, key: &DigestKey, max_values: usize) -> Result<Self, CodebookError> {
        let levels = attribute.hierarchy.levels();
        let limit = Self::value_limit(&attribute);
        if max_values == 0 || max_values > limit {
            let attribute = Arc::clone(&attribute.typing.attribute);
            return Err(CodebookError { attribute, levels, values: max_values, limit });
        }
        let keyed = KeyedDigest::new(key, &attribute.name);
        let cells = CellTable::new(&keyed);
        let mut book = Self {
            attribute,
            keyed,
            codes: vec![FORGOTTEN; cells.len()],
            coarser_cells: vec![SUPPRESSED; cells.len()],
            cells,
            levels: vec![LevelColumns::default(); levels],
            positions: vec![NO_POSITION; FIRST_VALUE as usize],
            cache: TokenCache::new(max_values.saturating_mul(4).clamp(1 << 10, MAX_SPELLINGS)),
            max_values,
            uncovered: 0,
            overflowed: 0,
            first_shape: None,
            buffer: String::new(),
        };
        book.codes[OMITTED as usize] = ABSENT;
        book.codes[MISSING as usize] = NULL;
        book.codes[SUPPRESSED as usize] = UNCOVERED;
        for (index, level) in book.levels.iter_mut().enumerate() {
            let top = index + 1 == levels;
            for cell in [OMITTED, MISSING, SUPPRESSED] {
                let cell = if top { SUPPRESSED } else { cell };
                level.push(&book.cells, cell, book.cells.get(cell).loss);
            }
        }
        Ok(book)
    }

    /// Returns the encoded attribute.
    pub fn attribute(&self) -> &Arc<Attribute> {
        &self.attribute
    }

    /// Returns the code of a token.
    ///
    /// # Errors
    /// Fails if the token does not fit the type.
    #[inline]
    pub fn encode(&mut self, token: RawToken<'_>) -> Result<Code, CellError> {
        match token {
            RawToken::Absent => return Ok(ABSENT),
            RawToken::Null => return Ok(NULL),
            _ => {}
        }
        if let Some(code) = self.cache.get(&token) {
            self.uncovered += u64::from(code == UNCOVERED);
            return Ok(code);
        }
        self.encode_unseen(token)
    }

    fn encode_unseen(&mut self, token: RawToken<'_>) -> Result<Code, CellError> {
        let mut text = std::mem::take(&mut self.buffer);
        let typed = self.attribute.typing.canonical(token, &mut text);
        let code = typed.map(|typed| match typed {
            CanonicalKind::Absent => Some(ABSENT),
            CanonicalKind::Null => Some(NULL),
            CanonicalKind::Value => self.code_of(&text),
        });
        self.buffer = text;
        match code? {
            Some(code) => {
                self.uncovered += u64::from(code == UNCOVERED);
                self.cache.insert(&token, code);
                Ok(code)
            }
            None => {
                // Not cached: compaction may give room.
                self.overflowed += 1;
                Ok(UNCOVERED)
            }
        }
    }

    fn code_of(&mut self, canonical: &str) -> Option<Code> {
        if let Some(cell) = self.cells.find(canonical) {
            let code = self.codes.get(cell as usize).copied().unwrap_or(FORGOTTEN);
            if code != FORGOTTEN {
                return Some(code);
            }
        }
        if let Some(shape) = self.identifier_shape(canonical) {
            self.first_shape.get_or_insert(shape);
            return Some(UNCOVERED);
        }
        let Some(covers) = self.attribute.hierarchy.covers(canonical) else {
            return Some(UNCOVERED);
        };
        if self.values() >= self.max_values {
            return None;
        }
        debug_assert_eq!(covers.len() + 2, self.levels.len());
        let digest = self.keyed.digest(format!("value {canonical}").as_bytes());
        let Some(value) = self.cells.insert(canonical, digest, 0.0, true) else {
            return Some(UNCOVERED);
        };
        self.codes.resize(self.cells.len(), FORGOTTEN);
        let top = self.levels.len() - 1;
        let mut row = Vec::with_capacity(self.levels.len());
        row.push((value, 0.0));
        for (level, cover) in (1..).zip(covers) {
            let loss = cover.loss(level, top) as f32;
            let entry = match cover {
                ValueCover::Root => Some((SUPPRESSED, 1.0)),
                ValueCover::Value => Some((value, 0.0)),
                ValueCover::Set { text, set, .. } => {
                    let digest = self.keyed.digest(set.as_bytes());
                    self.cells.insert(&text, digest, loss, false).map(|cell| (cell, self.cells.get(cell).loss))
                }
            };
            let Some(entry) = entry else {
                // The raw cell remains, and no code uses it.
                return Some(UNCOVERED);
            };
            row.push(entry);
        }
        row.push((SUPPRESSED, 1.0));
        self.codes.resize(self.cells.len(), FORGOTTEN);
        self.coarser_cells.resize(self.cells.len(), SUPPRESSED);
        for step in row.windows(2).filter(|step| step[0].0 != step[1].0) {
            self.coarser_cells[step[0].0 as usize] = step[1].0;
        }
        let code = Code::try_from(self.levels[0].cells.len()).ok()?;
        let position = self.attribute.hierarchy.ruler().and_then(|ruler| ruler.position(canonical));
        self.positions.push(position.unwrap_or(NO_POSITION));
        self.codes[value as usize] = code;
        for (level, (cell, loss)) in self.levels.iter_mut().zip(row) {
            level.push(&self.cells, cell, loss);
        }
        Some(code)
    }

    fn identifier_shape(&self, canonical: &str) -> Option<IdentifierShape> {
        if self.attribute.role == Role::Insensitive || self.attribute.kind() != AttributeType::String {
            return None;
        }
        identifier_shapes::nested_shape(canonical)
    }

    /// Appends one code per row. Cells of the wrong type get [`UNCOVERED`] and are listed in `failures`.
    pub fn encode_column(
        &mut self,
        batch: &RawBatch,
        attribute: usize,
        out: &mut Vec<Code>,
        failures: &mut Vec<(u32, CellError)>,
    ) {
        out.reserve(batch.rows());
        let mut last = Ok(ABSENT);
        for row in 0..batch.rows() {
            // Counts each uncovered cell.
            if !batch.repeats_previous(row, attribute) || last == Ok(UNCOVERED) {
                last = self.encode(batch.token(row, attribute));
            }
            match &last {
                Ok(code) => out.push(*code),
                Err(error) => {
                    failures.push((u32::try_from(row).unwrap_or(u32::MAX), error.clone()));
                    out.push(UNCOVERED);
                }
            }
        }
    }

    /// Returns the input of [`encode_canonical`](Self::encode_canonical): JSON, `""` for absent, `"*"` for uncovered.
    pub fn canonical(&self, code: Code) -> &str {
        self.text(self.cell(code, 0))
    }

    /// Returns the code of a canonical text, [`UNCOVERED`] if none.
    pub fn encode_canonical(&mut self, canonical: &str) -> Code {
        self.code_of(canonical).unwrap_or_else(|| {
            self.overflowed += 1;
            UNCOVERED
        })
    }

    /// Copies all but the cached spellings.
    #[must_use]
    pub fn without_spellings(&self) -> Self {
        Self {
            attribute: Arc::clone(&self.attribute),
            keyed: self.keyed.clone(),
            cells: self.cells.clone(),
            codes: self.codes.clone(),
            coarser_cells: self.coarser_cells.clone(),
            levels: self.levels.clone(),
            positions: self.positions.clone(),
            cache: TokenCache::new(0),
            buffer: String::new(),
            ..*self
        }
    }

    /// Returns the number of levels, including raw and `*`.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Returns the cell of a code on a level.
    #[inline]
    pub fn cell(&self, code: Code, level: usize) -> CellId {
        self.levels[level].cells[code as usize]
    }

    /// Returns the cells of a level by code.
    pub fn cells(&self, level: usize) -> &[CellId] {
        &self.levels[level].cells
    }

    /// Returns the coverage digests of a level by code.
    pub fn digests(&self, level: usize) -> &[u128] {
        &self.levels[level].digests
    }

    /// Returns the Loss in [0, 1] of a level by code (docs/internals/methods.md §9).
    pub fn losses(&self, level: usize) -> &[f32] {
        &self.levels[level].losses
    }

    /// Returns the JSON text of a cell that is not a range; empty for [`OMITTED`].
    pub fn text(&self, cell: CellId) -> &str {
        &self.cells.get(cell).text
    }

    /// Returns the JSON text of any cell.
    pub fn printed_text(&self, cell: CellId) -> Cow<'_, str> {
        match range_positions(cell) {
            None => Cow::Borrowed(self.text(cell)),
            Some((low, high)) => Cow::Owned(self.range_cover(low, high).map_or_else(String::new, |(text, ..)| text)),
        }
    }

    /// Returns the coverage digest of a cell.
    pub fn digest(&self, cell: CellId) -> u128 {
        match range_positions(cell) {
            None => self.cells.get(cell).digest,
            Some((low, high)) => self.range_cover(low, high).map_or(0, |(_, set, _)| self.keyed.digest(set.as_bytes())),
        }
    }

    /// Returns the Loss of a cell.
    pub fn loss(&self, cell: CellId) -> f32 {
        match range_positions(cell) {
            None => self.cells.get(cell).loss,
            Some((low, high)) => self.range_cover(low, high).map_or(1.0, |(.., loss)| loss),
        }
    }

    /// Checks that a cell covers one value; missing and absent are values.
    pub fn is_exact(&self, cell: CellId) -> bool {
        range_positions(cell).is_none() && self.cells.get(cell).exact
    }

    /// Returns the interval position of a value (docs/internals/methods.md §10.7).
    pub fn position(&self, code: Code) -> Option<u32> {
        self.positions.get(code as usize).copied().filter(|position| *position != NO_POSITION)
    }

    /// Returns the bounds of an interval as shares of the domain.
    pub fn interval_shares(&self, position: u32) -> Option<(f64, f64)> {
        self.attribute.hierarchy.ruler()?.shares(position)
    }

    /// Returns the range of intervals `low` to `high`.
    pub fn range(&self, low: u32, high: u32) -> CellId {
        debug_assert!(low <= high && i128::from(high) < MAX_POSITIONS);
        RANGE_BASE | low << POSITION_BITS | high
    }

    /// Returns the range cell with a text.
    pub fn find_range(&self, json_text: &str) -> Option<CellId> {
        let (low, high) = self.attribute.hierarchy.ruler()?.positions_of(json_text)?;
        Some(self.range(low, high))
    }

    /// Checks that a cell covers a code.
    pub fn covers(&self, cell: CellId, code: Code) -> bool {
        match range_positions(cell) {
            None => (0..self.levels()).any(|level| self.cell(code, level) == cell),
            Some((low, high)) => self.position(code).is_some_and(|position| (low..=high).contains(&position)),
        }
    }

    /// Checks for an end of a range.
    pub fn is_bound(&self, range: CellId, position: u32) -> bool {
        range_positions(range).is_some_and(|(low, high)| position == low || position == high)
    }

    fn range_cover(&self, low: u32, high: u32) -> Option<(String, String, f32)> {
        match self.attribute.hierarchy.ruler()?.range_between(low, high)? {
            ValueCover::Set { text, set, loss } => Some((text, set, loss.unwrap_or(1.0) as f32)),
            ValueCover::Root | ValueCover::Value => None,
        }
    }

    /// Returns or adds the cell of an aggregate; none without room.
    pub fn aggregate(&mut self, json_text: &str) -> Option<CellId> {
        if let Some(cell) = self.cells.find(json_text) {
            return Some(cell);
        }
        let digest = self.keyed.digest(format!("aggregate {json_text}").as_bytes());
        let cell = self.cells.insert(json_text, digest, 1.0, false);
        self.codes.resize(self.cells.len(), FORGOTTEN);
        self.coarser_cells.resize(self.cells.len(), SUPPRESSED);
        cell
    }

    /// Returns the cell with a text.
    pub fn find_cell(&self, json_text: &str) -> Option<CellId> {
        self.cells.find(json_text)
    }

    /// Returns the coverage digest of a text.
    pub fn coverage_of(&self, json_text: &str) -> Option<u128> {
        self.cells.find(json_text).map(|cell| self.digest(cell))
    }

    /// Returns the digests of coarser labels, fine to coarse, without the root.
    pub fn coverages_above(&self, json_text: &str) -> impl Iterator<Item = u128> {
        let next = |&cell: &CellId| self.coarser_cells.get(cell as usize).copied().filter(|&above| above != SUPPRESSED);
        let first = self.cells.find(json_text).and_then(|cell| next(&cell));
        std::iter::successors(first, next).map(|cell| self.digest(cell))
    }

    /// Returns the coverage digest of a text that covers one value.
    pub fn exact_coverage_of(&self, json_text: &str) -> Option<u128> {
        self.cells.find(json_text).filter(|&cell| self.is_exact(cell)).map(|cell| self.digest(cell))
    }

    /// Returns the number of codes, with the fixed ones.
    pub fn codes(&self) -> usize {
        self.levels[0].cells.len()
    }

    /// Returns the number of values.
    pub fn values(&self) -> usize {
        self.codes() - FIRST_VALUE as usize
    }

    /// Returns the number of uncovered cells, without overflowed ones.
    pub fn uncovered(&self) -> u64 {
        self.uncovered
    }

    /// Returns the first identifier shape.
    pub fn first_shape(&self) -> Option<IdentifierShape> {
        self.first_shape
    }

    /// Returns the number of cells without room.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Returns the most frequent identifier shape and its share, in (0, 1].
    pub fn dominant_shape(&self) -> Option<(IdentifierShape, f64)> {
        let values = &self.levels[0].cells[FIRST_VALUE as usize..];
        identifier_shapes::most_frequent_shape(values.iter().map(|&cell| self.text(cell)))
    }

    /// Returns the approximate bytes of a value, without labels.
    pub fn approximate_value_bytes(&self, code: Code) -> u64 {
        if code < FIRST_VALUE {
            return 0;
        }
        let a_level = 2 * (size_of::<CellId>() + size_of::<u128>() + size_of::<f32>());
        (self.canonical(code).len() + VALUE_OVERHEAD + self.levels.len() * a_level) as u64
    }

    /// Returns the approximate bytes in use.
    pub fn approximate_bytes(&self) -> usize {
        let a_code = size_of::<CellId>() + size_of::<u128>() + size_of::<f32>() + size_of::<u32>();
        let levels: usize = self.levels.iter().map(|level| level.cells.capacity() * a_code).sum();
        levels
            + self.cells.bytes()
            + self.cache.bytes()
            + (self.codes.capacity() + self.coarser_cells.capacity()) * size_of::<Code>()
    }

    /// Removes the values not marked in `used` and all cached spellings. Returns the new code of each old one.
    pub fn retain(&mut self, used: &[bool]) -> Vec<Code> {
        let keep = |code: usize| code < FIRST_VALUE as usize || used.get(code).copied().unwrap_or(false);
        let mut map = vec![FORGOTTEN; self.codes()];
        let mut used_cells = vec![false; self.cells.len()];
        let mut next: Code = 0;
        for (code, new) in map.iter_mut().enumerate() {
            if keep(code) {
                *new = next;
                next += 1;
                for level in &self.levels {
                    used_cells[level.cells[code] as usize] = true;
                }
            }
        }
        let cell_map = self.cells.retain(&used_cells);
        let old = std::mem::replace(&mut self.coarser_cells, vec![SUPPRESSED; self.cells.len()]);
        for (&cell, &above) in cell_map.iter().zip(&old).filter(|(cell, _)| **cell != CellId::MAX) {
            self.coarser_cells[cell as usize] = cell_map[above as usize];
        }
        for level in &mut self.levels {
            let old = std::mem::take(level);
            for (code, (cell, loss)) in old.cells.into_iter().zip(old.losses).enumerate() {
                if keep(code) {
                    level.push(&self.cells, cell_map[cell as usize], loss);
                }
            }
        }
        let mut code = 0;
        self.positions.retain(|_| {
            code += 1;
            keep(code - 1)
        });
        self.codes = vec![FORGOTTEN; self.cells.len()];
        self.codes[SUPPRESSED as usize] = UNCOVERED;
        for (code, &cell) in (0..).zip(&self.levels[0].cells) {
            self.codes[cell as usize] = code;
        }
        self.cache.clear();
        map
    }
}

fn range_positions(cell: CellId) -> Option<(u32, u32)> {
    let mask = (1 << POSITION_BITS) - 1;
    (RANGE_BASE..2 * RANGE_BASE).contains(&cell).then_some((cell >> POSITION_BITS & mask, cell & mask))
}

/// Checks that a cell is a range.
pub fn is_range(cell: CellId) -> bool {
    range_positions(cell).is_some()
}

/// Marks the codes of a column.
pub fn mark_used(column: impl IntoIterator<Item = Code>, used: &mut [bool]) {
    column.into_iter().for_each(|code| used[code as usize] = true);
}

/// Replaces the codes of a column by `map[code]`.
pub fn remap(column: &mut [Code], map: &[Code]) {
    column.iter_mut().for_each(|code| *code = map[*code as usize]);
}

/// Creates test codebooks from a schema text.
///
/// # Panics
/// Panics if the schema does not parse.
#[must_use]
pub fn test_codebooks(schema: &str, values: usize) -> Vec<Codebook> {
    let schema = crate::values::schema::Schema::parse(schema, "t.toml", std::path::Path::new("")).expect("a schema");
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &DigestKey([7; 32]), values).expect("a codebook");
    schema.attributes.iter().map(book).collect()
}

#[cfg(test)]
mod tests;
