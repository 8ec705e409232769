//! Profiles in a compacted topic: read whole at the start, by every instance for itself, then as they change.
//!
//! It is read from its beginning at every start: a tombstone that has been compacted away while nobody read is no message any more,
//! but then neither is the profile that it has removed.

use super::feed::{Feed, News, Over, ProfilesError, Told, reading};
use super::people::{People, Update};
use super::table::{Table, Taken};
use crate::io::kafka::connection::Cluster;
use crate::io::kafka::whole::{Reading, WholeTopic};
use crate::io::message::{Part, Undecoded};
use crate::telemetry::{
    Limit, LimitReached, ProfileRefused, ProfileUpdate, ProfilesLag, ProfilesRead, RejectionReason, Telemetry,
};
use rdkafka::Message;
use rdkafka::message::BorrowedMessage;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use throng_core::values::raw::{Coordinate, RawBatch};

/// How long a message waits whose schema cannot be had now. Those behind it wait with it.
const LATER: Duration = Duration::from_millis(200);
/// How often the log says how far the reading has come, and how often the lag is measured.
const TELLING: Duration = Duration::from_secs(5);

/// A topic of profiles.
pub struct TopicOfProfiles {
    /// Its join.
    pub join: String,
    /// Where it is.
    pub cluster: Cluster,
    /// Its name.
    pub topic: String,
    /// Decodes the keys: who it is.
    pub key: Box<dyn Part>,
    /// Decodes the values: what is said.
    pub value: Box<dyn Part>,
    /// Whose the messages are.
    pub people: People,
    /// How many at most.
    pub max_people: usize,
    /// Is told what is refused, and how far the reading has come.
    pub telemetry: Telemetry,
}

/// What a message says.
enum Said {
    Update(Update),
    Nothing,
    /// It cannot be read now.
    Later,
}

impl TopicOfProfiles {
    /// Reads it until nobody listens.
    pub fn read(self) -> Result<Feed, ProfilesError> {
        let join = self.join.clone();
        reading(&join, move |told| self.on(told))
    }

    fn on(mut self, told: &Told) -> Result<(), ProfilesError> {
        let (topic, group, what) = (self.topic.clone(), "throng.profiles.reader", "cannot read the profiles");
        let reading = Reading { topic, group, what, from: BTreeMap::new() };
        let opened = WholeTopic::open(&self.cluster, reading, &|| told.is_over());
        let failed = |join: &str| {
            let join = join.to_owned();
            move |source| ProfilesError::Kafka { join, source: Box::new(source) }
        };
        let Some(mut topic) = opened.map_err(failed(&self.join))? else { return Ok(()) };
        let mut whole = Some(Table::new(self.max_people));
        let mut told_at = Instant::now();
        let mut raw = RawBatch::new(self.people.width());
        while !told.is_over() {
            let mut taken = Ok(());
            let polled = topic.poll(|message| taken = self.take(message, &mut raw, whole.as_mut(), told));
            polled.map_err(failed(&self.join))?;
            if taken.is_err() {
                return Ok(());
            }
            if topic.is_whole()
                && let Some(table) = whole.take()
            {
                ProfilesRead { join: &self.join, people: table.len() as u64, done: true }.emit(&self.telemetry);
                if told.say(News::Whole(table)).is_err() {
                    return Ok(());
                }
            }
            if told_at.elapsed() >= TELLING {
                told_at = Instant::now();
                if let Some(table) = &whole {
                    ProfilesRead { join: &self.join, people: table.len() as u64, done: false }.emit(&self.telemetry);
                }
                let lag = topic.look().map_err(failed(&self.join))?;
                ProfilesLag { join: &self.join, records: lag }.emit(&self.telemetry);
            }
        }
        Ok(())
    }

    /// Takes what a message says into the table that is still being read, or tells of it. Waits where its schema takes time.
    fn take(
        &mut self,
        message: &BorrowedMessage<'_>,
        raw: &mut RawBatch,
        whole: Option<&mut Table>,
        told: &Told,
    ) -> Result<(), Over> {
        let update = loop {
            match self.said(message, raw) {
                Said::Update(update) => break update,
                Said::Nothing => return Ok(()),
                Said::Later if told.is_over() => return Err(Over),
                Said::Later => std::thread::sleep(LATER),
            }
        };
        ProfileUpdate.emit(&self.telemetry);
        let Some(table) = whole else { return told.say(News::Changed(update)) };
        if table.set(update.person, update.cells) == Taken::Full {
            LimitReached { limit: Limit::Profiles }.emit(&self.telemetry);
        }
        Ok(())
    }

    /// A profile that cannot be read is none: what was known of the person before holds no longer.
    fn said(&mut self, message: &BorrowedMessage<'_>, raw: &mut RawBatch) -> Said {
        let place = Coordinate { topic: 0, partition: message.partition(), offset: message.offset(), element: 0 };
        raw.push_row(place);
        let said = self.row(message, place, raw);
        raw.pop_row();
        said
    }

    fn row(&mut self, message: &BorrowedMessage<'_>, place: Coordinate, raw: &mut RawBatch) -> Said {
        let Some(key) = message.key() else { return self.refuse(place, RejectionReason::MissingField, false) };
        match self.key.fill(key, raw) {
            Ok(()) => {}
            Err(Undecoded::Wait) => return Said::Later,
            Err(Undecoded::Rejected { reason, .. }) => return self.refuse(place, reason, false),
        }
        let Some(person) = self.people.person(raw, 0) else {
            return self.refuse(place, self.people.unnamed(raw, 0), false);
        };
        let Some(value) = message.payload() else { return Said::Update(Update { person, cells: None }) };
        let cells = match self.value.fill(value, raw) {
            Ok(()) => self.people.cells(raw, 0).map_err(|_| RejectionReason::WrongType),
            Err(Undecoded::Wait) => return Said::Later,
            Err(Undecoded::Rejected { reason, .. }) => Err(reason),
        };
        let cells = cells.map_err(|reason| self.refuse(place, reason, true)).ok();
        Said::Update(Update { person, cells })
    }

    fn refuse(&self, place: Coordinate, reason: RejectionReason, named: bool) -> Said {
        let place = format!("partition {}, offset {}", place.partition, place.offset);
        ProfileRefused { join: &self.join, place, reason, named }.emit(&self.telemetry);
        Said::Nothing
    }
}
