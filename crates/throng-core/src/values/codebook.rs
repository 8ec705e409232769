//! The codebook of one attribute: from tokens to codes, and from codes to the cells of every level.
//!
//! This is the hot path. A code is a small number, and what the treatment asks of it on a level (cell, coverage
//! digest, loss) lies in one array a level, indexed by code.

use std::borrow::Cow;
use std::sync::Arc;

use crate::values::cache::TokenCache;
use crate::values::canonical::{Canonical, CellError};
use crate::values::cells::Cells;
pub use crate::values::cells::{CellId, MISSING, OMITTED, SUPPRESSED};
use crate::values::digest::{DigestKey, Keyed};
use crate::values::hierarchy::{Cover, MAX_POSITIONS};
use crate::values::raw::{RawBatch, Token};
use crate::values::schema::{Attribute, Role, Type};
use crate::values::shapes::{self, Shape};

/// A value of one attribute, as a number. Codes depend on the order of arrival; texts, digests and losses do not.
pub type Code = u32;
/// The cell is not there.
pub const ABSENT: Code = 0;
/// The cell is null.
pub const NULL: Code = 1;
/// The hierarchy misses the value, it names somebody by its form alone, or there is no room for it: `*` on every level.
pub const UNCOVERED: Code = 2;
/// The first code of a value.
pub const FIRST_VALUE: Code = 3;
/// What [`Codebook::retain`] maps a forgotten code to.
pub const FORGOTTEN: Code = Code::MAX;

/// Cells from this one on, and below twice of it, are ranges of neighbouring intervals: the positions of the first and the last follow
/// in the lower bits. They are computed and not stored.
const RANGES: CellId = 1 << 30;
/// Bits of a position.
const POSITION_BITS: u32 = 15;
const _: () = assert!(MAX_POSITIONS < 1 << POSITION_BITS);

/// The position of a value whose attribute has no grid.
const NO_POSITION: u32 = u32::MAX;

/// Bytes of a value beside its text and its levels: the cell, two tables that lead to it, and the allocator's own.
const A_VALUE: usize = 200;

/// Spellings remembered by one codebook at most.
const MAX_SPELLINGS: usize = 1 << 17;

/// A codebook that cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("attribute \"{attribute}\" with {levels} levels cannot have {values} values: use 1 to {limit}")]
pub struct CodebookError {
    attribute: Arc<str>,
    levels: usize,
    values: usize,
    limit: usize,
}

#[derive(Clone, Debug, Default)]
struct Level {
    cells: Vec<CellId>,
    digests: Vec<u128>,
    losses: Vec<f32>,
}

impl Level {
    fn push(&mut self, cells: &Cells, cell: CellId, loss: f32) {
        self.cells.push(cell);
        self.digests.push(cells.get(cell).digest);
        self.losses.push(loss);
    }
}

/// Everything known of one attribute's values. A code, a cell or a level that is asked about is one of this codebook.
#[derive(Clone, Debug)]
pub struct Codebook {
    attribute: Arc<Attribute>,
    keyed: Keyed,
    cells: Cells,
    /// From raw cells back to codes; [`FORGOTTEN`] for cells that only generalize.
    codes: Vec<Code>,
    /// By cell: the next coarser one, [`SUPPRESSED`] where only the root is.
    above: Vec<CellId>,
    levels: Vec<Level>,
    /// By code, the position of the value's interval; [`NO_POSITION`] where there is none.
    positions: Vec<u32>,
    cache: TokenCache<Code>,
    max_values: usize,
    uncovered: u64,
    overflowed: u64,
    /// The shape of the first value that names somebody by its form.
    shaped: Option<Shape>,
    buffer: String,
}

impl Codebook {
    /// Values that codes have room for, whatever is asked for.
    pub fn most_values(attribute: &Attribute) -> usize {
        (RANGES as usize / 2) / attribute.hierarchy.levels()
    }

    /// An empty codebook for at most `max_values` distinct values; coverages are digested under `key`.
    ///
    /// # Errors
    /// When the cells of `max_values` values could not be numbered.
    pub fn new(attribute: Arc<Attribute>, key: &DigestKey, max_values: usize) -> Result<Self, CodebookError> {
        let levels = attribute.hierarchy.levels();
        let limit = Self::most_values(&attribute);
        if max_values == 0 || max_values > limit {
            let attribute = Arc::clone(&attribute.typing.attribute);
            return Err(CodebookError { attribute, levels, values: max_values, limit });
        }
        let keyed = Keyed::new(key, &attribute.name);
        let cells = Cells::new(&keyed);
        let mut book = Self {
            attribute,
            keyed,
            codes: vec![FORGOTTEN; cells.len()],
            above: vec![SUPPRESSED; cells.len()],
            cells,
            levels: vec![Level::default(); levels],
            positions: vec![NO_POSITION; FIRST_VALUE as usize],
            cache: TokenCache::new(max_values.saturating_mul(4).clamp(1 << 10, MAX_SPELLINGS)),
            max_values,
            uncovered: 0,
            overflowed: 0,
            shaped: None,
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

    /// The attribute that this codebook encodes.
    pub fn attribute(&self) -> &Arc<Attribute> {
        &self.attribute
    }

    /// The code of a token.
    ///
    /// # Errors
    /// When the attribute's type cannot take it.
    #[inline]
    pub fn encode(&mut self, token: Token<'_>) -> Result<Code, CellError> {
        match token {
            Token::Absent => return Ok(ABSENT),
            Token::Null => return Ok(NULL),
            _ => {}
        }
        if let Some(code) = self.cache.get(&token) {
            self.uncovered += u64::from(code == UNCOVERED);
            return Ok(code);
        }
        self.encode_unseen(token)
    }

    fn encode_unseen(&mut self, token: Token<'_>) -> Result<Code, CellError> {
        let mut text = std::mem::take(&mut self.buffer);
        let typed = self.attribute.typing.canonical(token, &mut text);
        let code = typed.map(|typed| match typed {
            Canonical::Absent => Some(ABSENT),
            Canonical::Null => Some(NULL),
            Canonical::Value => self.code_of(&text),
        });
        self.buffer = text;
        match code? {
            Some(code) => {
                self.uncovered += u64::from(code == UNCOVERED);
                self.cache.insert(&token, code);
                Ok(code)
            }
            None => {
                // Not remembered: there may be room after the next compaction.
                self.overflowed += 1;
                Ok(UNCOVERED)
            }
        }
    }

    /// The code of a canonical text, made if it is new; none if there is no room.
    fn code_of(&mut self, canonical: &str) -> Option<Code> {
        if let Some(cell) = self.cells.find(canonical) {
            let code = self.codes.get(cell as usize).copied().unwrap_or(FORGOTTEN);
            if code != FORGOTTEN {
                return Some(code);
            }
        }
        if let Some(shape) = self.names_somebody(canonical) {
            self.shaped.get_or_insert(shape);
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
                Cover::Root => Some((SUPPRESSED, 1.0)),
                Cover::Value => Some((value, 0.0)),
                Cover::Set { text, set, .. } => {
                    let digest = self.keyed.digest(set.as_bytes());
                    self.cells.insert(&text, digest, loss, false).map(|cell| (cell, self.cells.get(cell).loss))
                }
            };
            let Some(entry) = entry else {
                // Text and coverage would no longer be one to one: the raw cell stays, and no code leads to it.
                return Some(UNCOVERED);
            };
            row.push(entry);
        }
        row.push((SUPPRESSED, 1.0));
        self.codes.resize(self.cells.len(), FORGOTTEN);
        self.above.resize(self.cells.len(), SUPPRESSED);
        for step in row.windows(2).filter(|step| step[0].0 != step[1].0) {
            self.above[step[0].0 as usize] = step[1].0;
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

    /// The shape of a text that names a person or a device by its form, unless the schema lets the attribute leave as it
    /// is. A value is judged by itself, so that the first of a stream is judged as the last, and a restart judges alike.
    fn names_somebody(&self, canonical: &str) -> Option<Shape> {
        if self.attribute.role == Role::Insensitive || self.attribute.kind() != Type::String {
            return None;
        }
        shapes::within(canonical)
    }

    /// Appends the codes of one attribute of a batch to `out`, a code a row; rows whose cell has the wrong type get
    /// [`UNCOVERED`] and are listed in `failures`.
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
            // A long text that encloses thousands of elements is looked at once. What is not covered is counted each time.
            if !batch.repeats(row, attribute) || last == Ok(UNCOVERED) {
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

    /// The text from which [`encode_canonical`](Self::encode_canonical) makes the code again: JSON, `""` for absent,
    /// `"*"` for uncovered.
    pub fn canonical(&self, code: Code) -> &str {
        self.text(self.cell(code, 0))
    }

    /// The code of a canonical text, from a state file for example; what the attribute no longer covers, or has no
    /// room for, is [`UNCOVERED`].
    pub fn encode_canonical(&mut self, canonical: &str) -> Code {
        self.code_of(canonical).unwrap_or_else(|| {
            self.overflowed += 1;
            UNCOVERED
        })
    }

    /// A copy that knows the same codes and has forgotten how values were spelled.
    #[must_use]
    pub fn without_spellings(&self) -> Self {
        Self {
            attribute: Arc::clone(&self.attribute),
            keyed: self.keyed.clone(),
            cells: self.cells.clone(),
            codes: self.codes.clone(),
            above: self.above.clone(),
            levels: self.levels.clone(),
            positions: self.positions.clone(),
            cache: TokenCache::new(0),
            buffer: String::new(),
            ..*self
        }
    }

    /// Number of levels, the raw one and `*` counted.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The cell of a code on a level.
    #[inline]
    pub fn cell(&self, code: Code, level: usize) -> CellId {
        self.levels[level].cells[code as usize]
    }

    /// The cells of a level, indexed by code.
    pub fn cells(&self, level: usize) -> &[CellId] {
        &self.levels[level].cells
    }

    /// The coverage digests of a level, indexed by code.
    pub fn digests(&self, level: usize) -> &[u128] {
        &self.levels[level].digests
    }

    /// The Loss (docs/methods.md §9) of a level in [0, 1], indexed by code. Where the domain is open (strings without a
    /// list, times without min and max, places) it is level/(levels − 1). Absent and null lose nothing below the top.
    pub fn losses(&self, level: usize) -> &[f32] {
        &self.levels[level].losses
    }

    /// The JSON text that leaves; empty for [`OMITTED`]. Of a cell of a level: [`printed`](Self::printed) knows ranges too.
    pub fn text(&self, cell: CellId) -> &str {
        &self.cells.get(cell).text
    }

    /// The JSON text that leaves; empty for [`OMITTED`].
    pub fn printed(&self, cell: CellId) -> Cow<'_, str> {
        match positions_in(cell) {
            None => Cow::Borrowed(self.text(cell)),
            Some((low, high)) => Cow::Owned(self.range_cover(low, high).map_or_else(String::new, |(text, ..)| text)),
        }
    }

    /// The coverage digest of a cell.
    pub fn digest(&self, cell: CellId) -> u128 {
        match positions_in(cell) {
            None => self.cells.get(cell).digest,
            Some((low, high)) => self.range_cover(low, high).map_or(0, |(_, set, _)| self.keyed.digest(set.as_bytes())),
        }
    }

    /// The Loss of a cell.
    pub fn loss(&self, cell: CellId) -> f32 {
        match positions_in(cell) {
            None => self.cells.get(cell).loss,
            Some((low, high)) => self.range_cover(low, high).map_or(1.0, |(.., loss)| loss),
        }
    }

    /// Whether a cell covers a single value (missing and absent are values).
    pub fn is_exact(&self, cell: CellId) -> bool {
        positions_in(cell).is_none() && self.cells.get(cell).exact
    }

    /// The position of a value's interval on the grid of its attribute (docs/methods.md §10.7); none where there is no grid.
    pub fn position(&self, code: Code) -> Option<u32> {
        self.positions.get(code as usize).copied().filter(|position| *position != NO_POSITION)
    }

    /// The bounds of the interval at a position, as shares of the domain.
    pub fn interval_shares(&self, position: u32) -> Option<(f64, f64)> {
        self.attribute.hierarchy.ruler()?.shares(position)
    }

    /// The cell of the range from the interval at `low` to the one at `high`. It equals a label by its text and digest, not by its number.
    pub fn range(&self, low: u32, high: u32) -> CellId {
        debug_assert!(low <= high && i128::from(high) < MAX_POSITIONS);
        RANGES | low << POSITION_BITS | high
    }

    /// The cell of a range by its text; none for a text that no range prints.
    pub fn range_of(&self, json_text: &str) -> Option<CellId> {
        let (low, high) = self.attribute.hierarchy.ruler()?.positions_of(json_text)?;
        Some(self.range(low, high))
    }

    /// Whether a cell is true of a code.
    pub fn covers(&self, cell: CellId, code: Code) -> bool {
        match positions_in(cell) {
            None => (0..self.levels()).any(|level| self.cell(code, level) == cell),
            Some((low, high)) => self.position(code).is_some_and(|position| (low..=high).contains(&position)),
        }
    }

    /// Whether a position is the first or the last of a range.
    pub fn is_bound(&self, range: CellId, position: u32) -> bool {
        positions_in(range).is_some_and(|(low, high)| position == low || position == high)
    }

    /// Text, set and loss of a range.
    fn range_cover(&self, low: u32, high: u32) -> Option<(String, String, f32)> {
        match self.attribute.hierarchy.ruler()?.range_between(low, high)? {
            Cover::Set { text, set, loss } => Some((text, set, loss.unwrap_or(1.0) as f32)),
            Cover::Root | Cover::Value => None,
        }
    }

    /// The cell of a number that aggregates others: that of the value with its text, or one that no value has on any
    /// level. None if there is no room.
    pub fn aggregate(&mut self, json_text: &str) -> Option<CellId> {
        if let Some(cell) = self.cells.find(json_text) {
            return Some(cell);
        }
        let digest = self.keyed.digest(format!("aggregate {json_text}").as_bytes());
        let cell = self.cells.insert(json_text, digest, 1.0, false);
        self.codes.resize(self.cells.len(), FORGOTTEN);
        self.above.resize(self.cells.len(), SUPPRESSED);
        cell
    }

    /// The cell that prints as `json_text`; none where no level of a known value does.
    pub fn cell_of(&self, json_text: &str) -> Option<CellId> {
        self.cells.find(json_text)
    }

    /// The lexicon: from a text that leaves back to the digest of what it covers.
    pub fn coverage_of(&self, json_text: &str) -> Option<u128> {
        self.cells.find(json_text).map(|cell| self.digest(cell))
    }

    /// The digests of the labels that cover more than a text that leaves does, fine to coarse, without the root. A text that
    /// no level of a known value prints has none.
    pub fn coverages_above(&self, json_text: &str) -> impl Iterator<Item = u128> {
        let next = |&cell: &CellId| self.above.get(cell as usize).copied().filter(|&above| above != SUPPRESSED);
        let first = self.cells.find(json_text).and_then(|cell| next(&cell));
        std::iter::successors(first, next).map(|cell| self.digest(cell))
    }

    /// As [`coverage_of`](Self::coverage_of), and none for a text that covers more than one value (`*` does).
    pub fn exact_coverage_of(&self, json_text: &str) -> Option<u128> {
        self.cells.find(json_text).filter(|&cell| self.is_exact(cell)).map(|cell| self.digest(cell))
    }

    /// Number of codes, the three fixed ones counted.
    pub fn codes(&self) -> usize {
        self.levels[0].cells.len()
    }

    /// Number of distinct values known.
    pub fn values(&self) -> usize {
        self.codes() - FIRST_VALUE as usize
    }

    /// Cells encoded so far that the hierarchy misses, or that name somebody by their form.
    pub fn uncovered(&self) -> u64 {
        self.uncovered
    }

    /// The shape of the first value seen that was hidden because it names somebody by its form.
    pub fn shaped(&self) -> Option<Shape> {
        self.shaped
    }

    /// Cells encoded so far for whose value there was no room.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// The identifier shape that most of the distinct values seen have, and their share in (0, 1].
    pub fn shape_share(&self) -> Option<(Shape, f64)> {
        let values = &self.levels[0].cells[FIRST_VALUE as usize..];
        shapes::share(values.iter().map(|&cell| self.text(cell)))
    }

    /// What a value takes here, about, in bytes: by its text and the number of levels, not by its code. Labels, which values mostly share,
    /// are not counted.
    pub fn weight(&self, code: Code) -> u64 {
        if code < FIRST_VALUE {
            return 0;
        }
        // Arrays and tables are up to half empty.
        let a_level = 2 * (size_of::<CellId>() + size_of::<u128>() + size_of::<f32>());
        (self.canonical(code).len() + A_VALUE + self.levels.len() * a_level) as u64
    }

    /// Memory held, roughly.
    pub fn approximate_bytes(&self) -> usize {
        let a_code = size_of::<CellId>() + size_of::<u128>() + size_of::<f32>() + size_of::<u32>();
        let levels: usize = self.levels.iter().map(|level| level.cells.capacity() * a_code).sum();
        levels
            + self.cells.bytes()
            + self.cache.bytes()
            + (self.codes.capacity() + self.above.capacity()) * size_of::<Code>()
    }

    /// Forgets the values whose code is not marked in `used` (missing marks count as false), their cells and every
    /// remembered spelling. Returns the new code of every old one, [`FORGOTTEN`] for those that are gone.
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
        let old = std::mem::replace(&mut self.above, vec![SUPPRESSED; self.cells.len()]);
        for (&cell, &above) in cell_map.iter().zip(&old).filter(|(cell, _)| **cell != CellId::MAX) {
            // What leads to a cell that stays leads through those above it, so they stay too.
            self.above[cell as usize] = cell_map[above as usize];
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

/// The positions of the first and the last interval of a cell that is a range.
fn positions_in(cell: CellId) -> Option<(u32, u32)> {
    let mask = (1 << POSITION_BITS) - 1;
    (RANGES..2 * RANGES).contains(&cell).then_some((cell >> POSITION_BITS & mask, cell & mask))
}

/// Whether a cell is a range and none of a level.
pub fn is_range(cell: CellId) -> bool {
    positions_in(cell).is_some()
}

/// Marks in `used` the codes that a column holds.
pub fn mark_used(column: impl IntoIterator<Item = Code>, used: &mut [bool]) {
    column.into_iter().for_each(|code| used[code as usize] = true);
}

/// Replaces the codes of a column after its codebook was compacted; `map` is old → new.
pub fn remap(column: &mut [Code], map: &[Code]) {
    column.iter_mut().for_each(|code| *code = map[*code as usize]);
}

/// Creates codebooks for the attributes of a schema text, each with room for `values` values: for tests and examples.
///
/// # Panics
/// If the schema does not parse.
#[must_use]
pub fn books_of(schema: &str, values: usize) -> Vec<Codebook> {
    let schema = crate::values::schema::Schema::parse(schema, "t.toml", std::path::Path::new("")).expect("a schema");
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &DigestKey([7; 32]), values).expect("a codebook");
    schema.attributes.iter().map(book).collect()
}

#[cfg(test)]
mod tests;
