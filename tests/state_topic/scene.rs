//! One instance whose state is in a topic.

use crate::support::daemon::{Daemon, Stage, records};
use crate::support::kafka::{Broker, unique};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Records a batch.
pub const BATCH: usize = 40;

pub struct Scene<'a> {
    pub stage: Stage<'a>,
    pub topic: String,
    pub instance: String,
}

impl<'a> Scene<'a> {
    /// `total` records of the stream `seed`, in one partition.
    pub fn new(broker: &'a Broker, seed: u64, total: usize) -> Self {
        let stage = Stage::new(broker, 1).with_static_membership();
        stage.configure("only", 2, BATCH, "1h");
        broker.produce_records(&stage.raw, &records(seed, 0, total, 1));
        let topic = unique("state");
        broker.create_topic(&topic, 3, true);
        Self { stage, topic, instance: unique("instance") }
    }

    /// Starts the instance with the configuration `name`.
    pub fn start_as(&self, name: &str, crash: Option<&str>, more: &[(&str, &Path)]) -> Daemon {
        let mut environment = vec![
            ("THRONG__STATE__KIND", Path::new("topic")),
            ("THRONG__STATE__TOPIC", Path::new(&self.topic)),
            ("THRONG__STATE__INSTANCE", Path::new(&self.instance)),
        ];
        environment.extend(more);
        Daemon::start_in(&self.stage.dir.path().join(format!("{name}.toml")), &[], crash, &environment)
    }

    pub fn start(&self, crash: Option<&str>) -> Daemon {
        self.start_as("only", crash, &[])
    }

    pub fn directory(&self) -> PathBuf {
        self.stage.state("only")
    }

    /// The directory is gone, as with another pod.
    pub fn lose(&self) {
        fs::remove_dir_all(self.directory()).expect("a directory of ours");
    }

    /// Starts, waits until `total` records are consumed, and gives the running instance.
    pub fn consume(&self, total: usize) -> Daemon {
        let mut daemon = self.start(None);
        self.stage.wait_consumed(total, &mut [&mut daemon]);
        daemon
    }

    /// Waits until it has said something.
    pub fn says(&self, daemon: &mut Daemon, what: &str) {
        let deadline = Instant::now() + Duration::from_secs(90);
        while !daemon.said().contains(what) {
            assert!(daemon.ended().is_none() && Instant::now() < deadline, "{}", daemon.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts the instance, and expects that it ends by itself.
    pub fn refused(&self, daemon: &mut Daemon, message: &str) {
        let status = daemon.wait();
        assert_eq!(status.code(), Some(2), "{}", daemon.said());
        assert!(daemon.said().contains(message), "{}", daemon.said());
    }
}

/// Copies a directory of files and directories.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

pub const MADE: &str = "the state directory was made from its topic";
