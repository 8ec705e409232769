//! Checks that every citation in comments and documents resolves.
//!
//! A `§` refers to the document or the key in brackets that precedes it in the same paragraph.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const METHODS: &str = "docs/internals/methods.md";
const ARCHITECTURE: &str = "docs/internals/architecture.md";
const THREATS: &str = "docs/internals/threats.md";
const DECISIONS: &str = "docs/internals/decisions.md";

/// Texts outside the repository, split so that this file does not contain them.
const ELSEWHERE: [(&str, &str); 4] = [("METH", "ODS"), ("ARCHITECT", "URE"), ("THRE", "ATS"), ("ST", "YLE")];

type Files = BTreeMap<String, String>;

/// A paragraph of a document, a row of a table, or a block of comments.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Paragraph {
    line: usize,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Citation {
    Key(String),
    /// Number after `§`, and its owner: a document, a key, or none.
    Section(String, Option<String>),
    /// Numbered rule, with its document if known.
    Rule(String, Option<String>),
    Threat(String),
    /// Decision by its four digits.
    Decision(String),
    /// Document by its path from the root or from `docs`, or its name.
    Document(String),
}

fn prose(name: &str, text: &str) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let (mut open, mut fenced) = (false, false);
    for (number, line) in (1..).zip(text.lines()) {
        let (part, alone) = if has_ending(name, "md") {
            let line = line.trim();
            fenced ^= line.starts_with("```");
            let alone = line.starts_with('|') || line.starts_with('#') || line.starts_with("- ");
            (if fenced || line.starts_with("```") { "" } else { line }, alone)
        } else {
            comment(name, line)
        };
        if part.is_empty() {
            open = false;
            continue;
        }
        match found.last_mut().filter(|_| open && !alone) {
            Some(last) => {
                last.text.push(' ');
                last.text.push_str(part);
            }
            None => found.push(Paragraph { line: number, text: part.to_owned() }),
        }
        // Lines after a bullet belong to it.
        open = !(alone && (part.starts_with('|') || part.starts_with('#')));
    }
    found
}

fn comment<'a>(name: &str, line: &'a str) -> (&'a str, bool) {
    let mark = if has_ending(name, "py") { "#" } else { "//" };
    if let Some(text) = line.trim_start().strip_prefix(mark) {
        return (text.trim_start_matches(['/', '!']).trim(), false);
    }
    let is_comment = |at: &usize| {
        let before = &line[..*at];
        before.matches('"').count().is_multiple_of(2) && before.ends_with(' ')
    };
    let start = line.match_indices(mark).map(|(at, _)| at).find(is_comment);
    start.map_or(("", false), |at| (line[at + mark.len()..].trim(), true))
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == ending)
}

fn citations(text: &str) -> Vec<Citation> {
    // A name in back quotes and brackets is a link to code.
    let text = text.replace("[`", "[ ").replace('`', "");
    let mut found = Vec::new();
    let mut owner: Option<String> = None;
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        let starts_a_word = !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        if c == '[' {
            if let Some(key) = key(rest) {
                owner = Some(key.to_owned());
                found.push(Citation::Key(key.to_owned()));
            }
        } else if c == '§' {
            let number = number(&rest[c.len_utf8()..]);
            if !number.is_empty() {
                found.push(Citation::Section(number.to_owned(), owner.clone()));
            }
        } else if rest.starts_with(".md") && !rest[3..].starts_with(char::is_alphanumeric) {
            let path = document_before(&text[..at]);
            if !path.is_empty() {
                owner = Some(file_name(&path).to_owned());
                if file_name(&path) == file_name(THREATS) {
                    found.extend(rows(&rest[3..]).into_iter().map(Citation::Threat));
                }
                // Without a folder it is the text of a link or a user's file.
                let leads = text[..at].trim_end_matches(|c| c != '(' && c != ' ').ends_with("](");
                if path.contains('/') || leads {
                    found.push(Citation::Document(path));
                }
            }
        } else if starts_a_word && rest.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("rule ")) {
            let number = number(&rest[5..]);
            if !number.is_empty() {
                found.push(Citation::Rule(number.to_owned(), owner.clone().filter(|owner| has_ending(owner, "md"))));
            }
        } else if starts_a_word {
            let digits = ["decision ", "decisions/"].iter().find_map(|word| rest.strip_prefix(word)).map(number);
            found.extend(digits.filter(|d| d.len() == 4).map(|digits| Citation::Decision(digits.to_owned())));
        }
    }
    found
}

/// Returns the key in brackets at the start of `text`: a capital letter followed by two to four capitals or digits.
fn key(text: &str) -> Option<&str> {
    let (key, after) = text.strip_prefix('[')?.split_once(']')?;
    let capital = key.starts_with(|c: char| c.is_ascii_uppercase());
    let alike = key.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    (capital && alike && (3..=5).contains(&key.len()) && !after.starts_with('(')).then_some(key)
}

fn number(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

fn document_before(text: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let start = text.char_indices().rev().take_while(|(_, c)| part(*c)).last().map_or(text.len(), |(at, _)| at);
    if start == text.len() { String::new() } else { format!("{}.md", &text[start..]) }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the rows after a document: ` row 7`, `, 7`, ` rows 5, 6 and 7`.
fn rows(behind: &str) -> Vec<String> {
    let mut rest = behind.trim_start_matches([')', ']']);
    if rest.starts_with('(') {
        rest = rest.split_once(')').map_or("", |(_, rest)| rest);
    }
    let mut rows = Vec::new();
    let mut first = true;
    loop {
        let words: &[&str] = if first { &[" rows ", " row ", ", row ", ", "] } else { &[", ", " and ", " to "] };
        let next = words.iter().find_map(|word| rest.strip_prefix(word)).map(|rest| (number(rest), rest));
        let Some((number, after)) = next.filter(|(number, _)| !number.is_empty()) else { return rows };
        rows.push(number.to_owned());
        (rest, first) = (&after[number.len()..], false);
    }
}

struct Shelf<'a> {
    files: &'a Files,
    sections: BTreeSet<String>,
    rules: BTreeSet<String>,
    threats: BTreeSet<String>,
    entries: BTreeMap<String, usize>,
    bibliography: usize,
}

impl<'a> Shelf<'a> {
    fn new(files: &'a Files) -> Self {
        let lines = |name: &str| files.get(name).map_or("", String::as_str).lines().zip(1..);
        let numbers = |name: &str, before: &[&str]| -> BTreeSet<String> {
            let of =
                |line: &str| before.iter().find_map(|start| line.strip_prefix(start)).map(number).map(str::to_owned);
            lines(name).filter_map(|(line, _)| of(line)).filter(|number| !number.is_empty()).collect()
        };
        let bibliography =
            lines(METHODS).find(|(line, _)| *line == "## Bibliography").map_or(usize::MAX, |(_, number)| number);
        let entry = |(line, number): (&str, usize)| {
            let of = line.strip_prefix("- ").and_then(key).filter(|_| number > bibliography);
            of.map(|key| (key.to_owned(), number))
        };
        Self {
            files,
            sections: numbers(METHODS, &["## ", "### "]),
            rules: numbers(ARCHITECTURE, &["### Rule "]),
            threats: numbers(THREATS, &["| "]),
            entries: lines(METHODS).filter_map(entry).collect(),
            bibliography,
        }
    }

    /// Checks a path from the root or from the citing file.
    fn has_document(&self, from: &str, path: &str) -> bool {
        let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in path.split('/').filter(|part| *part != ".") {
            if part == ".." {
                parts.pop();
            } else {
                parts.push(part);
            }
        }
        self.files.contains_key(&parts.join("/")) || self.files.contains_key(path)
    }

    fn has_decision(&self, digits: &str) -> bool {
        let heading = format!("## {digits} ");
        self.files.get(DECISIONS).is_some_and(|text| text.lines().any(|line| line.starts_with(&heading)))
    }

    fn judge(&self, name: &str, citation: &Citation) -> Option<String> {
        let own = |document: &str, owner: &Option<String>| {
            owner.as_deref() == Some(file_name(document)) || owner.is_none() && name == document
        };
        match citation {
            Citation::Key(key) if self.entries.contains_key(key) => None,
            Citation::Key(key) => Some(format!("[{key}] is not in the bibliography of {METHODS}")),
            Citation::Section(number, owner) if own(METHODS, owner) => {
                (!self.sections.contains(number)).then(|| format!("{METHODS} has no section {number}"))
            }
            Citation::Section(_, Some(key)) if !has_ending(key, "md") => None,
            Citation::Section(number, _) => Some(format!("§{number} of which text?")),
            Citation::Rule(number, owner) if own(ARCHITECTURE, owner) => {
                (!self.rules.contains(number)).then(|| format!("{ARCHITECTURE} has no rule {number}"))
            }
            Citation::Rule(number, _) => Some(format!("rule {number} of which text?")),
            Citation::Threat(number) => {
                (!self.threats.contains(number)).then(|| format!("{THREATS} has no row {number}"))
            }
            Citation::Decision(digits) => {
                (!self.has_decision(digits)).then(|| format!("there is no decision {digits}"))
            }
            Citation::Document(path) => {
                (!self.has_document(name, path)).then(|| format!("there is no document {path}"))
            }
        }
    }
}

fn complaints(files: &Files) -> (Vec<String>, usize) {
    let shelf = Shelf::new(files);
    let (mut found, mut count) = (Vec::new(), 0);
    let mut cited: BTreeSet<String> = BTreeSet::new();
    for (name, text) in files {
        for Paragraph { line, text } in prose(name, text) {
            let entry = name == METHODS && line > shelf.bibliography;
            for citation in citations(&text) {
                count += 1;
                if let (Citation::Key(key), false) = (&citation, entry) {
                    cited.insert(key.clone());
                }
                found.extend(shelf.judge(name, &citation).map(|wrong| format!("{name}:{line}: {wrong}")));
            }
            for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
                if ELSEWHERE.iter().any(|(a, b)| word.strip_prefix(a) == Some(b)) {
                    found.push(format!("{name}:{line}: {word} is no text of this repository"));
                }
            }
            if entry && key(text.trim_start_matches("- ")).is_none() && text.starts_with("- ") {
                found.push(format!("{name}:{line}: an entry of the bibliography without a key"));
            }
            if name == METHODS && !entry {
                for (at, word) in text.match_indices("section ") {
                    let number = number(&text[at + word.len()..]);
                    if !number.is_empty() && !shelf.sections.contains(number) {
                        found.push(format!("{name}:{line}: {METHODS} has no section {number}"));
                    }
                }
            }
        }
    }
    for (key, line) in shelf.entries.iter().filter(|(key, _)| !cited.contains(*key)) {
        found.push(format!("{METHODS}:{line}: nothing cites [{key}]"));
    }
    (found, count)
}

fn glossary_names(text: &str) -> BTreeSet<String> {
    let glossary = text.split_once("## Glossary").map_or("", |(_, glossary)| glossary);
    let last = |line: &str| line.strip_suffix(" |").and_then(|row| row.rsplit(" | ").next()).map(str::to_owned);
    let is_name = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    glossary.lines().filter_map(last).flat_map(|part| quoted(&part)).filter(is_name).collect()
}

/// Returns the paths in back quotes in the paragraphs that begin with *Where:*.
fn where_paths(text: &str) -> BTreeSet<String> {
    let paragraphs = prose(METHODS, text).into_iter().map(|paragraph| paragraph.text);
    let paths = paragraphs.filter(|text| text.contains("Where:")).flat_map(|text| quoted(&text));
    paths.filter(|path| path.contains('/')).collect()
}

fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn declared(files: &Files) -> BTreeSet<String> {
    let kinds = ["struct", "enum", "trait", "type", "fn", "mod", "const"];
    let sources = files
        .iter()
        .filter(|(path, _)| (path.starts_with("src/") || path.starts_with("crates/")) && has_ending(path, "rs"));
    let names = sources.flat_map(|(_, text)| {
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let of_two = |two: &[&str]| kinds.contains(&two[0]).then(|| two[1].to_owned());
        words.windows(2).filter_map(of_two).collect::<Vec<_>>()
    });
    names.collect()
}

fn read(root: &Path, folder: &Path, files: &mut Files) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            read(root, &path, files);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
            files.insert(name, text);
        }
    }
}

fn repository() -> Files {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Files::new();
    for folder in ["src", "crates", "tests", "benches", "docs"] {
        read(root, &root.join(folder), &mut files);
    }
    for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        files.insert(name.to_owned(), fs::read_to_string(root.join(name)).expect("a document"));
    }
    files
}

#[test]
fn every_citation_resolves() {
    let (found, count) = complaints(&repository());
    assert!(found.is_empty(), "{} citations do not resolve:\n{}", found.len(), found.join("\n"));
    assert!(count > 300, "{count} citations: was anything looked at?");
}

#[test]
fn documents_name_only_declared_items_and_existing_folders() {
    let files = repository();
    let declared = declared(&files);
    let names = glossary_names(&files[ARCHITECTURE]);
    assert!(names.len() > 20, "the glossary names {} modules and types", names.len());
    let missing: Vec<&String> = names.difference(&declared).collect();
    assert!(missing.is_empty(), "no source declares these names of the glossary: {missing:?}");
    let paths = where_paths(&files[METHODS]);
    assert!(paths.len() > 10, "{METHODS} names {} folders", paths.len());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let missing: Vec<&String> = paths.iter().filter(|path| !root.join(path).exists()).collect();
    assert!(missing.is_empty(), "{METHODS} names folders that do not exist: {missing:?}");
}

fn made_up() -> Files {
    let methods = "# M\n\n## 1. Terms\nAfter [ABC] §7; see section 1.2.\n\n### 1.2 Roles\nx\n\n## Bibliography\n\n- [ABC] A. 1999.\n";
    let architecture = "### Rule 1: first\nAs rule 1 says ([methods.md](methods.md) §1 and §1.2).\n";
    let threats = "| # | leak |\n|---|---|\n| 1 | a |\n| 2 | b |\n";
    let files = [
        (METHODS, methods),
        (ARCHITECTURE, architecture),
        (THREATS, threats),
        (DECISIONS, "## 0001 Why\nSee [threats](threats.md).\n"),
        (
            "src/lib.rs",
            "//! A thing (docs/internals/methods.md §1.2; [ABC] §9, eq. 2), decision 0001.\nlet x = \"§3\";\n",
        ),
    ];
    files.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

#[test]
fn valid_sample_repository_has_no_complaints() {
    let (found, count) = complaints(&made_up());
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(count, 14);
}

#[test]
fn unresolved_citations_are_found() {
    let source = |text: &str| {
        let mut files = made_up();
        files.insert("tests/a.rs".to_owned(), text.to_owned());
        complaints(&files).0
    };
    let elsewhere = format!("/// As {}{} §1 says.\n", ELSEWHERE[0].0, ELSEWHERE[0].1);
    for (text, wrong) in [
        ("//! docs/internals/methods.md §3.\n", "tests/a.rs:1: docs/internals/methods.md has no section 3"),
        (
            "//! docs/internals/methods.md §1 and\n//! §1.3.\n",
            "tests/a.rs:1: docs/internals/methods.md has no section 1.3",
        ),
        (
            "\n    let a = 1; // docs/internals/methods.md §4\n",
            "tests/a.rs:2: docs/internals/methods.md has no section 4",
        ),
        ("/// docs/internals/methods.md §1\n///\n/// and §1.\n", "tests/a.rs:3: §1 of which text?"),
        ("/// docs/internals/threats.md §1.\n", "tests/a.rs:1: §1 of which text?"),
        ("/// As [XYZ] says.\n", "tests/a.rs:1: [XYZ] is not in the bibliography of docs/internals/methods.md"),
        ("// docs/internals/architecture.md rule 2\n", "tests/a.rs:1: docs/internals/architecture.md has no rule 2"),
        ("// By rule 1.\n", "tests/a.rs:1: rule 1 of which text?"),
        ("// docs/internals/threats.md rows 1 and 3\n", "tests/a.rs:1: docs/internals/threats.md has no row 3"),
        ("// (docs/internals/threats.md, 4)\n", "tests/a.rs:1: docs/internals/threats.md has no row 4"),
        ("// decision 0002\n", "tests/a.rs:1: there is no decision 0002"),
        ("// docs/nothing.md\n", "tests/a.rs:1: there is no document docs/nothing.md"),
        (&elsewhere, "tests/a.rs:1: METHODS is no text of this repository"),
    ] {
        assert!(source(text).iter().any(|found| found == wrong), "{text:?} gives {:?}", source(text));
    }
    assert_eq!(
        source("// [docs](x), [0, 1], x[ABC], rules 1, §N, docs/internals/threats.md rows 1 to 2.\n"),
        Vec::<String>::new()
    );

    let mut files = made_up();
    let more = files[METHODS].clone() + "- [DEF] D. 2000.\n- Nameless. 2001.\n";
    files.insert(METHODS.to_owned(), more.replace("section 1.2", "section 8"));
    let expected = [
        "docs/internals/methods.md:4: docs/internals/methods.md has no section 8",
        "docs/internals/methods.md:13: an entry of the bibliography without a key",
        "docs/internals/methods.md:12: nothing cites [DEF]",
    ];
    assert_eq!(complaints(&files).0, expected);
}

#[test]
fn undeclared_glossary_names_are_found() {
    let text = "| `a` | `b` |\n\n*Where:* `src/made`,\n`src/things`.\n\n## Glossary\n| a | `b` | `Thing`, `gone` |\n";
    let names = glossary_names(text);
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), ["Thing", "gone"]);
    assert_eq!(where_paths(text).iter().map(String::as_str).collect::<Vec<_>>(), ["src/made", "src/things"]);
    let files = Files::from([("src/a.rs".to_owned(), "pub struct Thing;\nfn made() {}\n".to_owned())]);
    let declared = declared(&files);
    assert_eq!(names.intersection(&declared).collect::<Vec<_>>(), ["Thing"]);
}
