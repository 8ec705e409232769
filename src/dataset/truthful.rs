//! The truthful reconstruction of a release with counterfeits ([HCE] Table 9; docs/methods.md §15.7).
//!
//! Of the lines of a group that show a value, the catalog says how many are invented. In each class as many lines as could be are
//! taken out; together they hold every counterfeit, and all of them show the same value. As many as were invented are dropped, and the rest
//! come back without the cells by which the classes of the group differ: each is a true record of one of them. What is left
//! alone is true as well, since no class had more counterfeits than were taken out of it.

use crate::io::file::{SinkError, whole};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use throng_formats::{CatalogGroup, LineFormat, LineLayout};

/// What a reconstruction came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Lines of the release.
    pub lines: u64,
    /// As many lines were dropped as are counterfeits.
    pub dropped: u64,
    /// Lines that lost cells, since they could have been counterfeits.
    pub coarsened: u64,
}

/// A reconstruction that was not made. Nothing has been written then, but where writing itself failed.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("{} cannot be read: {source}; name a release in CSV or NDJSON and its catalog, as files", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("line {line} of {} is no group of a catalog; name the file that --catalog of throng anonymize wrote", .path.display())]
    Catalog { path: PathBuf, line: usize },
    #[error("line {line} of {} is no line of a release with the attributes of the catalog; name the release that the catalog was written with", .path.display())]
    Line { path: PathBuf, line: usize },
    #[error("the catalog speaks of {missing} in {} and they are not there; name the catalog that was written with it", .path.display())]
    Other { path: PathBuf, missing: &'static str },
    #[error(transparent)]
    Sink(#[from] SinkError),
}

impl ApplyError {
    /// Whether naming other files mends it.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Sink(_))
    }
}

/// Separators that a header is looked at with.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Writes to `output` the release at `released` as its catalog lets it be read, its lines sorted by their bytes.
///
/// # Errors
/// See [`ApplyError`].
pub fn apply_catalog(released: &Path, catalog: &Path, output: &Path) -> Result<Applied, ApplyError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|source| ApplyError::Unreadable { path: path.to_owned(), source })
    };
    let (text, groups) = (read(released)?, read(catalog)?);
    let mut parsed = Vec::new();
    for (number, line) in groups.lines().enumerate() {
        let wrong = || ApplyError::Catalog { path: catalog.to_owned(), line: number + 1 };
        parsed.push(CatalogGroup::read(line).ok_or_else(wrong)?);
    }
    let Some(first) = parsed.first() else {
        // Nothing was inserted: the release is true as it is.
        whole::write(output, text.as_bytes())?;
        return Ok(Applied { lines: text.lines().count() as u64, ..Applied::default() });
    };
    let names: Vec<&str> = first.attributes.iter().map(String::as_str).collect();
    let one = |group: &CatalogGroup| group.attributes == first.attributes && group.sensitive == first.sensitive;
    if let Some(other) = parsed.iter().position(|group| !one(group)) {
        return Err(ApplyError::Catalog { path: catalog.to_owned(), line: other + 1 });
    }
    let is_json = text.starts_with('{');
    let mut rows = rows(&text, is_json);
    let line = |line| ApplyError::Line { path: released.to_owned(), line };
    let (layout, header) = if is_json {
        (LineLayout::new(&LineFormat::Json, &names), None)
    } else {
        let header = rows.next().ok_or_else(|| line(1))?;
        (layout_of(header, &names).ok_or_else(|| line(1))?, Some(header))
    };
    let lines: Vec<&str> = rows.filter(|row| !row.is_empty()).collect();
    let sensitive = names.iter().position(|name| *name == first.sensitive).unwrap_or_default();
    let mut cells = Vec::new();
    let mut release = Release { classes: BTreeMap::new(), sensitive };
    for (number, row) in lines.iter().enumerate() {
        layout.read(row.as_bytes(), &mut cells).ok_or_else(|| line(number + 1 + usize::from(header.is_some())))?;
        let value = std::mem::take(&mut cells[sensitive]);
        let mut class = cells.clone();
        class.remove(sensitive);
        *release.classes.entry(class).or_default().entry(value).or_default() += 1;
    }
    let (tuples, applied) = release
        .truthful(&parsed, lines.len() as u64)
        .map_err(|missing| ApplyError::Other { path: released.to_owned(), missing })?;
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
    whole::write(output, &header.chain(written).collect::<Vec<_>>().concat())?;
    Ok(applied)
}

/// The lines of a text; a line break between quotes of CSV is none. (NDJSON escapes both, and has an odd quote where it does.)
fn rows(text: &str, is_json: bool) -> impl Iterator<Item = &str> {
    let mut open = false;
    text.split(move |c: char| {
        open ^= c == '"' && !is_json;
        c == '\n' && !open
    })
}

/// The layout under which a header has the names.
fn layout_of(header: &str, names: &[&str]) -> Option<LineLayout> {
    let spelled = |name: &str| name.trim_matches('"').replace("\"\"", "\"");
    let fits = |separator: &u8| header.split(char::from(*separator)).map(spelled).eq(names.iter().copied());
    let separator = SEPARATORS.into_iter().find(fits)?;
    Some(LineLayout::new(&LineFormat::Csv { separator }, names))
}

/// How many lines each class has of each value.
struct Release {
    classes: BTreeMap<Vec<String>, BTreeMap<String, u64>>,
    sensitive: usize,
}

impl Release {
    /// The tuples of a truthful release with how often each is there.
    fn truthful(
        mut self,
        groups: &[CatalogGroup],
        lines: u64,
    ) -> Result<(BTreeMap<Vec<String>, u64>, Applied), &'static str> {
        let mut applied = Applied { lines, ..Applied::default() };
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
                    *tuples.entry(self.tuple(&in_common(&from), value)).or_default() += true_lines;
                }
            }
        }
        for (class, values) in &self.classes {
            for (value, &count) in values.iter().filter(|(_, count)| **count > 0) {
                *tuples.entry(self.tuple(class, value)).or_default() += count;
            }
        }
        Ok((tuples, applied))
    }

    fn tuple(&self, class: &[String], value: &str) -> Vec<String> {
        let mut tuple = class.to_vec();
        tuple.insert(self.sensitive, value.to_owned());
        tuple
    }
}

/// The cells that classes have in common, `*` where they differ.
fn in_common(classes: &[&Vec<String>]) -> Vec<String> {
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
