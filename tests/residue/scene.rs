//! Instances that share the partitions of a source, and the topic through which they hand records on.

use crate::support::instances::Topics;
pub use crate::support::instances::{Account, Instance, K, people, together, wait};
use crate::support::kafka::{Broker, unique};
use std::ops::Deref;

/// Topics of one group.
pub struct Scene {
    pub topics: Topics,
    pub residue: String,
    /// Milliseconds after which the group gives up an instance that has gone.
    pub session: &'static str,
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
        let scene = Self { topics: Topics::new(broker, partitions), residue: unique("residue"), session: "6000" };
        broker.create_topic(&scene.residue, 1, false);
        scene
    }

    /// Starts an instance with more settings, and faults.
    pub fn start(&self, instance: &mut Instance, more: &[(&str, &str)], faults: &str) {
        let own = [("SINK__RESIDUE_TOPIC", &*self.residue), ("PRIVACY__BATCH_CROWD", "3"), ("BATCH__MAX_AGE", "10s")];
        instance.spawn(&self.settings(instance.name, self.session, &own, more), faults);
    }

    /// Two running instances: each has a partition of the source, and one of them that of the residue as well.
    pub fn two(&self, more: &[(&str, &str)]) -> [Instance; 2] {
        let mut both = [self.instance("one"), self.instance("two")];
        both.iter_mut().for_each(|instance| self.start(instance, more, ""));
        let partitions = if more.contains(&("SINK__RESIDUE_TOPIC", "")) { 2.0 } else { 3.0 };
        let assigned = |instance: &Instance| instance.metric("throng_partitions_assigned");
        let [one, two] = &both;
        wait("each has a partition", &[one, two], || {
            assigned(one) >= 1.0 && assigned(two) >= 1.0 && assigned(one) + assigned(two) == partitions
        });
        both
    }
}
