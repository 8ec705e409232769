//! Instances of one group with one source and one output. Each has a state directory.

use crate::scale_out::feeder::Feeder;
use crate::scale_out::people::{GROUP, PARTITIONS, schema};
use crate::scale_out::reader::Reader;
use crate::support::binary::{Outcome, Place};
use crate::support::instances::{Account, Instance, Topics, together};
use crate::support::kafka::TestCluster;
use std::time::{Duration, Instant};

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

pub struct Member {
    pub instance: Instance,
    is_static: bool,
    pub shift_ms: i64,
}

impl Member {
    fn new(name: &'static str, is_static: bool) -> Self {
        let place = Place::new(&schema(), GROUP);
        Self { instance: Instance { place, process: None, name }, is_static, shift_ms: 0 }
    }

    pub fn is_running(&self) -> bool {
        self.instance.process.is_some()
    }

    pub fn name(&self) -> &'static str {
        self.instance.name
    }
}

/// Counts of events, so that a run without events does not pass as a success.
#[derive(Clone, Copy, Debug, Default)]
pub struct Happened {
    pub kills: usize,
    pub deaths: usize,
    /// Exits after which a supervisor restarts the instance.
    pub gave_up: usize,
    pub ordered_ends: usize,
    pub bounces: usize,
    pub shifts: usize,
    pub joins: usize,
    pub leaves: usize,
}

pub struct Fleet {
    pub topics: Topics,
    pub members: Vec<Member>,
    pub reader: Reader,
    pub happened: Happened,
    log: Vec<String>,
}

impl Fleet {
    pub fn new(broker: &'static TestCluster) -> Self {
        let topics = Topics::new(broker, PARTITIONS);
        let members = [("one", true), ("two", false), ("three", true), ("four", false), ("guest", false)];
        let reader = Reader::new(broker, &topics.out, &topics.changelog);
        let members = members.map(|(name, is_static)| Member::new(name, is_static)).into();
        Self { topics, members, reader, happened: Happened::default(), log: Vec::new() }
    }

    /// The member dies at the fail point `fault`, unless that is empty.
    pub fn start(&mut self, at: usize, fault: &str) {
        let member = &mut self.members[at];
        let own = [
            ("PRIVACY__MAX_LINES_PER_SUBJECT", "2"),
            ("PRIVACY__MAX_HOLD_BATCHES", "1"),
            ("PLAN__INTERVAL", "20s"),
            ("BATCH__MAX_RECORDS", "60"),
            ("BATCH__MAX_WAIT", "1s"),
            ("BATCH__MAX_AGE", "3s"),
            ("TELEMETRY__LOG_LEVEL", "debug"),
        ];
        let dynamic = [("SOURCE__LIBRDKAFKA__GROUP_INSTANCE_ID", "")];
        let more = if member.is_static { &[][..] } else { &dynamic[..] };
        let settings = self.topics.settings(member.instance.name, "3000", &own, more);
        let mut faults = vec![fault.to_owned()];
        faults.extend((member.shift_ms != 0).then(|| format!("wall-clock=return({})", member.shift_ms)));
        faults.retain(|fault| !fault.is_empty());
        member.instance.spawn(&settings, &faults.join(";"));
    }

    /// A member was killed or ended with code 1; a refusal or panic fails the test.
    fn has_ended(&mut self, at: usize, outcome: &Outcome) {
        assert!(matches!(outcome.code, None | Some(1)), "{}: {}", self.members[at].name(), outcome.stderr);
        self.log.push(format!("== {} (ended)\n{}", self.members[at].name(), outcome.stderr));
        self.happened.gave_up += usize::from(outcome.code.is_some());
    }

    pub fn kill(&mut self, at: usize) {
        let outcome = self.members[at].instance.process.take().expect("a running instance").kill();
        self.has_ended(at, &outcome);
        self.happened.kills += 1;
    }

    pub fn end(&mut self, at: usize) {
        let process = self.members[at].instance.process.take().expect("a running instance");
        process.terminate();
        let outcome = process.wait();
        assert_eq!(outcome.code, Some(0), "{}: {}", self.members[at].name(), outcome.stderr);
        self.happened.ordered_ends += 1;
    }

    /// Returns true if the member died at its fail point; otherwise kills it after `time`.
    pub fn dies(&mut self, at: usize, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            let process = self.members[at].instance.process.as_mut().expect("a running instance");
            if process.ends_within(Duration::from_millis(300)) {
                let outcome = self.members[at].instance.process.take().expect("it has run").wait();
                self.has_ended(at, &outcome);
                self.happened.deaths += usize::from(outcome.code.is_none());
                return outcome.code.is_none();
            }
            self.reader.look();
        }
        self.kill(at);
        false
    }

    fn tend(&mut self) {
        for at in 0..self.members.len() {
            let Some(process) = &mut self.members[at].instance.process else { continue };
            if process.ends_within(Duration::ZERO) {
                let outcome = self.members[at].instance.process.take().expect("it has run").wait();
                self.has_ended(at, &outcome);
                let said = outcome.stderr.lines().last().unwrap_or_default();
                println!("  {} gave up: {said}", self.members[at].name());
                self.start(at, "");
            }
        }
    }

    pub fn running(&self) -> Vec<&Instance> {
        self.members.iter().map(|member| &member.instance).filter(|instance| instance.process.is_some()).collect()
    }

    pub fn until(&mut self, what: &str, wanted: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(self) {
            if Instant::now() > deadline {
                let accounts: Vec<Account> = self.running().iter().map(|one| one.account()).collect();
                let said: Vec<String> = (0..self.members.len())
                    .filter_map(|at| self.members[at].instance.process.take().map(|process| process.kill().stderr))
                    .collect();
                panic!("it did not come to pass that {what}: {accounts:?}\n{}", said.join("\n---\n"));
            }
            self.tend();
            std::thread::sleep(Duration::from_millis(200));
            self.reader.look();
        }
    }

    pub fn said(&mut self) -> String {
        let mut said = self.log.clone();
        for member in &mut self.members {
            if let Some(process) = member.instance.process.take() {
                said.push(format!("== {}\n{}", member.instance.name, process.kill().stderr));
            }
        }
        said.join("\n")
    }

    fn committed(&self) -> usize {
        let offsets = self.topics.broker.group_offsets_now(&self.topics.group, &self.topics.raw);
        offsets.values().map(|at| usize::try_from(at.unwrap_or(0)).expect("an offset")).sum()
    }

    pub fn catch_up(&mut self, feeder: &Feeder) {
        let (sent, end) = (feeder.sent(), self.reader.written());
        self.until("the group has read what there is", |fleet| {
            let decided = fleet.reader.decided();
            decided.iter().zip(end).all(|(decided, end)| *decided >= end) && fleet.committed() >= sent
        });
    }

    pub fn settled(&mut self, total: usize) -> Account {
        let total = total as u64;
        self.until("all is settled", |fleet| {
            let Account { consumed, released, suppressed, dead_lettered, dropped } = together(&fleet.running());
            consumed == total && released + suppressed + dead_lettered + dropped == total
        });
        together(&self.running())
    }
}

impl Drop for Fleet {
    /// No process survives a failed test.
    fn drop(&mut self) {
        self.members
            .iter_mut()
            .filter_map(|member| member.instance.process.take())
            .for_each(|process| drop(process.kill()));
    }
}
