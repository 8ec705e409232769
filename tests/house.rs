//! Checks the architecture rules on the sources: layers, forbidden imports and calls, and file sizes.

use sources::{files, test_regions, without_comments_and_literals};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::sources;

/// Imports go strictly to lower layers. Modules of the lowest layer may import each other.
const FLOORS: [(&str, u8); 11] = [
    ("html", 0),
    ("config", 0),
    ("telemetry", 0),
    ("planner", 4),
    ("io", 6),
    ("generate", 6),
    ("start", 7),
    ("dataset", 8),
    ("evaluation", 8),
    ("daemon", 9),
    ("cli", 10),
];

/// Maximum number of lines of a file. A longer file has more than one purpose.
const LONGEST: usize = 600;

/// Private paths of a developer's machine. The names are split, so that this file does not contain them.
const PRIVATE_PLACES: [(&str, &str); 5] =
    [("/ho", "me/"), ("/ro", "ot/"), ("/Us", "ers/"), ("/wo", "rk/"), ("/tm", "p/")];

fn floor(wing: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == wing).map(|&(_, floor)| floor)
}

/// Returns the rule violations below `root`, one line each, sorted.
fn violations(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["src", "crates", "tests", "benches", "config", "schemas"] {
        for path in files(&root.join(folder)) {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for (number, line) in text.lines().enumerate() {
                if PRIVATE_PLACES.iter().any(|(a, b)| line.contains(&format!("{a}{b}"))) {
                    found.push(format!("{name}:{}: a path of somebody's own machine", number + 1));
                }
            }
            if path.extension().is_some_and(|e| e == "rs") {
                let lines = text.lines().count();
                if lines > LONGEST {
                    found.push(format!("{name}: {lines} lines, at most {LONGEST}: which is its second idea?"));
                }
                if let Some(src) = sources_of(root, &path) {
                    found.extend(source_violations(&src, &path, &name, &text));
                }
            }
        }
    }
    found.sort();
    found
}

/// Returns the `src` folder of the crate of a file. Returns `None` for a test or a benchmark.
fn sources_of(root: &Path, path: &Path) -> Option<PathBuf> {
    let src = path.ancestors().find(|folder| folder.ends_with("src"))?;
    let owner = src.parent()?;
    (owner == root || owner.parent()? == root.join("crates")).then(|| src.to_owned())
}

fn source_violations(src: &Path, path: &Path, name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let code = without_comments_and_literals(text);
    let tests = test_regions(path, &code);
    let place = |at: usize| format!("{name}:{}", code[..at].matches('\n').count() + 1);
    let tested = |at: usize| tests.iter().any(|&(from, to)| from <= at && at < to);

    let parts: Vec<String> = path
        .strip_prefix(src)
        .expect("below src")
        .with_extension("")
        .iter()
        .map(|p| p.to_string_lossy().into_owned())
        .filter(|p| p != "mod")
        .collect();
    let wing = parts.first().map_or("", String::as_str);
    let at_the_door = matches!(wing, "lib" | "main");
    let speaks = wing == "cli" || wing == "main";

    // The compiler enforces the boundaries between crates.
    if !at_the_door && name.starts_with("src/") {
        match floor(wing) {
            None => found.push(format!("{name}: the wing {wing} has no floor in tests/house.rs")),
            Some(own) => {
                for (at, target) in imports(&code, parts.len()) {
                    let Some(theirs) = floor(&target) else { continue };
                    if target != wing && theirs >= own && own > 0 || own == 0 && theirs > 0 {
                        found.push(format!("{}: {wing} (floor {own}) imports {target} (floor {theirs})", place(at)));
                    }
                }
            }
        }
    }
    for word in ["println!", "print!", "eprintln!", "eprint!", "dbg!"] {
        for at in words(&code, word).filter(|&at| !speaks && !tested(at)) {
            found.push(format!("{}: {word} outside cli", place(at)));
        }
    }
    let knows_the_gpu = wing == "counting" || name.starts_with("src/cli/gpu/") || name.contains("/tests/");
    for at in words(&code, "cuda").filter(|&at| !knows_the_gpu && !tested(at)) {
        found.push(format!("{}: cuda outside counting: ask a backend", place(at)));
    }
    for at in words(&code, "anyhow").filter(|_| !speaks) {
        found.push(format!("{}: anyhow outside cli", place(at)));
    }
    for at in code.match_indices(".unwrap()").map(|(at, _)| at).filter(|&at| !tested(at)) {
        found.push(format!("{}: .unwrap() outside tests", place(at)));
    }
    found
}

/// Returns the positions of `word` as a whole word.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let after = &code[at + word.len()..];
        !code[..at].chars().next_back().is_some_and(part) && (word.ends_with('!') || !after.starts_with(part))
    })
}

/// Returns the first segment of every path from the root of the crate, written as `crate::…` or as enough `super::`.
/// `depth` is the number of modules above and including that of the file.
fn imports(code: &str, depth: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for at in words(code, "crate") {
        // `pub(crate)` is no path.
        if let Some(rest) = code[at + 5..].trim_start().strip_prefix("::") {
            found.extend(first_steps(rest).into_iter().map(|step| (at, step)));
        }
    }
    for at in words(code, "super") {
        if code[..at].trim_end().ends_with("super::") {
            continue;
        }
        let (mut rest, mut steps) = (&code[at..], 0);
        while let Some(next) = rest.strip_prefix("super::") {
            (rest, steps) = (next, steps + 1);
        }
        if steps >= depth {
            found.extend(first_steps(rest).into_iter().map(|step| (at, step)));
        }
    }
    found
}

/// `a::b` gives a; `{a::b, c::{d, e}}` gives a and c.
fn first_steps(path: &str) -> Vec<String> {
    let path = path.trim_start();
    let name =
        |text: &str| -> String { text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut depth, mut start, mut steps) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' | ',' if depth == 0 => {
                steps.push(name(&group[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    steps
}

#[test]
fn sources_follow_the_architecture_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(files(&root.join("src")).len() > 5, "no sources were looked at");
    let found = violations(root);
    assert!(found.is_empty(), "{} rules broken:\n{}", found.len(), found.join("\n"));
}

fn fake_house(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    root
}

#[test]
fn architecture_violations_are_found() {
    let private = format!("brokers = \"{}{}x\"\n", "/ho", "me/");
    let long = "\n".repeat(LONGEST + 1);
    let root = fake_house(&[
        ("src/config/mod.rs", "use crate::telemetry::Event;\nuse crate::planner::Plan;\n"),
        ("src/planner/mod.rs", "use crate::{\n    config::Config,\n    io::{self, Source},\n};\n"),
        ("src/start/mod.rs", "fn f() { let x = super::daemon::run(); }\n"),
        ("src/planner/deep/er.rs", "use super::super::super::cli;\nuse super::super::io;\n"),
        ("src/io/mod.rs", "use crate::generate::Wearable;\n"),
        ("crates/throng-core/src/ledger/mod.rs", "use crate::counting::cuda::Driver;\n"),
        ("src/generate/mod.rs", "fn f() { println!(\"{}\", 1); }\nuse anyhow::Result;\nfn g() { x().unwrap(); }\n"),
        ("src/attic/mod.rs", ""),
        ("src/daemon/mod.rs", &long),
        ("config/a.toml", &private),
    ]);
    assert_eq!(
        violations(root.path()),
        [
            "config/a.toml:1: a path of somebody's own machine",
            "crates/throng-core/src/ledger/mod.rs:1: cuda outside counting: ask a backend",
            "src/attic/mod.rs: the wing attic has no floor in tests/house.rs",
            "src/config/mod.rs:2: config (floor 0) imports planner (floor 4)",
            "src/daemon/mod.rs: 601 lines, at most 600: which is its second idea?",
            "src/generate/mod.rs:1: println! outside cli",
            "src/generate/mod.rs:2: anyhow outside cli",
            "src/generate/mod.rs:3: .unwrap() outside tests",
            "src/io/mod.rs:1: io (floor 6) imports generate (floor 6)",
            "src/planner/deep/er.rs:1: planner (floor 4) imports cli (floor 10)",
            "src/planner/mod.rs:1: planner (floor 4) imports io (floor 6)",
            "src/start/mod.rs:1: start (floor 7) imports daemon (floor 9)",
        ]
    );
}

#[test]
fn architecture_check_ignores_comments_literals_and_tests() {
    let root = fake_house(&[
        ("src/lib.rs", "pub mod cli;\n"),
        ("src/cli/mod.rs", "use crate::daemon;\nuse anyhow::Result;\nfn f() { println!(\"x\"); }\n"),
        (
            "src/io/mod.rs",
            "//! `crate::cli` .unwrap() println!\n/* crate::daemon /* anyhow */ crate::io */\n\
             const A: &str = \"crate::cli\\\" anyhow\"; const B: &str = r#\"crate::cli \"println!\"# ;\n\
             const C: char = '\"'; fn f<'a>(x: &'a str) {} use throng_core::Row; use throng_core::release::x;\n\
             #[cfg(test)]\nmod tests {\n    use super::*;\n    fn g() { println!(\"{}\", h().unwrap()); }\n}\n\
             #[cfg(test)]\nmod twin;\npub(crate) fn cli() {}\n",
        ),
        ("src/io/twin.rs", "fn g() { h().unwrap(); }\n"),
    ]);
    assert_eq!(violations(root.path()), Vec::<String>::new());
}
