//! TOML tables, read key by key.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

/// Mistake in a schema or hierarchy file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {place}{}{message}", if .place.is_empty() { "" } else { ": " })]
pub struct SchemaProblem {
    /// File name.
    pub file: String,
    /// Row or key path (`attribute[2].hierarchy.widths`); empty for the file.
    pub place: String,
    /// Mistake and correction.
    pub message: String,
}

/// All mistakes in a schema.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SchemaError {
    /// One or more, in file order.
    pub problems: Vec<SchemaProblem>,
}

/// Reader that reports all unread keys in [`finish`](Self::finish).
pub struct TableReader<'a> {
    table: toml::Table,
    file: &'a str,
    path: String,
    known_keys: BTreeSet<&'static str>,
    problems: &'a mut Vec<SchemaProblem>,
}

impl<'a> TableReader<'a> {
    pub fn new(table: toml::Table, file: &'a str, path: String, problems: &'a mut Vec<SchemaProblem>) -> Self {
        Self { table, file, path, known_keys: BTreeSet::new(), problems }
    }

    pub fn path(&self, key: &str) -> String {
        match (self.path.is_empty(), key.is_empty()) {
            (true, _) => key.to_owned(),
            (_, true) => self.path.clone(),
            _ => format!("{}.{key}", self.path),
        }
    }

    pub fn problem(&mut self, key: &str, message: impl Into<String>) {
        let place = self.path(key);
        self.problems.push(SchemaProblem { file: self.file.to_owned(), place, message: message.into() });
    }

    /// Reports a problem of `file`.
    pub fn problem_in(&mut self, file: &str, place: &str, message: impl Into<String>) {
        self.problems.push(SchemaProblem { file: file.to_owned(), place: place.to_owned(), message: message.into() });
    }

    /// Reports each present key.
    pub fn report_present(&mut self, keys: &[(&str, bool)], message: &str) {
        keys.iter().filter(|(_, is_there)| *is_there).for_each(|(key, _)| self.problem(key, message));
    }

    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub fn take_value(&mut self, key: &'static str) -> Option<toml::Value> {
        self.known_keys.insert(key);
        self.table.remove(key)
    }

    pub fn optional<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        let value = self.take_value(key)?;
        match value.try_into() {
            Ok(read) => Some(read),
            Err(error) => {
                let message = error.to_string();
                self.problem(key, message.trim_end().replace('\n', " "));
                None
            }
        }
    }

    pub fn required<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        if !self.table.contains_key(key) {
            self.known_keys.insert(key);
            self.problem(key, "this key is missing: add it");
            return None;
        }
        self.optional(key)
    }

    /// Returns the reader of a sub-table.
    pub fn table(&mut self, key: &'static str) -> Option<TableReader<'_>> {
        let value = self.take_value(key)?;
        let toml::Value::Table(table) = value else {
            self.problem(key, "not a table");
            return None;
        };
        let path = self.path(key);
        Some(TableReader::new(table, self.file, path, self.problems))
    }

    /// Reports unread keys.
    pub fn finish(mut self) {
        let unknown: Vec<String> = self.table.keys().cloned().collect();
        let known = self.known_keys.iter().copied().collect::<Vec<_>>().join(", ");
        for key in unknown {
            let others = if known.is_empty() { String::new() } else { format!(", or use one of {known}") };
            self.problem(&key, format!("unknown key: remove it{others}"));
        }
    }
}
