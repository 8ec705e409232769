//! Truthful reconstruction of a release with counterfeits (\[HCE] Table 9; docs/internals/methods.md §15.7).
//!
//! For each group and value, the catalog states the number of counterfeits. That many lines, or all, are taken out of
//! each class; together they contain every counterfeit. As many as were invented are dropped. The rest lose the cells
//! in which the classes differ, so each is a true record. Lines not taken out are true, because no class has more
//! counterfeits than lines taken out.

use crate::io::file::{SinkError, atomic_file};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use throng_core::counterfeit_catalog::CatalogGroup;
use throng_core::line_encoder::LineLayout;
use throng_formats::LineFormat;

/// Figures of a reconstruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReconstructionReport {
    /// Lines of the release.
    pub lines: u64,
    /// Dropped lines, one per counterfeit.
    pub dropped: u64,
    /// Lines that lost cells.
    pub coarsened: u64,
}

/// Error of a reconstruction. Nothing is written then, unless writing failed.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum CatalogApplyError {
    #[error("{} cannot be read: {source}; name a release in CSV or NDJSON and its catalog, as files", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("line {line} of {} is not a group of a catalog; name the file that --catalog of throng anonymize wrote", .path.display())]
    Catalog { path: PathBuf, line: usize },
    #[error("line {line} of {} is not a line of a release with the attributes of the catalog; name the release that the catalog was written with", .path.display())]
    Line { path: PathBuf, line: usize },
    #[error("the catalog refers to {missing} that are not in {}; name the catalog that was written with it", .path.display())]
    Other { path: PathBuf, missing: &'static str },
    #[error(transparent)]
    Sink(#[from] SinkError),
}

impl CatalogApplyError {
    /// Returns true if other files correct it.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Sink(_))
    }
}

const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Writes the truthful reconstruction of `released` to `output`, sorted.
///
/// # Errors
/// See [`CatalogApplyError`].
pub fn apply_catalog(
    released: &Path,
    catalog: &Path,
    output: &Path,
) -> Result<ReconstructionReport, CatalogApplyError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|source| CatalogApplyError::Unreadable { path: path.to_owned(), source })
    };
    let (text, groups) = (read(released)?, read(catalog)?);
    let mut parsed = Vec::new();
    for (number, line) in groups.lines().enumerate() {
        let wrong = || CatalogApplyError::Catalog { path: catalog.to_owned(), line: number + 1 };
        parsed.push(CatalogGroup::parse_catalog_line(line).ok_or_else(wrong)?);
    }
    let Some(first) = parsed.first() else {
        // The release is true already.
        atomic_file::write(output, text.as_bytes())?;
        return Ok(ReconstructionReport { lines: text.lines().count() as u64, ..ReconstructionReport::default() });
    };
    let names: Vec<&str> = first.attributes.iter().map(String::as_str).collect();
    let one = |group: &CatalogGroup| group.attributes == first.attributes && group.sensitive == first.sensitive;
    if let Some(other) = parsed.iter().position(|group| !one(group)) {
        return Err(CatalogApplyError::Catalog { path: catalog.to_owned(), line: other + 1 });
    }
    let is_json = text.starts_with('{');
    let mut rows = text_rows(&text, is_json);
    let line = |line| CatalogApplyError::Line { path: released.to_owned(), line };
    let (layout, header) = if is_json {
        (LineFormat::Json.layout(&names), None)
    } else {
        let header = rows.next().ok_or_else(|| line(1))?;
        (csv_layout(header, &names).ok_or_else(|| line(1))?, Some(header))
    };
    let lines: Vec<&str> = rows.filter(|row| !row.is_empty()).collect();
    let sensitive = names.iter().position(|name| *name == first.sensitive).unwrap_or_default();
    let mut cells = Vec::new();
    let mut release = ReleaseLineCounts { classes: BTreeMap::new(), sensitive };
    for (number, row) in lines.iter().enumerate() {
        layout.read(row.as_bytes(), &mut cells).ok_or_else(|| line(number + 1 + usize::from(header.is_some())))?;
        let value = std::mem::take(&mut cells[sensitive]);
        let mut class = cells.clone();
        class.remove(sensitive);
        *release.classes.entry(class).or_default().entry(value).or_default() += 1;
    }
    let (tuples, applied) = release
        .reconstruct_release(&parsed, lines.len() as u64)
        .map_err(|missing| CatalogApplyError::Other { path: released.to_owned(), missing })?;
    let mut written: Vec<Vec<u8>> = Vec::with_capacity(lines.len());
    for (tuple, count) in tuples {
        let texts: Vec<&str> = tuple.iter().map(String::as_str).collect();
        let mut bytes = Vec::new();
        layout.write(&texts, &mut bytes);
        bytes.push(b'\n');
        written.extend(std::iter::repeat_n(bytes, count as usize));
    }
    written.sort_unstable();
    let header = header.map(|header| format!("{header}\n").into_bytes()).into_iter();
    atomic_file::write(output, &header.chain(written).collect::<Vec<_>>().concat())?;
    Ok(applied)
}

/// A line break inside CSV quotes does not end a line; JSON escapes it.
fn text_rows(text: &str, is_json: bool) -> impl Iterator<Item = &str> {
    let mut open = false;
    text.split(move |c: char| {
        open ^= c == '"' && !is_json;
        c == '\n' && !open
    })
}

/// The first separator under which the header fits.
fn csv_layout(header: &str, names: &[&str]) -> Option<LineLayout> {
    let spelled = |name: &str| name.trim_matches('"').replace("\"\"", "\"");
    let fits = |separator: &u8| header.split(char::from(*separator)).map(spelled).eq(names.iter().copied());
    let separator = SEPARATORS.into_iter().find(fits)?;
    Some(LineFormat::Csv { separator }.layout(names))
}

/// Per class and sensitive value.
struct ReleaseLineCounts {
    classes: BTreeMap<Vec<String>, BTreeMap<String, u64>>,
    sensitive: usize,
}

impl ReleaseLineCounts {
    /// Tuples with counts.
    fn reconstruct_release(
        mut self,
        groups: &[CatalogGroup],
        lines: u64,
    ) -> Result<(BTreeMap<Vec<String>, u64>, ReconstructionReport), &'static str> {
        let mut applied = ReconstructionReport { lines, ..ReconstructionReport::default() };
        let mut tuples: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for group in groups {
            for (value, count) in &group.counterfeits {
                let mut taken = 0;
                let mut from: Vec<&Vec<String>> = Vec::new();
                for class in &group.classes {
                    let shown = self.classes.get_mut(class).ok_or("classes")?.get_mut(value);
                    let Some(shown) = shown.filter(|shown| **shown > 0) else { continue };
                    let could = (*count).min(*shown);
                    *shown -= could;
                    taken += could;
                    from.push(class);
                }
                let true_lines = taken.checked_sub(*count).ok_or("lines")?;
                applied.dropped += count;
                applied.coarsened += true_lines;
                if true_lines > 0 {
                    *tuples.entry(self.released_tuple(&common_cells(&from), value)).or_default() += true_lines;
                }
            }
        }
        for (class, values) in &self.classes {
            for (value, &count) in values.iter().filter(|(_, count)| **count > 0) {
                *tuples.entry(self.released_tuple(class, value)).or_default() += count;
            }
        }
        Ok((tuples, applied))
    }

    fn released_tuple(&self, class: &[String], value: &str) -> Vec<String> {
        let mut tuple = class.to_vec();
        tuple.insert(self.sensitive, value.to_owned());
        tuple
    }
}

/// `*` where the classes differ.
fn common_cells(classes: &[&Vec<String>]) -> Vec<String> {
    let width = classes.first().map_or(0, |class| class.len());
    let of = |at: usize| {
        let cells: BTreeSet<&str> = classes.iter().map(|class| class[at].as_str()).collect();
        let one = cells.first().filter(|_| cells.len() == 1);
        one.map_or_else(|| "\"*\"".to_owned(), |cell| (*cell).to_owned())
    };
    (0..width).map(of).collect()
}

#[cfg(test)]
#[path = "truthful_tests.rs"]
mod tests;
