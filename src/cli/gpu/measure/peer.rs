//! The same questions to somebody else's group-by: a program that reads tables and questions from a folder and leaves its
//! answers there (`benches/gpu/peer.py`). No time of it is told before its answers were found equal.

use crate::cli::gpu::tables::code_bytes;
use crate::counting::{CountedTable, GroupCount, PairCounts};
use crate::risk::qid::Borders;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Sets of one question at most; of more, as many at even distances are asked.
const MOST_SETS: usize = 3000;

/// What a peer took for one work.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct OnPeer {
    /// Which library counted, with its version.
    pub library: String,
    /// On which device.
    pub device: String,
    /// The fastest of its ways.
    pub form: Option<String>,
    /// Sets that it was asked about.
    pub sets: u64,
    /// Sets of the whole work.
    pub of: u64,
    /// Each round, in seconds, for the sets that were asked.
    pub rounds: Vec<f64>,
    /// The fastest round, times `of / sets`.
    pub seconds: Option<f64>,
    /// The median round, likewise.
    pub median_seconds: Option<f64>,
    /// Are its answers those of the CPU? `None` without an answer.
    pub agrees: Option<bool>,
    /// Why there is no answer.
    pub failure: Option<String>,
}

/// Why a peer is none.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("no command for the peer: give a program and its arguments, such as \"python3 benches/gpu/peer.py\"")]
    NoCommand,
    #[error("the peer `{command}` cannot be started: {source}; give a program and its arguments")]
    Start { command: String, source: io::Error },
    #[error("the peer `{command}` ended with {status}: its own message is above")]
    Ended { command: String, status: std::process::ExitStatus },
    #[error("{what} of the peer in {}: {source}", path.display())]
    File { what: &'static str, path: PathBuf, source: io::Error },
    #[error("the peer's answers are none: {0}")]
    Answers(#[from] serde_json::Error),
}

/// What is asked, and the answer of the CPU.
pub(super) enum PeerQuestion<'a> {
    Counts(&'a [Vec<usize>], u32, &'a [GroupCount]),
    Verdicts(&'a [Vec<usize>], u32, &'a [Option<bool>]),
    Pairs(&'a [(usize, usize)], &'a [PairCounts]),
    Borders(u32, &'a Borders),
}

/// A peer that is asked about one work after the other, and answers at the end.
pub(super) struct Peer {
    command: Vec<String>,
    folder: PathBuf,
    /// By what stands in them.
    tables: Vec<([u8; 32], Value)>,
    questions: Vec<Value>,
    expected: Vec<Expected>,
}

struct Expected {
    work: String,
    words: Vec<i64>,
    sets: u64,
    of: u64,
}

#[derive(Deserialize)]
struct Answers {
    library: String,
    device: String,
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    work: String,
    form: Option<String>,
    #[serde(default)]
    seconds: Vec<f64>,
    file: Option<String>,
    failure: Option<String>,
}

impl Peer {
    /// Asks the program whether it can count here, before anything is measured.
    ///
    /// # Errors
    /// Where it cannot.
    pub(super) fn ready(command: &str) -> Result<Self, PeerError> {
        let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let folder = std::env::temp_dir().join(format!("throng-peer-{}", uuid::Uuid::new_v4()));
        let peer = Self { command, folder, tables: Vec::new(), questions: Vec::new(), expected: Vec::new() };
        peer.run("--ready".as_ref())?;
        fs::create_dir_all(&peer.folder).map_err(peer.at("the folder", &peer.folder))?;
        Ok(peer)
    }

    /// Writes a question down. `uploads` says that the device's time of this work includes the table's upload.
    pub(super) fn ask(
        &mut self,
        work: &str,
        table: &CountedTable,
        asked: &PeerQuestion<'_>,
        uploads: bool,
    ) -> Result<(), PeerError> {
        let at = self.table(table)?;
        let (kind, k, all) = match asked {
            PeerQuestion::Counts(sets, k, _) => ("count", *k, sets.to_vec()),
            PeerQuestion::Verdicts(sets, k, _) => ("judge", *k, sets.to_vec()),
            PeerQuestion::Pairs(pairs, _) => ("pairs", 0, pairs.iter().map(|(a, b)| vec![*a, *b]).collect()),
            PeerQuestion::Borders(k, _) => ("borders", *k, Vec::new()),
        };
        let of = all.len().max(1);
        let asked_for = if matches!(asked, PeerQuestion::Pairs(..)) { of } else { of.min(MOST_SETS) };
        let chosen: Vec<usize> = (0..asked_for.min(all.len())).map(|at| at * of / asked_for).collect();
        let words = match asked {
            PeerQuestion::Counts(_, _, counts) => chosen.iter().flat_map(|at| count_words(&counts[*at])).collect(),
            PeerQuestion::Verdicts(_, _, verdicts) => {
                chosen.iter().map(|at| verdicts[*at].map_or(-1, i64::from)).collect()
            }
            PeerQuestion::Pairs(_, counts) => counts.iter().flat_map(pair_words).collect(),
            PeerQuestion::Borders(_, borders) => border_words(borders),
        };
        let sets: Vec<&Vec<usize>> = chosen.iter().map(|at| &all[*at]).collect();
        self.questions.push(json!({
            "work": work, "kind": kind, "table": at, "k": k, "sets": sets, "upload": uploads,
        }));
        self.expected.push(Expected { work: work.to_owned(), words, sets: asked_for as u64, of: of as u64 });
        Ok(())
    }

    /// The works that were asked about.
    pub(super) fn works(&self) -> impl Iterator<Item = &str> {
        self.expected.iter().map(|expected| expected.work.as_str())
    }

    /// Has everything answered, and compares.
    ///
    /// # Errors
    /// Where the program fails as a whole.
    pub(super) fn answers(&self) -> Result<Vec<(String, OnPeer)>, PeerError> {
        let tables: Vec<&Value> = self.tables.iter().map(|(_, description)| description).collect();
        let path = self.folder.join("questions.json");
        let questions = json!({ "tables": tables, "questions": self.questions }).to_string();
        fs::write(&path, questions).map_err(self.at("the questions", &path))?;
        self.run(&self.folder)?;
        let path = self.folder.join("answers.json");
        let answers: Answers = serde_json::from_slice(&fs::read(&path).map_err(self.at("the answers", &path))?)?;
        let of = |expected: &Expected| {
            let blank = OnPeer {
                library: answers.library.clone(),
                device: answers.device.clone(),
                sets: expected.sets,
                of: expected.of,
                ..OnPeer::default()
            };
            let found = answers.answers.iter().find(|answer| answer.work == expected.work);
            let told = match found {
                Some(answer) => self.compared(expected, answer, blank)?,
                None => OnPeer { failure: Some("it gave no answer".to_owned()), ..blank },
            };
            Ok((expected.work.clone(), told))
        };
        self.expected.iter().map(of).collect()
    }

    fn compared(&self, expected: &Expected, answer: &Answer, blank: OnPeer) -> Result<OnPeer, PeerError> {
        let Some(file) = &answer.file else {
            let failure = answer.failure.clone().unwrap_or_else(|| "it gave no answer".to_owned());
            return Ok(OnPeer { failure: Some(failure), ..blank });
        };
        let path = self.folder.join(file);
        let bytes = fs::read(&path).map_err(self.at("an answer", &path))?;
        let (words, rest) = bytes.as_chunks::<8>();
        let same =
            rest.is_empty() && words.iter().map(|word| i64::from_le_bytes(*word)).eq(expected.words.iter().copied());
        let mut rounds = answer.seconds.clone();
        rounds.sort_by(f64::total_cmp);
        let share = expected.of as f64 / expected.sets as f64;
        // Of an answer that is wrong no time is told.
        let time = |at: usize| rounds.get(at).filter(|_| same).map(|seconds| seconds * share);
        Ok(OnPeer {
            form: answer.form.clone(),
            seconds: time(0),
            median_seconds: time(rounds.len() / 2),
            rounds: answer.seconds.clone(),
            agrees: Some(same),
            ..blank
        })
    }

    /// The place of a table among those written; a new one is written, a code in the bytes that the device gives it.
    fn table(&mut self, table: &CountedTable) -> Result<usize, PeerError> {
        let digest = digest(table);
        if let Some(at) = self.tables.iter().position(|(written, _)| *written == digest) {
            return Ok(at);
        }
        let name = format!("table-{}.bin", self.tables.len());
        let path = self.folder.join(&name);
        let (columns, subjects) = written(table, &path).map_err(self.at("a table", &path))?;
        let description = json!({ "file": name, "rows": table.rows(), "columns": columns, "subjects": subjects });
        self.tables.push((digest, description));
        Ok(self.tables.len() - 1)
    }

    fn run(&self, argument: &Path) -> Result<(), PeerError> {
        let (program, arguments) = self.command.split_first().ok_or(PeerError::NoCommand)?;
        let command = self.command.join(" ");
        // Standard output is the report's.
        let status =
            Command::new(program).args(arguments).arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).status();
        match status {
            Err(source) => Err(PeerError::Start { command, source }),
            Ok(status) if !status.success() => Err(PeerError::Ended { command, status }),
            Ok(_) => Ok(()),
        }
    }

    fn at(&self, what: &'static str, path: &Path) -> impl Fn(io::Error) -> PeerError + use<> {
        let path = path.to_owned();
        move |source| PeerError::File { what, path: path.clone(), source }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, folder = %self.folder.display(), "the peer's tables could not be removed");
        }
    }
}

fn digest(table: &CountedTable) -> [u8; 32] {
    let mut digest = Sha256::new();
    let columns = (0..table.width()).map(|at| table.column(at));
    for codes in columns.chain(table.subject_numbers()) {
        digest.update((codes.len() as u64).to_le_bytes());
        codes.iter().for_each(|code| digest.update(code.to_le_bytes()));
    }
    digest.finalize().into()
}

/// Column after column, then the subjects: where each begins, and its bytes a code.
fn written(table: &CountedTable, path: &Path) -> io::Result<(Vec<Value>, Value)> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut offset = 0;
    let mut write = |codes: &[u32], values: usize| -> io::Result<Value> {
        let bytes = code_bytes(values);
        for code in codes {
            file.write_all(&code.to_le_bytes()[..bytes as usize])?;
        }
        let described = json!({ "offset": offset, "bytes": bytes, "values": values });
        offset += bytes * codes.len() as u64;
        Ok(described)
    };
    let columns =
        (0..table.width()).map(|at| write(table.column(at), table.cardinality(at))).collect::<io::Result<_>>()?;
    let subjects = match (table.subject_numbers(), table.subjects()) {
        (Some(numbers), Some(subjects)) => write(numbers, subjects)?,
        _ => Value::Null,
    };
    file.flush()?;
    Ok((columns, subjects))
}

fn count_words(count: &GroupCount) -> [i64; 5] {
    let GroupCount { smallest, classes, classes_below, records_below, subjects_below } = *count;
    [smallest, classes, classes_below, records_below, subjects_below].map(|number| number as i64)
}

/// Every cell of a pair.
fn pair_words(counts: &PairCounts) -> Vec<i64> {
    let (first, second) = (counts.cardinalities.0 as usize, counts.cardinalities.1 as usize);
    let mut cells = vec![0; first * second];
    counts.occurring().for_each(|(a, b, n)| cells[a as usize * second + b as usize] = i64::from(n));
    cells
}

/// The minimal quasi-identifiers, ascending, a 0, the maximal sets that are none; a column a bit.
fn border_words(borders: &Borders) -> Vec<i64> {
    let masks = |sets: &[crate::counting::AttributeSet]| {
        let mut masks: Vec<i64> =
            sets.iter().map(|set| set.iter().fold(0, |mask, column| mask | 1 << column)).collect();
        masks.sort_unstable();
        masks
    };
    [masks(&borders.minimal_qids), vec![0], masks(&borders.maximal_non_qids)].concat()
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
