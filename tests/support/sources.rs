//! Parses Rust sources: separates code from comments and literals, and finds test code.

#![allow(dead_code, reason = "not every test that reads sources needs all of it")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the byte ranges under `#[cfg(test)]`, or the whole file if its parent declares it as test code.
pub fn test_regions(path: &Path, code: &str) -> Vec<(usize, usize)> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // `#[path = "x_tests.rs"]` next to x.rs moves a long test into a separate file.
    if stem.ends_with("_tests") {
        return vec![(0, code.len())];
    }
    let folder = path.parent().unwrap_or(path);
    for parent in [folder.join("mod.rs"), folder.with_extension("rs")] {
        let Ok(text) = fs::read_to_string(&parent) else { continue };
        let squeezed: String = without_comments_and_literals(&text).split_whitespace().collect();
        if parent != path && squeezed.contains(&format!("#[cfg(test)]mod{stem};")) {
            return vec![(0, code.len())];
        }
    }
    let mut regions = Vec::new();
    for (at, mark) in code.match_indices("#[cfg(test)]") {
        let from = at + mark.len();
        let (mut depth, mut end) = (0, code.len());
        for (offset, c) in code[from..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 1 => {
                    end = from + offset + 1;
                    break;
                }
                '}' => depth -= 1,
                ';' if depth == 0 => {
                    end = from + offset;
                    break;
                }
                _ => {}
            }
        }
        regions.push((at, end));
    }
    regions
}

/// Returns the code with every comment and literal blanked. Line numbers are preserved.
pub fn without_comments_and_literals(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut i = 0;
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    while i < chars.len() {
        let end = match at(i) {
            '/' if at(i + 1) == '/' => (i..chars.len()).find(|&j| at(j) == '\n').unwrap_or(chars.len()),
            '/' if at(i + 1) == '*' => end_of_block_comment(&chars, i),
            'r' if raw_hashes(&chars, i).is_some() && !(i > 0 && (at(i - 1).is_alphanumeric() && at(i - 1) != 'b')) => {
                let hashes = raw_hashes(&chars, i).unwrap_or(0);
                let closes = |j: usize| at(j) == '"' && (1..=hashes).all(|h| at(j + h) == '#');
                (i + hashes + 2..chars.len()).find(|&j| closes(j)).map_or(chars.len(), |j| j + hashes + 1)
            }
            '"' => {
                let mut j = i + 1;
                while j < chars.len() && at(j) != '"' {
                    j += if at(j) == '\\' { 2 } else { 1 };
                }
                j + 1
            }
            // A character, not a lifetime.
            '\'' if at(i + 1) == '\\' => (i + 3..chars.len()).find(|&j| at(j) == '\'').map_or(chars.len(), |j| j + 1),
            '\'' if at(i + 2) == '\'' => i + 3,
            c => {
                out.push(c);
                i += 1;
                continue;
            }
        };
        out.extend(chars[i..end.min(chars.len())].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
        i = end;
    }
    out
}

/// Returns the number of hashes of a raw string with its `r` at `i`.
fn raw_hashes(chars: &[char], i: usize) -> Option<usize> {
    let hashes = chars[i + 1..].iter().take_while(|&&c| c == '#').count();
    (chars.get(i + 1 + hashes) == Some(&'"')).then_some(hashes)
}

fn end_of_block_comment(chars: &[char], start: usize) -> usize {
    let (mut depth, mut i) = (0, start);
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

/// Returns all files below a folder, or none if it is missing.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found = BTreeSet::new();
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path);
        }
    }
    found.into_iter().collect()
}
