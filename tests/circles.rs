//! Checks that no two files import each other, directly or through other files.
//!
//! An import is a path in a `use` declaration, or before a `::` in the code. The first name of such a path may have
//! been imported by a `use`. A re-export counts as the item that it names and is an import as well, except for
//! re-exports from submodules. Imports of tests are ignored.

use sources::{files, test_regions, without_comments_and_literals};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::support::sources;

type Module = Vec<String>;

/// `use` of one item.
struct Use {
    public: bool,
    /// The path as written.
    path: Module,
    /// The imported name; `*` for all names.
    name: String,
}

/// Sources below a folder, as modules that import each other.
struct Crate {
    /// Code without comments, literals and tests.
    code: BTreeMap<Module, String>,
    /// Imports of a module: the local name of an item, and its path.
    brought_in: BTreeMap<(Module, String), Module>,
    /// Public re-exports, in the same form.
    handed_on: BTreeMap<(Module, String), Module>,
    /// Modules that are re-exported as a whole.
    handed_on_whole: BTreeMap<Module, Vec<Module>>,
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
            let kept = flattened(kept);
            let module = path.strip_prefix(src).expect("below").with_extension("");
            let mut module: Module = module.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
                module.pop();
            }
            code.insert(module, kept);
        }
        let mut this =
            Self { code, brought_in: BTreeMap::new(), handed_on: BTreeMap::new(), handed_on_whole: BTreeMap::new() };
        for module in this.code.keys().cloned().collect::<Vec<_>>() {
            for Use { public, path, name } in uses(&this.code[&module]) {
                let Some(path) = this.absolute(&module, &path) else { continue };
                let key = (module.clone(), name);
                match (public, key.1.as_str()) {
                    (true, "*") => this.handed_on_whole.entry(module.clone()).or_default().push(path),
                    (true, _) => {
                        this.handed_on.insert(key.clone(), path.clone());
                        this.brought_in.insert(key, path);
                    }
                    (false, _) => {
                        this.brought_in.insert(key, path);
                    }
                }
            }
        }
        this
    }

    /// Resolves a path from the root of the crate. Returns `None` for a path to another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let first = path.first()?.as_str();
        match first {
            "crate" => Some(path[1..].to_vec()),
            "self" if path.get(1).is_some_and(|second| second == "super") => self.absolute(module, &path[1..]),
            "self" => Some([&module[..], &path[1..]].concat()),
            "super" => {
                let ups = path.iter().take_while(|step| *step == "super").count();
                let kept = module.len().checked_sub(ups)?;
                Some([&module[..kept], &path[ups..]].concat())
            }
            _ => {
                let child = [&module[..], &path[..1]].concat();
                if self.code.contains_key(&child) {
                    return Some([&module[..], path].concat());
                }
                let known = self.brought_in.get(&(module.clone(), first.to_owned()))?;
                Some([&known[..], &path[1..]].concat())
            }
        }
    }

    /// Returns the module that an absolute path leads to.
    fn target(&self, path: &[String]) -> Option<Module> {
        let mut path = path.to_vec();
        for _ in 0..10 {
            let depth = (0..=path.len()).rev().find(|&n| self.code.contains_key(&path[..n]))?;
            let module = path[..depth].to_vec();
            let Some(item) = path.get(depth) else { return Some(module) };
            match self.real(&module, item) {
                Some(real) if real != path => path = [&real[..], &path[depth + 1..]].concat(),
                _ => return Some(module),
            }
        }
        None
    }

    /// Returns the original path of the name `item`, if the module only re-exports it.
    fn real(&self, module: &Module, item: &str) -> Option<Module> {
        if let Some(real) = self.handed_on.get(&(module.clone(), item.to_owned())) {
            return Some(real.clone());
        }
        let whole = self.handed_on_whole.get(module)?.iter();
        let named = |whole: &Module| [&whole[..], &[item.to_owned()]].concat();
        let has = |whole: &&Module| {
            self.code.contains_key(&named(whole))
                || self.code.get(*whole).is_some_and(|code| defines(code, item))
                || self.handed_on.contains_key(&((*whole).clone(), item.to_owned()))
        };
        whole
            .map(|whole| whole.strip_suffix(&["*".to_owned()]).unwrap_or(whole).to_vec())
            .find(|whole| has(&whole))
            .map(|w| named(&w))
    }

    /// Returns the modules that a module imports.
    fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let code = &self.code[module];
        let mut found = BTreeSet::new();
        for Use { public, path, .. } in uses(code) {
            let target = self.absolute(module, &path).and_then(|path| self.target(&path));
            // Re-exports from submodules are not imports.
            found.extend(target.filter(|target| !(public && target.starts_with(module))));
        }
        let paths = written_out(code).into_iter().filter_map(|path| self.absolute(module, &path));
        found.extend(paths.filter_map(|path| self.target(&path)));
        found.retain(|target| target != module && !target.is_empty());
        found
    }

    /// Returns every module that is part of an import cycle.
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

/// Merges inline modules into the surrounding code and removes one `super` from their paths.
fn flattened(mut code: String) -> String {
    let mut from = 0;
    while let Some(at) = code[from..].find("mod ").map(|at| from + at) {
        from = at + 4;
        let is_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let head = code[from..].find(['{', ';']).map(|end| from + end);
        let Some(open) = head.filter(|open| is_word && code[*open..].starts_with('{')) else { continue };
        let mut depth = 0;
        let close = code[open..].char_indices().find_map(|(offset, c)| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            (depth == 0).then_some(open + offset)
        });
        let close = close.unwrap_or(code.len());
        let inner = code[open..close].replace("self::super::", "self::");
        let inner = inner.replace("super::", "self::").replace("self::self::", "self::super::");
        code.replace_range(open..close, &inner);
    }
    code
}

/// Returns the range of each `use` declaration, its visibility, and its tree.
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

/// Checks that the code defines an item of this name.
fn defines(code: &str, name: &str) -> bool {
    const KINDS: [&str; 10] =
        ["struct", "enum", "union", "trait", "type", "fn", "const", "static", "mod", "macro_rules!"];
    let words: Vec<&str> = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '!')).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.windows(2).any(|pair| KINDS.contains(&pair[0]) && pair[1] == name)
}

/// Returns the items that the `use` declarations import.
fn uses(code: &str) -> Vec<Use> {
    let of = |(_, public, tree): (_, bool, &str)| {
        spread(tree).into_iter().map(move |(path, name)| Use { public, path, name }).collect::<Vec<_>>()
    };
    declarations(code).into_iter().flat_map(of).collect()
}

/// Returns the paths of a `use` tree, each with the imported name.
fn spread(tree: &str) -> Vec<(Module, String)> {
    let steps = |text: &str| -> Module {
        text.split("::").map(|step| step.trim().to_owned()).filter(|step| !step.is_empty()).collect()
    };
    let Some(open) = tree.find('{') else {
        let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
        let mut path = steps(path);
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = alias.map(|alias| alias.trim().to_owned()).or_else(|| path.last().cloned()).unwrap_or_default();
        return vec![(path, name)];
    };
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
    let of = |(path, name): (Module, String)| match path.as_slice() {
        // The module itself.
        [only] if only == "self" => {
            let own = before.last().cloned().unwrap_or_default();
            (before.clone(), if name == "self" { own } else { name })
        }
        _ => ([&before[..], &path[..]].concat(), name),
    };
    parts.flat_map(spread).map(of).collect()
}

/// Returns the paths in the code outside of `use` declarations.
fn written_out(code: &str) -> Vec<Module> {
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
fn sources_have_no_import_cycles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = fs::read_dir(root.join("crates")).expect("the crates").map(|entry| entry.expect("a crate").path());
    for owner in crates.chain([root.to_owned()]) {
        let found = Crate::read(&owner.join("src")).in_circles();
        assert!(found.is_empty(), "these files are in a circle of imports: {found:#?}");
    }
}

/// Returns the modules in import cycles of a crate with these files.
fn circles_of(sources: &[(&str, &str)]) -> BTreeSet<String> {
    let root = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in sources {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    Crate::read(root.path()).in_circles()
}

fn named(modules: &[&str]) -> BTreeSet<String> {
    modules.iter().map(|module| (*module).to_owned()).collect()
}

#[test]
fn import_cycle_through_other_files_and_reexports_is_found() {
    let found = circles_of(&[
        ("lib.rs", "pub mod a;\npub mod b;\npub mod c;\npub mod d;\npub mod e;\n"),
        ("a.rs", "use crate::b::B;\npub struct A(B);\n"),
        ("b.rs", "use crate::c::{self, C};\npub struct B;\n"),
        ("c.rs", "pub struct C;\nfn f() -> super::a::A { todo() }\n"),
        ("d/mod.rs", "mod leaf;\npub use leaf::Leaf;\nuse crate::e::E;\n"),
        ("d/leaf.rs", "pub struct Leaf;\n"),
        ("e.rs", "use crate::d::Leaf;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n"),
    ]);
    assert_eq!(found, named(&["a", "b", "c"]));
}

#[test]
fn import_cycle_through_an_imported_module_is_found() {
    for search in [
        "use super::strategies;\npub struct Search;\nfn f() { strategies::flash::run() }\n",
        "use super::strategies as orders;\npub struct Search;\nfn f() { orders::flash::run() }\n",
        "use super::{strategies::{self}};\npub struct Search;\nfn f() { strategies::flash::run() }\n",
        "use super::strategies;\nuse strategies::flash::run;\npub struct Search;\n",
    ] {
        let found = circles_of(&[
            ("lib.rs", "mod search;\nmod strategies;\n"),
            ("search.rs", search),
            ("strategies/mod.rs", "pub mod flash;\n"),
            ("strategies/flash.rs", "use crate::search::Search;\npub fn run() {}\n"),
        ]);
        assert_eq!(found, named(&["search", "strategies::flash"]), "{search}");
    }
}

#[test]
fn import_cycle_through_reexported_names_is_found() {
    for (a, c) in [
        // A re-export is an import.
        ("pub use crate::b::B;\npub struct A;\n", ""),
        // Under another name, and with all names.
        ("use crate::c::Other;\npub struct A;\n", "pub use crate::b::B as Other;\n"),
        ("use crate::c::B;\npub struct A;\n", "pub use crate::b::*;\n"),
    ] {
        let found =
            circles_of(&[("lib.rs", ""), ("a.rs", a), ("b.rs", "use crate::a::A;\npub struct B;\n"), ("c.rs", c)]);
        assert!(found.is_superset(&named(&["a", "b"])), "{a}: {found:?}");
    }
    let inline = "pub struct A;\nmod text { use super::A; mod deep { use super::super::A; } }\n";
    let found = circles_of(&[("lib.rs", ""), ("a/mod.rs", "mod leaf;\nuse leaf::A;\n"), ("a/leaf.rs", inline)]);
    assert_eq!(found, named(&[]), "`super` in a module in braces is the file");
    let inside = [("lib.rs", ""), ("a/mod.rs", "mod leaf;\npub use leaf::Leaf;\npub struct A;\n")];
    let leaf = ("a/leaf.rs", "use super::A;\npub struct Leaf;\n");
    assert_eq!(circles_of(&[inside[0], inside[1], leaf]), named(&[]), "a module hands on what is inside it");
}
