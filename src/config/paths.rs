//! The files that a run reads and writes: no two of them may be one, whatever they are spelled like.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use super::problem::Complaint;
use super::source::{is_of_several, is_pattern};
use super::{Config, Problem, Sink, SinkKind, SourceKind};

/// Symbolic links that are followed one after the other, as many as the kernel follows.
const MOST_LINKS: usize = 40;

/// Whether no file is named.
pub(super) fn empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

/// Whether standard input or output is named.
pub(super) fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether two paths lead to one file: `..`, symbolic links and hard links are seen through. A file that is not there
/// yet is known by the place at which it would be made.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    Identity::of(a).is_same(&Identity::of(b))
}

/// Identity of a file, read from the file system once: a wide table has a thousand outputs, and every pair of them is compared.
#[derive(Clone, Debug)]
struct Identity {
    /// Device and inode of a file that exists.
    inode: Option<(u64, u64)>,
    place: PathBuf,
    is_of_several: bool,
}

impl Identity {
    fn of(path: &Path) -> Self {
        let inode = path.metadata().ok().map(|file| (file.dev(), file.ino()));
        Self { inode, place: place(path), is_of_several: is_of_several(path) }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self.inode, other.inode) {
            (Some(own), Some(other)) => own == other,
            _ => self.place == other.place,
        }
    }
}

/// The place of a path without links and `..`, as far as it is there; the rest as it is spelled. A link whose target is
/// missing leads to the place of that target.
pub fn place(path: &Path) -> PathBuf {
    let mut path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for _ in 0..MOST_LINKS {
        // Opening a link for writing makes the target that it misses.
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

/// A file, or a directory of files, that a command reads or writes.
#[derive(Clone, Debug)]
pub struct Used {
    /// The key, option or words that name it.
    key: Cow<'static, str>,
    path: PathBuf,
    /// A directory in which everything is the command's.
    whole: bool,
    /// What the path reaches where it is of several files, once it has been looked for.
    reached: OnceLock<Reached>,
    /// Identity of the path, once it has been looked for.
    identity: OnceLock<Identity>,
}

/// What a directory or a pattern reaches through links.
#[derive(Clone, Debug, Default)]
struct Reached {
    /// The directories in which files are looked for, without links.
    directories: BTreeSet<PathBuf>,
    /// Device and inode of the files that are there.
    files: BTreeSet<(u64, u64)>,
}

impl Reached {
    fn of(path: &Path) -> Self {
        let mut reached = Self::default();
        let paths = |pattern: &Path| {
            let found = pattern.to_str().and_then(|text| glob::glob(text).ok());
            found.into_iter().flatten().filter_map(Result::ok).collect::<Vec<_>>()
        };
        let pattern = if path.is_dir() { path.join("*") } else { path.to_owned() };
        if let Some(directory) = path.parent().filter(|directory| is_pattern(directory) && pattern == path) {
            reached.directories.extend(paths(directory).into_iter().filter(|at| at.is_dir()).map(|at| place(&at)));
        }
        let found = paths(&pattern).into_iter().filter_map(|file| file.metadata().ok()).filter(Metadata::is_file);
        reached.files.extend(found.map(|file| (file.dev(), file.ino())));
        reached
    }
}

impl Used {
    /// A file, or what is read as one: all files of a directory or of a pattern.
    pub fn file(key: impl Into<Cow<'static, str>>, path: &Path) -> Self {
        Self::new(key.into(), path, path.is_dir())
    }

    /// A directory, and everything in it.
    pub fn directory(key: impl Into<Cow<'static, str>>, path: &Path) -> Self {
        Self::new(key.into(), path, true)
    }

    fn new(key: Cow<'static, str>, path: &Path, whole: bool) -> Self {
        Self { key, path: path.to_owned(), whole, reached: OnceLock::new(), identity: OnceLock::new() }
    }

    fn identity(&self) -> &Identity {
        self.identity.get_or_init(|| Identity::of(&self.path))
    }

    /// Whether it is a file of profiles.
    fn is_profiles(&self) -> bool {
        self.key.starts_with("join[")
    }

    /// Whether a run writes it.
    fn is_written(&self) -> bool {
        self.key != "source.path" && !self.is_profiles()
    }

    /// Whether the path is of several files, one of which is that of `other`, or would be, were it there. Links on the way are seen
    /// through.
    fn takes(&self, other: &Self) -> bool {
        if !self.identity().is_of_several {
            return false;
        }
        let reached = self.reached.get_or_init(|| Reached::of(&self.path));
        if other.identity().inode.is_some_and(|inode| reached.files.contains(&inode)) {
            return true;
        }
        let (pattern, other) = (&self.identity().place, &other.identity().place);
        let matches = |pattern: Option<&str>, path: Option<&Path>| {
            let pattern = pattern.and_then(|text| glob::Pattern::new(text).ok());
            pattern.zip(path).is_some_and(|(pattern, path)| pattern.matches_path(path))
        };
        // The name alone, in a directory that the pattern reaches.
        let name = |path: &Path| path.file_name().map(PathBuf::from);
        let is_reached = other.parent().is_some_and(|directory| reached.directories.contains(directory));
        matches(pattern.to_str(), Some(other))
            || is_reached && matches(name(pattern).as_deref().and_then(Path::to_str), name(other).as_deref())
    }

    fn clashes(&self, other: &Self) -> bool {
        let within = |a: &Self, b: &Self| b.whole && a.identity().place.starts_with(&b.identity().place) || b.takes(a);
        self.identity().is_same(other.identity()) || within(self, other) || within(other, self)
    }
}

/// What says of the first file that would be written over one that is read, or is written under another name; none where
/// all of them are different. `-` is no file.
pub fn overwritten(written: &[Used], read: &[Used]) -> Option<String> {
    let is_file = |used: &&Used| !empty(&used.path) && !is_dash(&used.path);
    written.iter().enumerate().filter(|(_, file)| is_file(file)).find_map(|(at, file)| {
        let others = read.iter().chain(&written[..at]).filter(is_file);
        let other = others.into_iter().find(|other| file.clashes(other))?;
        let (path, taken) = (file.path.display(), other.path.display());
        Some(format!("{} ({path}) would overwrite {} ({taken}): name another file with {0}", file.key, other.key))
    })
}

/// The files of profiles, and the keys that name them.
fn profiles(config: &Config) -> impl Iterator<Item = (String, &Path)> {
    let joins = config.join.iter().enumerate();
    joins.filter_map(|(at, join)| Some((format!("join[{at}].path"), join.path.as_deref()?)))
}

/// Everything that a run with a file sink reads and writes of records; nothing for other sinks.
fn used(config: &Config) -> Vec<Used> {
    let (source, sink) = (&config.source, &config.sink);
    let mut used = Vec::new();
    if sink.kind != SinkKind::File {
        return used;
    }
    let mut put = |key: Cow<'static, str>, path: &Path, whole| {
        let named = !empty(path) && !is_dash(path);
        if named && used.iter().all(|known: &Used| known.key != key || known.path != path) {
            used.push(Used::new(key, path, whole));
        }
    };
    if source.kind == SourceKind::File {
        put("source.path".into(), &source.path, source.path.is_dir());
    }
    for (key, path) in profiles(config) {
        put(key.into(), path, false);
    }
    let mut file = |key: &'static str, path: &Path| put(key.into(), path, false);
    if is_dash(&sink.path) {
        file("sink.path", &sink.path);
    } else {
        let outputs = config.output_names();
        for output in &outputs {
            let path = Sink::file_of(&sink.path, output, outputs.len() < 2);
            file("sink.path", &path);
            if config.treatment.may_be_untruthful() {
                file(config.treatment.untruthful_key(), &Sink::mark_path(&path));
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

/// What says of the file `key` that `other` has it already.
fn taken(used: &Used, other: &Used) -> String {
    let place = used.path.display();
    if used.key == "sink.path" && other.key == "source.path" {
        format!("the sink would overwrite the source: {place} is the file of source.path")
    } else {
        format!("{place} is a file of {} too", other.key)
    }
}

/// A complaint of every file that another key names as well.
pub(super) fn clashes(config: &Config) -> Vec<Complaint> {
    let used = used(config);
    let clash = |(at, file): (usize, &Used)| {
        let other = used[..at].iter().find(|other| file.clashes(other))?;
        let remedy = "name another file: each needs one of its own".to_owned();
        Some(Complaint { key: file.key.to_string(), message: taken(file, other), remedy })
    };
    used.iter().enumerate().filter_map(clash).collect()
}

impl Config {
    /// The files that the configuration names for reading, the source and the files of the schema left out.
    pub fn files_read(&self) -> Vec<Used> {
        let pages = &self.telemetry.tls;
        let named = [
            ("state.secret_file", self.state.secret_file.as_ref()),
            ("plan.prime", self.plan.prime.as_ref()),
            ("telemetry.token_file", self.telemetry.token_file.as_ref()),
            ("telemetry.tls.cert_file", pages.cert_file.as_ref()),
            ("telemetry.tls.key_file", pages.key_file.as_ref()),
        ];
        let named = named.into_iter().filter_map(|(key, path)| Some((key, path?)));
        let files = named.map(|(key, path)| Used::file(key, path));
        let security = self.source.security.files();
        let files = files.chain(security.map(|(key, path)| Used::file(format!("source.security.{key}"), path)));
        let profiles = profiles(self).map(|(key, path)| Used::file(key, path));
        let files = files.chain(profiles).chain([Used::file("schema.file", &self.schema.file)]);
        files.filter(|used| !empty(&used.path)).collect()
    }

    /// The files that a daemon with this configuration would write, its outputs left out.
    pub fn files_beside_the_output(&self) -> Vec<Used> {
        let mut files = Vec::new();
        if self.has_state() {
            files.push(Used::directory("state.path", &self.state.path));
        }
        files.extend(self.files_written().into_iter().filter(|used| used.key != "sink.path"));
        files
    }

    /// The files that a run with this configuration writes into a file sink.
    pub fn files_written(&self) -> Vec<Used> {
        used(self).into_iter().filter(Used::is_written).collect()
    }

    /// The first output, a file of `file`, that is one of `others` or the same as another output.
    pub fn output_problem(&self, file: &str, others: &[Used]) -> Option<Problem> {
        let written = self.files_written();
        let problem = |(at, output): (usize, &Used)| {
            let other = others.iter().chain(&written[..at]).find(|other| output.clashes(other))?;
            let remedy = "name another file: each needs one of its own";
            Some(Problem::new(file, &*output.key, taken(output, other), remedy))
        };
        written.iter().enumerate().find_map(problem)
    }

    /// What is wrong with writing the lineage there: it is one of `others`, or a file that the configuration names already.
    pub fn lineage_problem(&self, lineage: &Path, others: &[Used]) -> Option<Problem> {
        let lineage = Used::file("--lineage", lineage);
        let used = used(self);
        let other = used.iter().chain(others).find(|other| lineage.clashes(other))?;
        let remedy = "name another file: a lineage holds digests of subjects and is for the custodian only";
        Some(Problem::new("command line", &*lineage.key, taken(&lineage, other), remedy))
    }
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
