//! Reading a TOML table key by key, so that every mistake is reported at once and none hides another.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

/// One mistake in a schema or in a hierarchy file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {place}{}{message}", if .place.is_empty() { "" } else { ": " })]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// A key path (`attribute[2].hierarchy.widths`) or a row; empty for the whole file.
    pub place: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Everything that is wrong with a schema, at once.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SchemaError {
    /// In the order of the file; at least one.
    pub problems: Vec<Problem>,
}

/// A table being read: every key is asked for once, and [`finish`](Self::finish) refuses what nobody asked for.
pub struct Keys<'a> {
    table: toml::Table,
    file: &'a str,
    path: String,
    asked: BTreeSet<&'static str>,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Keys<'a> {
    pub fn new(table: toml::Table, file: &'a str, path: String, problems: &'a mut Vec<Problem>) -> Self {
        Self { table, file, path, asked: BTreeSet::new(), problems }
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
        self.problems.push(Problem { file: self.file.to_owned(), place, message: message.into() });
    }

    /// A problem that belongs to another file.
    pub fn problem_in(&mut self, file: &str, place: &str, message: impl Into<String>) {
        self.problems.push(Problem { file: file.to_owned(), place: place.to_owned(), message: message.into() });
    }

    /// A problem of each of the keys that is there.
    pub fn refuse(&mut self, keys: &[(&str, bool)], message: &str) {
        keys.iter().filter(|(_, is_there)| *is_there).for_each(|(key, _)| self.problem(key, message));
    }

    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub fn raw(&mut self, key: &'static str) -> Option<toml::Value> {
        self.asked.insert(key);
        self.table.remove(key)
    }

    pub fn optional<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        let value = self.raw(key)?;
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
            self.asked.insert(key);
            self.problem(key, "this key is missing: add it");
            return None;
        }
        self.optional(key)
    }

    /// A sub-table with its own path.
    pub fn table(&mut self, key: &'static str) -> Option<Keys<'_>> {
        let value = self.raw(key)?;
        let toml::Value::Table(table) = value else {
            self.problem(key, "not a table");
            return None;
        };
        let path = self.path(key);
        Some(Keys::new(table, self.file, path, self.problems))
    }

    /// Reports every key that was not asked for.
    pub fn finish(mut self) {
        let unknown: Vec<String> = self.table.keys().cloned().collect();
        let known = self.asked.iter().copied().collect::<Vec<_>>().join(", ");
        for key in unknown {
            let others = if known.is_empty() { String::new() } else { format!(", or use one of {known}") };
            self.problem(&key, format!("unknown key: remove it{others}"));
        }
    }
}
