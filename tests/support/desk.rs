//! Runs the binary in a directory as a user would.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub struct Desk {
    home: TempDir,
    /// `release.min_represented`; `None` is the default.
    share: Option<&'static str>,
}

pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Desk {
    pub fn new() -> Self {
        Self::with(Some("0"))
    }

    /// Checks releases by the default of `release.min_represented`.
    pub fn judging() -> Self {
        Self::with(None)
    }

    fn with(share: Option<&'static str>) -> Self {
        let desk = Self { home: tempfile::tempdir().expect("a directory"), share };
        fs::create_dir(desk.path("temporary")).expect("a directory");
        desk
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn throng(&self, arguments: &[&str]) -> Said {
        self.said(arguments, Stdio::null())
    }

    pub fn fed(&self, name: &str, arguments: &[&str]) -> Said {
        self.said(arguments, fs::File::open(self.path(name)).expect("a file").into())
    }

    fn said(&self, arguments: &[&str], input: Stdio) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THRONG_")) {
            command.env_remove(name);
        }
        command.envs(self.share.map(|share| ("THRONG__RELEASE__MIN_REPRESENTED", share)));
        command.env("TMPDIR", self.path("temporary")).env("THRONG__TELEMETRY__LISTEN", "127.0.0.1:0");
        let output = command.args(arguments).current_dir(self.home.path()).stdin(input).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    pub fn done(&self, arguments: &[&str]) -> Said {
        self.ends_with(0, arguments)
    }

    #[track_caller]
    pub fn ends_with(&self, code: i32, arguments: &[&str]) -> Said {
        let said = self.throng(arguments);
        assert_eq!(said.code, Some(code), "{arguments:?}: {}{}", said.out, said.err);
        self.is_tidy();
        said
    }

    #[track_caller]
    pub fn refused(&self, arguments: &[&str]) -> String {
        self.ends_with(2, arguments).err
    }

    #[track_caller]
    pub fn is_tidy(&self) {
        let left = fs::read_dir(self.path("temporary")).expect("a directory").count();
        assert_eq!(left, 0, "temporary files stay behind");
    }

    pub fn released(&self, start: &str) -> String {
        let entries = fs::read_dir(self.home.path()).expect("a directory").map(|entry| entry.expect("an entry").path());
        let is_output = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.starts_with(start) && path.extension().is_none_or(|extension| extension != "csv")
        };
        entries.filter(is_output).map(|path| fs::read_to_string(path).expect("text")).collect()
    }
}
