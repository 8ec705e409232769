//! No two files import each other, directly or around: whoever reads one can read on downward, and never comes back.
//!
//! An import is a path that is written out: in a `use`, or before a `::` in the code. A re-export stands for what it names. What
//! only tests import does not count.

use sources::{files, test_regions, without_comments_and_literals};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::support::sources;

type Module = Vec<String>;

/// The sources below a folder, as modules that import each other.
struct Crate {
    /// Code without comments, literals and tests.
    code: BTreeMap<Module, String>,
    /// What a module hands on: its own name for an item, and the path that it stands for.
    handed_on: BTreeMap<(Module, String), Module>,
}

impl Crate {
    fn read(src: &Path) -> Self {
        let mut code = BTreeMap::new();
        for path in files(src).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
            let text = without_comments_and_literals(&fs::read_to_string(&path).expect("a source"));
            let mut kept = text.clone();
            for (from, to) in test_regions(&path, &text).into_iter().rev() {
                kept.replace_range(from..to, "");
            }
            if kept.trim().is_empty() {
                continue;
            }
            let module = path.strip_prefix(src).expect("below").with_extension("");
            let mut module: Module = module.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
                module.pop();
            }
            code.insert(module, kept);
        }
        let mut this = Self { code, handed_on: BTreeMap::new() };
        this.handed_on = this.code.iter().flat_map(|(module, code)| this.exports(module, code)).collect();
        this
    }

    fn exports(&self, module: &Module, code: &str) -> Vec<((Module, String), Module)> {
        let public = uses(code).into_iter().filter(|(public, _)| *public);
        let paths = public.flat_map(|(_, tree)| spread(&tree)).filter_map(|path| self.absolute(module, &path));
        paths.map(|path| ((module.clone(), path.last().cloned().unwrap_or_default()), path)).collect()
    }

    /// A path as it is seen from the root of the crate; none where it leads out of it.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let first = path.first()?.as_str();
        match first {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([&module[..], &path[1..]].concat()),
            "super" => {
                let ups = path.iter().take_while(|step| *step == "super").count();
                let kept = module.len().checked_sub(ups)?;
                Some([&module[..kept], &path[ups..]].concat())
            }
            _ => {
                let child = [&module[..], &path[..1]].concat();
                self.code.contains_key(&child).then(|| [&module[..], path].concat())
            }
        }
    }

    /// The module that an absolute path leads to.
    fn target(&self, path: &[String]) -> Option<Module> {
        let mut path = path.to_vec();
        for _ in 0..10 {
            let depth = (0..=path.len()).rev().find(|&n| self.code.contains_key(&path[..n]))?;
            let item = path.get(depth).cloned();
            let module = path[..depth].to_vec();
            match item.and_then(|item| self.handed_on.get(&(module.clone(), item))) {
                Some(real) if *real != path => path = [&real[..], &path[depth + 1..]].concat(),
                _ => return Some(module),
            }
        }
        None
    }

    /// The modules that a module imports.
    fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let code = &self.code[module];
        let private = uses(code).into_iter().filter(|(public, _)| !public).flat_map(|(_, tree)| spread(&tree));
        let paths = private.chain(written_out(code)).filter_map(|path| self.absolute(module, &path));
        let targets = paths.filter_map(|path| self.target(&path));
        targets.filter(|target| target != module && !target.is_empty()).collect()
    }

    /// Every module from which one comes back to it.
    fn in_circles(&self) -> BTreeSet<String> {
        let edges: BTreeMap<&Module, BTreeSet<Module>> = self.code.keys().map(|m| (m, self.imports(m))).collect();
        let comes_back = |start: &Module| {
            let (mut seen, mut todo) = (BTreeSet::new(), vec![start]);
            while let Some(module) = todo.pop() {
                for next in edges.get(module).into_iter().flatten() {
                    if next == start {
                        return true;
                    }
                    if seen.insert(next) {
                        todo.push(next);
                    }
                }
            }
            false
        };
        self.code.keys().filter(|module| comes_back(module)).map(|module| module.join("::")).collect()
    }
}

/// Where the `use` declarations of some code are, whether each is public, and its tree.
fn declarations(code: &str) -> Vec<(std::ops::Range<usize>, bool, &str)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let line = code[..at].rfind('\n').map_or(0, |n| n + 1);
        let before = code[line..at].trim();
        let public = before.starts_with("pub");
        if let Some(end) = code[at..].find(';').filter(|_| before.is_empty() || public) {
            found.push((line..at + end, public, &code[at + 4..at + end]));
        }
    }
    found
}

/// The `use` trees of some code, and whether each is public.
fn uses(code: &str) -> Vec<(bool, String)> {
    declarations(code).into_iter().map(|(_, public, tree)| (public, tree.to_owned())).collect()
}

/// The paths of a `use` tree.
fn spread(tree: &str) -> Vec<Vec<String>> {
    let steps = |text: &str| -> Vec<String> {
        let text = text.split(" as ").next().unwrap_or_default();
        text.split("::").map(|step| step.trim().to_owned()).filter(|step| !step.is_empty()).collect()
    };
    let Some(open) = tree.find('{') else { return vec![steps(tree)] };
    let before = steps(&tree[..open]);
    let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(spread).map(|path| [&before[..], &path[..]].concat()).collect()
}

/// Paths that are written out in the code itself, outside of any `use`.
fn written_out(code: &str) -> Vec<Vec<String>> {
    let mut rest = code.to_owned();
    for (place, ..) in declarations(code).into_iter().rev() {
        rest.replace_range(place, "");
    }
    let mut found = Vec::new();
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for word in rest.split(|c| !part(c)).filter(|word| word.contains("::") && !word.starts_with(':')) {
        found.push(word.split("::").filter(|step| !step.is_empty()).map(ToOwned::to_owned).collect());
    }
    found
}

#[test]
fn no_two_files_import_each_other() {
    let found = Crate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).in_circles();
    assert!(found.is_empty(), "these files are in a circle of imports: {found:#?}");
}

#[test]
fn a_circle_is_found_directly_and_around_and_through_what_is_handed_on() {
    let root = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in [
        ("lib.rs", "pub mod a;\npub mod b;\npub mod c;\npub mod d;\npub mod e;\n"),
        ("a.rs", "use crate::b::B;\npub struct A(B);\n"),
        ("b.rs", "use crate::c::{self, C};\npub struct B;\n"),
        ("c.rs", "pub struct C;\nfn f() -> super::a::A { todo() }\n"),
        ("d/mod.rs", "mod leaf;\npub use leaf::Leaf;\nuse crate::e::E;\n"),
        ("d/leaf.rs", "pub struct Leaf;\n"),
        ("e.rs", "use crate::d::Leaf;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n"),
    ] {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let found = Crate::read(root.path()).in_circles();
    assert_eq!(found, ["a", "b", "c"].map(ToOwned::to_owned).into_iter().collect());
}
