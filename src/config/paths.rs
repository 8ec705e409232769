//! Detects files that two keys or options name under different spellings.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use super::problem::KeyProblem;
use super::source::{is_pattern, names_several_files};
use super::{Config, ConfigProblem, SinkConfig, SinkKind, SourceKind};

/// The kernel's limit.
const MAX_SYMLINKS: usize = 40;

pub(super) fn is_unset(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

pub(super) fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// Returns true if two paths lead to the same file, resolving `..`, symbolic and hard links. A missing file is compared
/// by path.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    FileIdentity::of(a).is_same(&FileIdentity::of(b))
}

/// Identity of a file, cached because every pair of a thousand outputs is compared.
#[derive(Clone, Debug)]
struct FileIdentity {
    /// Device and inode.
    inode: Option<(u64, u64)>,
    resolved: PathBuf,
    names_several: bool,
}

impl FileIdentity {
    fn of(path: &Path) -> Self {
        let inode = path.metadata().ok().map(|file| (file.dev(), file.ino()));
        Self { inode, resolved: resolve_links(path), names_several: names_several_files(path) }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self.inode, other.inode) {
            (Some(own), Some(other)) => own == other,
            _ => self.resolved == other.resolved,
        }
    }
}

/// Resolves links and `..` in the existing part of a path. A link with a missing target resolves to that target.
pub fn resolve_links(path: &Path) -> PathBuf {
    let mut path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for _ in 0..MAX_SYMLINKS {
        // Opening a dangling link for writing creates its target.
        let Ok(target) = std::fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    let missing = |at: &Path| at.canonicalize().is_err();
    let there = path.ancestors().find(|at| !missing(at)).unwrap_or(Path::new("/"));
    let mut found = there.canonicalize().unwrap_or_else(|_| there.to_owned());
    for step in path.strip_prefix(there).unwrap_or(&path).components() {
        match step {
            Component::Normal(name) => found.push(name),
            Component::ParentDir => drop(found.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    found
}

/// File, or directory of files, that a command reads or writes.
#[derive(Clone, Debug)]
pub struct UsedFile {
    key: Cow<'static, str>,
    path: PathBuf,
    /// Marks a directory owned with all its contents.
    is_directory: bool,
    matched: OnceLock<MatchedFiles>,
    identity: OnceLock<FileIdentity>,
}

/// Files and directories that a directory or pattern reaches through links.
#[derive(Clone, Debug, Default)]
struct MatchedFiles {
    directories: BTreeSet<PathBuf>,
    /// Device and inode.
    files: BTreeSet<(u64, u64)>,
}

impl MatchedFiles {
    fn of(path: &Path) -> Self {
        let mut reached = Self::default();
        let paths = |pattern: &Path| {
            let found = pattern.to_str().and_then(|text| glob::glob(text).ok());
            found.into_iter().flatten().filter_map(Result::ok).collect::<Vec<_>>()
        };
        let pattern = if path.is_dir() { path.join("*") } else { path.to_owned() };
        if let Some(directory) = path.parent().filter(|directory| is_pattern(directory) && pattern == path) {
            reached
                .directories
                .extend(paths(directory).into_iter().filter(|at| at.is_dir()).map(|at| resolve_links(&at)));
        }
        let found = paths(&pattern).into_iter().filter_map(|file| file.metadata().ok()).filter(Metadata::is_file);
        reached.files.extend(found.map(|file| (file.dev(), file.ino())));
        reached
    }
}

impl UsedFile {
    /// Creates an entry for a file, directory or pattern that is read as one.
    pub fn file(key: impl Into<Cow<'static, str>>, path: &Path) -> Self {
        Self::new(key.into(), path, path.is_dir())
    }

    /// Creates an entry for a directory with all its contents.
    pub fn directory(key: impl Into<Cow<'static, str>>, path: &Path) -> Self {
        Self::new(key.into(), path, true)
    }

    fn new(key: Cow<'static, str>, path: &Path, whole: bool) -> Self {
        Self { key, path: path.to_owned(), is_directory: whole, matched: OnceLock::new(), identity: OnceLock::new() }
    }

    fn identity(&self) -> &FileIdentity {
        self.identity.get_or_init(|| FileIdentity::of(&self.path))
    }

    fn is_profiles(&self) -> bool {
        self.key.starts_with("join[")
    }

    fn is_written(&self) -> bool {
        self.key != "source.path" && !self.is_profiles()
    }

    /// Returns true if the path names several files that include `other`, or would if it existed.
    fn includes_file(&self, other: &Self) -> bool {
        if !self.identity().names_several {
            return false;
        }
        let reached = self.matched.get_or_init(|| MatchedFiles::of(&self.path));
        if other.identity().inode.is_some_and(|inode| reached.files.contains(&inode)) {
            return true;
        }
        let (pattern, other) = (&self.identity().resolved, &other.identity().resolved);
        let matches = |pattern: Option<&str>, path: Option<&Path>| {
            let pattern = pattern.and_then(|text| glob::Pattern::new(text).ok());
            pattern.zip(path).is_some_and(|(pattern, path)| pattern.matches_path(path))
        };
        let name = |path: &Path| path.file_name().map(PathBuf::from);
        let is_reached = other.parent().is_some_and(|directory| reached.directories.contains(directory));
        matches(pattern.to_str(), Some(other))
            || is_reached && matches(name(pattern).as_deref().and_then(Path::to_str), name(other).as_deref())
    }

    fn clashes(&self, other: &Self) -> bool {
        let within = |a: &Self, b: &Self| {
            b.is_directory && a.identity().resolved.starts_with(&b.identity().resolved) || b.includes_file(a)
        };
        self.identity().is_same(other.identity()) || within(self, other) || within(other, self)
    }
}

/// Describes the first written file that would overwrite a read or another written file. None if all differ; `-` is no
/// file.
pub fn find_overwritten(written: &[UsedFile], read: &[UsedFile]) -> Option<String> {
    let is_file = |used: &&UsedFile| !is_unset(&used.path) && !is_dash(&used.path);
    written.iter().enumerate().filter(|(_, file)| is_file(file)).find_map(|(at, file)| {
        let others = read.iter().chain(&written[..at]).filter(is_file);
        let other = others.into_iter().find(|other| file.clashes(other))?;
        let (path, taken) = (file.path.display(), other.path.display());
        Some(format!("{} ({path}) would overwrite {} ({taken}): name another file with {0}", file.key, other.key))
    })
}

fn profile_files(config: &Config) -> impl Iterator<Item = (String, &Path)> {
    let joins = config.join.iter().enumerate();
    joins.filter_map(|(at, join)| Some((format!("join[{at}].path"), join.path.as_deref()?)))
}

/// Returns the record files of a run with a file sink; empty for other sinks.
fn record_files(config: &Config) -> Vec<UsedFile> {
    let (source, sink) = (&config.source, &config.sink);
    let mut used = Vec::new();
    if sink.kind != SinkKind::File {
        return used;
    }
    let mut put = |key: Cow<'static, str>, path: &Path, whole| {
        let named = !is_unset(path) && !is_dash(path);
        if named && used.iter().all(|known: &UsedFile| known.key != key || known.path != path) {
            used.push(UsedFile::new(key, path, whole));
        }
    };
    if source.kind == SourceKind::File {
        put("source.path".into(), &source.path, source.path.is_dir());
    }
    for (key, path) in profile_files(config) {
        put(key.into(), path, false);
    }
    let mut file = |key: &'static str, path: &Path| put(key.into(), path, false);
    if is_dash(&sink.path) {
        file("sink.path", &sink.path);
    } else {
        let outputs = config.output_names();
        for output in &outputs {
            let path = SinkConfig::file_of(&sink.path, output, outputs.len() < 2);
            file("sink.path", &path);
            if config.treatment.may_be_untruthful() {
                file(config.treatment.untruthful_key(), &SinkConfig::mark_path(&path));
            }
        }
    }
    if let Some(path) = &sink.dead_letter_path {
        file("sink.dead_letter_path", path);
    }
    if let Some(path) = &sink.audit_file {
        file("sink.audit_file", path);
    }
    used
}

fn conflict_message(used: &UsedFile, other: &UsedFile) -> String {
    let place = used.path.display();
    if used.key == "sink.path" && other.key == "source.path" {
        format!("the sink would overwrite the source: {place} is the file of source.path")
    } else {
        format!("{place} is also a file of {}", other.key)
    }
}

/// Returns one complaint per file that another key also names.
pub(super) fn clashes(config: &Config) -> Vec<KeyProblem> {
    let used = record_files(config);
    let clash = |(at, file): (usize, &UsedFile)| {
        let other = used[..at].iter().find(|other| file.clashes(other))?;
        let remedy = "name another file: each needs a separate one".to_owned();
        Some(KeyProblem { key: file.key.to_string(), message: conflict_message(file, other), remedy })
    };
    used.iter().enumerate().filter_map(clash).collect()
}

impl Config {
    /// Returns the files that the configuration reads, without the source and the schema's files.
    pub fn files_read(&self) -> Vec<UsedFile> {
        let pages = &self.telemetry.tls;
        let named = [
            ("state.secret_file", self.state.secret_file.as_ref()),
            ("plan.prime", self.plan.prime.as_ref()),
            ("telemetry.token_file", self.telemetry.token_file.as_ref()),
            ("telemetry.tls.cert_file", pages.cert_file.as_ref()),
            ("telemetry.tls.key_file", pages.key_file.as_ref()),
        ];
        let named = named.into_iter().filter_map(|(key, path)| Some((key, path?)));
        let files = named.map(|(key, path)| UsedFile::file(key, path));
        let security = self.source.security.files();
        let files = files.chain(security.map(|(key, path)| UsedFile::file(format!("source.security.{key}"), path)));
        let profiles = profile_files(self).map(|(key, path)| UsedFile::file(key, path));
        let files = files.chain(profiles).chain([UsedFile::file("schema.file", &self.schema.file)]);
        files.filter(|used| !is_unset(&used.path)).collect()
    }

    /// Returns the files that a daemon would write, without its outputs.
    pub fn files_besides_outputs(&self) -> Vec<UsedFile> {
        let mut files = Vec::new();
        if self.has_state() {
            files.push(UsedFile::directory("state.path", &self.state.path));
        }
        files.extend(self.files_written().into_iter().filter(|used| used.key != "sink.path"));
        files
    }

    /// Returns the files that a run writes into a file sink.
    pub fn files_written(&self) -> Vec<UsedFile> {
        record_files(self).into_iter().filter(UsedFile::is_written).collect()
    }

    /// Returns the first output that is one of `others` or another output, as a problem of `file`.
    pub fn output_problem(&self, file: &str, others: &[UsedFile]) -> Option<ConfigProblem> {
        let written = self.files_written();
        let problem = |(at, output): (usize, &UsedFile)| {
            let other = others.iter().chain(&written[..at]).find(|other| output.clashes(other))?;
            let remedy = "name another file: each needs a separate one";
            Some(ConfigProblem::new(file, &*output.key, conflict_message(output, other), remedy))
        };
        written.iter().enumerate().find_map(problem)
    }

    /// Returns the problem of a lineage path that is already in use.
    pub fn lineage_problem(&self, lineage: &Path, others: &[UsedFile]) -> Option<ConfigProblem> {
        let lineage = UsedFile::file("--lineage", lineage);
        let used = record_files(self);
        let other = used.iter().chain(others).find(|other| lineage.clashes(other))?;
        let remedy = "name another file: a lineage holds digests of subjects and is for the custodian only";
        Some(ConfigProblem::new("command line", &*lineage.key, conflict_message(&lineage, other), remedy))
    }
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
