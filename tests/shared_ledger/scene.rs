//! Two instances, each with a partition of its own, and what they release.

pub use crate::support::instances::{Instance, K};
use crate::support::instances::{Topics, people, wait};
use crate::support::kafka::{Broker, unique};
use std::ops::Deref;

/// Topics of one group.
pub struct Scene {
    pub topics: Topics,
    pub ledger: String,
    /// Milliseconds after which the group gives up an instance that has gone.
    pub session: &'static str,
}

pub const HEARD: &str = "throng_shared_ledger_records_total{direction=\"in\"}";
pub const TOLD: &str = "throng_shared_ledger_records_total{direction=\"out\"}";

pub fn foreign(reason: &str) -> String {
    format!("throng_ledger_foreign_total{{reason=\"{reason}\"}}")
}

impl Deref for Scene {
    type Target = Topics;

    fn deref(&self) -> &Topics {
        &self.topics
    }
}

impl Scene {
    pub fn new(broker: &'static Broker) -> Self {
        Self::of_partitions(broker, 2)
    }

    /// The source has so many partitions.
    pub fn of_partitions(broker: &'static Broker, partitions: i32) -> Self {
        let scene = Self { topics: Topics::new(broker, partitions), ledger: unique("ledger"), session: "6000" };
        broker.create_topic_with(&scene.ledger, 2, &[("retention.ms", "-1")]);
        scene
    }

    /// What an instance is configured with beside its file.
    fn settings_of<'a>(&'a self, instance: &Instance, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let own = [("SINK__LEDGER_TOPIC", &*self.ledger), ("PRIVACY__MAX_HOLD_BATCHES", "0"), ("BATCH__MAX_AGE", "1h")];
        self.settings(instance.name, self.session, &own, more)
    }

    /// Starts an instance with more settings, and faults.
    pub fn start(&self, instance: &mut Instance, more: &[(&str, &str)], faults: &str) {
        instance.spawn(&self.settings_of(instance, more), faults);
    }

    /// Erases people from an instance that does not run.
    pub fn forget(&self, instance: &Instance, people: &[&str]) {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_throng"));
        command.args(["forget", "-c", "throng.toml"]).args(people);
        instance.place.surround(&mut command, &self.settings_of(instance, &[]));
        let done = command.output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Two running instances with a partition each: first the one that reads partition 0. Faults by instance.
    pub fn two(&self, more: &[(&str, &str)], faults: [&str; 2]) -> [Instance; 2] {
        let mut both = [self.instance("one"), self.instance("two")];
        for (instance, faults) in both.iter_mut().zip(faults) {
            self.start(instance, more, faults);
        }
        self.in_order(both)
    }

    /// Waits until each of both has a partition, and puts the one first that reads partition 0.
    pub fn in_order(&self, mut both: [Instance; 2]) -> [Instance; 2] {
        for instance in &both {
            instance.wait_for("throng_partitions_assigned", |partitions| partitions == 1.0);
        }
        // A crowd that supports nobody here.
        self.visits(0, &crowd("Sion", 0));
        let [one, two] = &both;
        wait("somebody reads partition 0", &[one, two], || one.consumed() + two.consumed() > 0);
        if both[0].consumed() == 0 {
            both.swap(0, 1);
        }
        both[0].wait_consumed(K as u64);
        both
    }
}

/// k people in a city; `from` makes them other people.
pub fn crowd(city: &'static str, from: usize) -> Vec<(String, &'static str)> {
    people(city, from, K)
}

/// One more in `city`, among a crowd elsewhere: a batch of fewer than k people releases nothing.
pub fn one_more(city: &'static str, elsewhere: &'static str) -> Vec<(String, &'static str)> {
    let mut visits = crowd(elsewhere, 0);
    visits.push((format!("late-{city}"), city));
    visits
}
