//! Input records of the benchmark, and simple passes over them.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde_json::Value;
use throng::generate::{RecordStream, WearableSettings, WearableStream};

const BUFFER: usize = 1 << 20;

pub struct Input {
    pub path: PathBuf,
    pub records: u64,
    pub bytes: u64,
    pub subjects: u32,
}

impl Input {
    pub fn generate(path: PathBuf, records: u64) -> Self {
        let settings = WearableSettings::default();
        let subjects = settings.subjects;
        let mut stream = WearableStream::new(settings).expect("the default settings");
        let mut file = BufWriter::with_capacity(BUFFER, File::create(&path).expect("a file"));
        let (mut line, mut bytes) = (Vec::new(), 0);
        for _ in 0..records {
            line.clear();
            stream.append(&mut line);
            line.push(b'\n');
            bytes += line.len() as u64;
            file.write_all(&line).expect("room on the disk");
        }
        file.flush().expect("room on the disk");
        Self { path, records, bytes, subjects }
    }

    pub fn lines(&self) -> Lines {
        Lines::open(&self.path)
    }

    pub fn copy(&self, to: &Path) {
        let mut out = BufWriter::with_capacity(BUFFER, File::create(to).expect("a file"));
        let mut lines = self.lines();
        while let Some(line) = lines.next_line() {
            out.write_all(line).and_then(|()| out.write_all(b"\n")).expect("room on the disk");
        }
        out.flush().expect("room on the disk");
        out.get_ref().sync_all().expect("room on the disk");
    }

    pub fn parse(&self) {
        let mut lines = self.lines();
        while let Some(line) = lines.next_line() {
            black_box(serde_json::from_slice::<IgnoredAny>(line).expect("a generated record"));
        }
    }

    pub fn parse_into_values(&self) {
        let mut lines = self.lines();
        while let Some(line) = lines.next_line() {
            black_box(serde_json::from_slice::<Value>(line).expect("a generated record"));
        }
    }
}

pub struct Lines {
    reader: BufReader<File>,
    line: Vec<u8>,
}

impl Lines {
    pub fn open(path: &Path) -> Self {
        let reader = BufReader::with_capacity(BUFFER, File::open(path).expect("a file that was just written"));
        Self { reader, line: Vec::new() }
    }

    pub fn next_line(&mut self) -> Option<&[u8]> {
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line).expect("a readable file");
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        (!self.line.is_empty()).then_some(&self.line)
    }
}
