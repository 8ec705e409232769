//! People whom a topic names are collected, and erased in one go between two batches (docs/erasure.md).

use crate::daemon::state::store::NamesRead;
use crate::io::erasures::{ErasuresError, Heard, Names};
use crossbeam_channel::TryRecvError;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// People who wait for an erasure, at most. At the limit nothing more is heard before it: what is read waits, and then the topic.
const MOST_WAITING: usize = 100_000;
/// Messages heard at a time, between two batches.
const HEARD_AT_A_TIME: usize = 10_000;

/// Whoever is named, from the topic to the erasure.
pub struct Naming {
    names: Names,
    interval: Duration,
    /// How far what has been heard goes; durable only with the erasure of those who wait.
    read: NamesRead,
    waiting: BTreeSet<u64>,
    /// Messages that are heard and not settled.
    unsettled: u64,
    /// Since when there are some.
    since: Option<Instant>,
    /// Partitions have got a first place that is not on the disk.
    begun: bool,
    /// Everything has been heard that was there at the start, and has not been acted on.
    caught_up: bool,
}

/// Who is to be erased now: nobody, where only messages were read that name nobody.
pub(super) struct Collected {
    pub people: BTreeSet<u64>,
    pub read: NamesRead,
    unsettled: u64,
}

impl Naming {
    /// People whom `names` says, collected for `interval`; `read` is how far the topic has been acted on.
    #[must_use]
    pub fn new(names: Names, read: NamesRead, interval: Duration) -> Self {
        Self {
            names,
            interval,
            read,
            waiting: BTreeSet::new(),
            unsettled: 0,
            since: None,
            begun: false,
            caught_up: false,
        }
    }

    /// Hears whoever has been named since, and gives all of them once it is time.
    ///
    /// # Errors
    /// When the topic cannot be read on.
    pub(super) fn collect(&mut self) -> Result<Option<Collected>, ErasuresError> {
        self.hear()?;
        let waited = self.since.is_some_and(|since| since.elapsed() >= self.interval);
        // What a partition holds from its first place on is known to be missed, should it be gone before it is read.
        let begins = self.unsettled == 0 && self.begun;
        if !begins && (self.unsettled == 0 || !(waited || self.caught_up)) {
            return Ok(None);
        }
        (self.caught_up, self.begun) = (false, false);
        self.since = None;
        let (people, unsettled) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.unsettled));
        Ok(Some(Collected { people, read: self.read.clone(), unsettled }))
    }

    fn hear(&mut self) -> Result<(), ErasuresError> {
        for _ in 0..HEARD_AT_A_TIME {
            if self.waiting.len() >= MOST_WAITING {
                break;
            }
            match self.names.heard.try_recv() {
                Ok(Heard::Message { person, partition, next }) => {
                    self.read.next.insert(partition, next);
                    self.waiting.extend(person);
                    self.unsettled += 1;
                    self.since.get_or_insert_with(Instant::now);
                }
                Ok(Heard::Begins { partition, next }) => {
                    self.begun |= *self.read.next.entry(partition).or_insert(next) == next;
                }
                // Whoever was named while nobody listened has waited for long enough.
                Ok(Heard::Whole) => self.caught_up = self.unsettled > 0,
                Ok(Heard::Failed(error)) => return Err(error),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(ErasuresError::Gone),
            }
        }
        Ok(())
    }

    /// What was collected is done, and durable.
    pub(super) fn settle(&self, collected: &Collected) {
        self.names.settle(collected.unsettled);
    }

    /// What was collected could not be done: those who were named wait on, and are tried again after the interval.
    pub(super) fn wait_on(&mut self, collected: Collected) {
        self.waiting.extend(collected.people);
        self.begun = true;
        self.unsettled += collected.unsettled;
        self.since = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::{Sender, unbounded};

    fn naming(interval: Duration) -> (Naming, Sender<Heard>) {
        let (says, heard) = unbounded();
        (Naming::new(Names::new(heard), NamesRead::default(), interval), says)
    }

    fn say(says: &Sender<Heard>, person: Option<u64>, next: i64) {
        says.send(Heard::Message { person, partition: 0, next }).expect("a listener");
    }

    fn collected(naming: &mut Naming) -> Option<(Vec<u64>, i64)> {
        let found = naming.collect().expect("a reader")?;
        naming.settle(&found);
        Some((found.people.into_iter().collect(), found.read.next[&0]))
    }

    #[test]
    fn names_wait_for_one_another() {
        let (mut naming, says) = naming(Duration::from_hours(1));
        assert_eq!(collected(&mut naming), None);
        [(Some(7), 1), (None, 2), (Some(7), 3)].into_iter().for_each(|(person, next)| say(&says, person, next));
        assert_eq!(collected(&mut naming), None, "before all has been read that there was");
        says.send(Heard::Whole).expect("a listener");
        say(&says, Some(9), 4);
        assert_eq!(collected(&mut naming), Some((vec![7, 9], 4)), "at the start they do not wait any longer");
        say(&says, Some(8), 5);
        assert_eq!(collected(&mut naming), None, "for an hour now");
        naming.interval = Duration::ZERO;
        assert_eq!(collected(&mut naming), Some((vec![8], 5)));
        say(&says, None, 6);
        assert_eq!(collected(&mut naming), Some((Vec::new(), 6)), "who names nobody is passed");
        assert_eq!(collected(&mut naming), None);
    }

    #[test]
    fn a_start_without_names_has_nothing_to_do_at_once() {
        let (mut naming, says) = naming(Duration::from_hours(1));
        says.send(Heard::Whole).expect("a listener");
        assert_eq!(collected(&mut naming), None);
        say(&says, Some(7), 1);
        assert_eq!(collected(&mut naming), None, "named later, it waits for others");
    }

    /// Without it messages that go before anybody has read them would not be missed.
    #[test]
    fn where_a_partition_begins_is_kept_before_anybody_is_named() {
        let (mut naming, says) = naming(Duration::from_hours(1));
        says.send(Heard::Begins { partition: 0, next: 40 }).expect("a listener");
        says.send(Heard::Whole).expect("a listener");
        assert_eq!(collected(&mut naming), Some((Vec::new(), 40)));
        assert_eq!(collected(&mut naming), None);
        say(&says, Some(7), 41);
        says.send(Heard::Begins { partition: 1, next: 3 }).expect("a listener");
        assert_eq!(collected(&mut naming), None, "a place of somebody who waits is not told before the erasure");
        naming.interval = Duration::ZERO;
        let found = naming.collect().expect("a reader").expect("somebody");
        assert_eq!(found.read.next, [(0, 41), (1, 3)].into());
    }

    #[test]
    fn what_could_not_be_done_is_tried_again_and_the_waiting_are_bounded() {
        let (mut naming, says) = naming(Duration::ZERO);
        say(&says, Some(7), 1);
        let failed = naming.collect().expect("a reader").expect("somebody");
        naming.wait_on(failed);
        say(&says, Some(8), 2);
        assert_eq!(collected(&mut naming), Some((vec![7, 8], 2)));
        naming.interval = Duration::from_hours(1);
        let many = MOST_WAITING as u64 + 10;
        (0..many).for_each(|person| say(&says, Some(person), 3 + person.cast_signed()));
        (0..MOST_WAITING / HEARD_AT_A_TIME + 2).for_each(|_| assert_eq!(collected(&mut naming), None));
        naming.interval = Duration::ZERO;
        assert_eq!(collected(&mut naming).map(|(people, _)| people.len()), Some(MOST_WAITING));
        assert_eq!(
            collected(&mut naming).map(|(people, _)| people.len()),
            Some(10),
            "the others waited in the channel"
        );
    }

    #[test]
    fn a_reader_that_ends_is_heard() {
        let (mut naming, says) = naming(Duration::ZERO);
        drop(says);
        assert!(matches!(naming.collect(), Err(ErasuresError::Gone)));
    }
}
