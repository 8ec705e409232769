//! Profiles in a compacted topic, read from the beginning at every start.

use super::profile_decoder::{ProfileDecoder, ProfileRevision};
use super::profile_feed::{
    FeedClosed, ProfileFeed, ProfileMessage, ProfileReadError, ProfileSender, spawn_profile_reader,
};
use super::profile_table::{ProfileSetOutcome, ProfileTable};
use crate::telemetry::{
    Limit, LimitReached, ProfileRefused, ProfileUpdate, ProfilesLag, ProfilesRead, RejectionReason, Telemetry,
};
use rdkafka::Message;
use rdkafka::message::BorrowedMessage;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_formats::message::{DecodeFailure, MessagePartDecoder};
use throng_kafka::connection::KafkaCluster;
use throng_kafka::whole_topic::{TopicReadRequest, WholeTopic};

/// Later messages wait too.
const SCHEMA_RETRY_DELAY: Duration = Duration::from_millis(200);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Topic of profiles.
pub struct ProfileTopic {
    /// Name of the join.
    pub join: String,
    /// Cluster of the topic.
    pub cluster: KafkaCluster,
    /// Name of the topic.
    pub topic: String,
    /// Decoder of keys, which name the subject.
    pub key: Box<dyn MessagePartDecoder>,
    /// Decoder of values, which hold the attributes.
    pub value: Box<dyn MessagePartDecoder>,
    /// Decoder of rows into profiles.
    pub people: ProfileDecoder,
    /// Maximum number of subjects.
    pub max_people: usize,
    /// Receiver of refusals, progress and lag.
    pub telemetry: Telemetry,
}

enum DecodedProfile {
    Update(ProfileRevision),
    Ignored,
    RetryLater,
}

impl ProfileTopic {
    /// Reads the topic on a thread until the feed is dropped.
    pub fn read(self) -> Result<ProfileFeed, ProfileReadError> {
        let join = self.join.clone();
        spawn_profile_reader(&join, move |told| self.read_until_closed(told))
    }

    fn read_until_closed(mut self, told: &ProfileSender) -> Result<(), ProfileReadError> {
        let (topic, group, what) = (self.topic.clone(), "throng.profiles.reader", "cannot read the profiles");
        let reading = TopicReadRequest { topic, group, what, from: BTreeMap::new() };
        let opened = WholeTopic::open(&self.cluster, reading, &|| told.is_feed_closed());
        let failed = |join: &str| {
            let join = join.to_owned();
            move |source| ProfileReadError::Kafka { join, source: Box::new(source) }
        };
        let Some(mut topic) = opened.map_err(failed(&self.join))? else { return Ok(()) };
        let mut whole = Some(ProfileTable::new(self.max_people));
        let mut told_at = Instant::now();
        let mut raw = RawBatch::new(self.people.width());
        while !told.is_feed_closed() {
            let mut taken = Ok(());
            let polled = topic.poll(|message| taken = self.apply_message(message, &mut raw, whole.as_mut(), told));
            polled.map_err(failed(&self.join))?;
            if taken.is_err() {
                return Ok(());
            }
            if topic.has_reached_initial_end()
                && let Some(table) = whole.take()
            {
                ProfilesRead { join: &self.join, people: table.len() as u64, done: true }.emit(&self.telemetry);
                if told.send_message(ProfileMessage::InitialTable(table)).is_err() {
                    return Ok(());
                }
            }
            if told_at.elapsed() >= PROGRESS_INTERVAL {
                told_at = Instant::now();
                if let Some(table) = &whole {
                    ProfilesRead { join: &self.join, people: table.len() as u64, done: false }.emit(&self.telemetry);
                }
                let lag = topic.measure_lag().map_err(failed(&self.join))?;
                ProfilesLag { join: &self.join, records: lag }.emit(&self.telemetry);
            }
        }
        Ok(())
    }

    fn apply_message(
        &mut self,
        message: &BorrowedMessage<'_>,
        raw: &mut RawBatch,
        whole: Option<&mut ProfileTable>,
        told: &ProfileSender,
    ) -> Result<(), FeedClosed> {
        let update = loop {
            match self.decode_message(message, raw) {
                DecodedProfile::Update(update) => break update,
                DecodedProfile::Ignored => return Ok(()),
                DecodedProfile::RetryLater if told.is_feed_closed() => return Err(FeedClosed),
                DecodedProfile::RetryLater => std::thread::sleep(SCHEMA_RETRY_DELAY),
            }
        };
        ProfileUpdate.emit(&self.telemetry);
        let Some(table) = whole else { return told.send_message(ProfileMessage::Changed(update)) };
        if table.set(update.person, update.cells) == ProfileSetOutcome::Full {
            LimitReached { limit: Limit::Profiles }.emit(&self.telemetry);
        }
        Ok(())
    }

    /// An unreadable value removes the previous profile.
    fn decode_message(&mut self, message: &BorrowedMessage<'_>, raw: &mut RawBatch) -> DecodedProfile {
        let place = RecordPosition { topic: 0, partition: message.partition(), offset: message.offset(), element: 0 };
        raw.push_row(place);
        let said = self.decode_row(message, place, raw);
        raw.pop_row();
        said
    }

    fn decode_row(
        &mut self,
        message: &BorrowedMessage<'_>,
        place: RecordPosition,
        raw: &mut RawBatch,
    ) -> DecodedProfile {
        let Some(key) = message.key() else { return self.refuse(place, RejectionReason::MissingField, false) };
        match self.key.fill(key, raw) {
            Ok(()) => {}
            Err(DecodeFailure::SchemaPending) => return DecodedProfile::RetryLater,
            Err(DecodeFailure::Rejected { reason, .. }) => return self.refuse(place, reason, false),
        }
        let Some(person) = self.people.subject_of_row(raw, 0) else {
            return self.refuse(place, self.people.missing_subject_reason(raw, 0), false);
        };
        let Some(value) = message.payload() else {
            return DecodedProfile::Update(ProfileRevision { person, cells: None });
        };
        let cells = match self.value.fill(value, raw) {
            Ok(()) => self.people.cells(raw, 0).map_err(|_| RejectionReason::WrongType),
            Err(DecodeFailure::SchemaPending) => return DecodedProfile::RetryLater,
            Err(DecodeFailure::Rejected { reason, .. }) => Err(reason),
        };
        let cells = cells.map_err(|reason| self.refuse(place, reason, true)).ok();
        DecodedProfile::Update(ProfileRevision { person, cells })
    }

    fn refuse(&self, place: RecordPosition, reason: RejectionReason, named: bool) -> DecodedProfile {
        let place = format!("partition {}, offset {}", place.partition, place.offset);
        ProfileRefused { join: &self.join, place, reason, named }.emit(&self.telemetry);
        DecodedProfile::Ignored
    }
}
