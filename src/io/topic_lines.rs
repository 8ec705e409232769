//! Messages of topics as NDJSON lines `{"key": …, "value": …}`, without a schema.

use crate::telemetry::RejectionReason;
use rdkafka::message::{Message as _, OwnedMessage};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_formats::message::{DecodeFailure, MessageDecoder, TopicMessage};
use throng_kafka::topic_sample::TopicSample;

/// Index of the whole value.
pub const VALUE_CELL: usize = 0;
/// Index of the whole key.
pub const KEY_CELL: usize = 1;

const REGISTRY_WAIT_LIMIT: Duration = Duration::from_secs(30);
const REGISTRY_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Number of unreadable messages, by reason.
pub type UnreadableCounts = Arc<Mutex<BTreeMap<&'static str, u64>>>;

/// Reader of topics one after another.
pub struct TopicLines {
    topics: VecDeque<(String, TopicSample)>,
    messages: MessageDecoder,
    unreadable: UnreadableCounts,
    line: Vec<u8>,
    given: usize,
}

impl TopicLines {
    /// Creates the lines of `topics`, decoded into [`VALUE_CELL`] and [`KEY_CELL`].
    pub fn new(topics: Vec<(String, TopicSample)>, messages: MessageDecoder) -> Self {
        let (topics, unreadable) = (topics.into(), UnreadableCounts::default());
        Self { topics, messages, unreadable, line: Vec::new(), given: 0 }
    }

    /// Returns the shared counts of unreadable messages.
    pub fn unreadable(&self) -> UnreadableCounts {
        Arc::clone(&self.unreadable)
    }

    /// Returns false at the end.
    fn advance_line(&mut self) -> io::Result<bool> {
        while let Some((topic, sampled)) = self.topics.front_mut() {
            let Some(message) = sampled.next_message().map_err(io::Error::other)? else {
                self.topics.pop_front();
                continue;
            };
            match line(&self.messages, topic, &message)? {
                None => {}
                Some(Ok(line)) => {
                    (self.line, self.given) = (line, 0);
                    return Ok(true);
                }
                Some(Err(reason)) => {
                    *self.unreadable.lock().expect("no panic while it is held").entry(reason.name()).or_default() += 1;
                }
            }
        }
        Ok(false)
    }
}

impl Read for TopicLines {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.given == self.line.len() && !self.advance_line()? {
            return Ok(0);
        }
        let rest = &self.line[self.given..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}

fn line(
    messages: &MessageDecoder,
    topic: &str,
    message: &OwnedMessage,
) -> io::Result<Option<Result<Vec<u8>, RejectionReason>>> {
    let Some(value) = message.payload() else { return Ok(None) };
    let message = TopicMessage { topic, key: message.key(), value, headers: &[], timestamp_ms: None };
    let mut batch = RawBatch::new(2);
    let since = Instant::now();
    loop {
        match messages.decode(&message, RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 }, &mut batch) {
            Ok(()) => break,
            Err(DecodeFailure::Rejected { reason, .. }) => return Ok(Some(Err(reason))),
            Err(DecodeFailure::SchemaPending) if since.elapsed() < REGISTRY_WAIT_LIMIT => {
                std::thread::sleep(REGISTRY_RETRY_DELAY);
            }
            Err(DecodeFailure::SchemaPending) => {
                return Err(io::Error::other("the schema registry, which the records require, does not answer"));
            }
        }
    }
    let mut line = b"{".to_vec();
    match batch.token(0, KEY_CELL) {
        RawToken::Absent | RawToken::Null => {}
        key => {
            line.extend_from_slice(b"\"key\":");
            write_json_token(key, &mut line);
            line.push(b',');
        }
    }
    let is_object =
        matches!(batch.token(0, VALUE_CELL), RawToken::Structure(text) if text.trim_start().starts_with('{'));
    if !is_object {
        return Ok(Some(Err(RejectionReason::NotAnObject)));
    }
    line.extend_from_slice(b"\"value\":");
    write_json_token(batch.token(0, VALUE_CELL), &mut line);
    line.extend_from_slice(b"}\n");
    Ok(Some(Ok(line)))
}

fn write_json_token(token: RawToken<'_>, line: &mut Vec<u8>) {
    match token {
        RawToken::Absent | RawToken::Null => line.extend_from_slice(b"null"),
        RawToken::Bool(is) => line.extend_from_slice(if is { b"true" } else { b"false" }),
        // Valid JSON has line breaks only between tokens.
        RawToken::Number(text) | RawToken::Structure(text) => {
            line.extend(text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
        }
        RawToken::Text(text) | RawToken::Untyped(text) => {
            line.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::Timestamp;
    use throng_formats::{DecodeLimits, FieldPath, JsonCodec, TextCodec};

    fn line_text(key: Option<&str>, value: Option<&str>) -> Option<Result<String, RejectionReason>> {
        let whole = |attribute| [(attribute, FieldPath::from_segments(Vec::new()))];
        let messages = MessageDecoder {
            value: Box::new(JsonCodec::for_message_part(&whole(VALUE_CELL), DecodeLimits::default())),
            key: Some(Box::new(TextCodec::new(&whole(KEY_CELL), DecodeLimits::default()))),
            headers: Vec::new(),
            max_header_bytes: 100,
            timestamps: Vec::new(),
            topics: Vec::new(),
        };
        let bytes = |text: &str| text.as_bytes().to_vec();
        let (key, value) = (key.map(bytes), value.map(bytes));
        let message = OwnedMessage::new(value, key, "t".into(), Timestamp::NotAvailable, 0, 0, None);
        let made = line(&messages, "t", &message).expect("nobody is waited for");
        made.map(|line| line.map(|line| String::from_utf8(line).expect("text")))
    }

    #[test]
    fn message_is_written_as_one_line() {
        let line = |key, value| line_text(key, Some(value)).expect("a value").expect("a record");
        assert_eq!(line(None, "{\"a\":1}"), "{\"value\":{\"a\":1}}\n");
        assert_eq!(
            line(Some("u\n\"7\""), " {\"a\":\r\n[1,\n2]} "),
            "{\"key\":\"u\\n\\\"7\\\"\",\"value\":{\"a\":  [1, 2]}}\n"
        );
    }

    #[test]
    fn tombstone_or_non_object_has_no_line() {
        assert_eq!(line_text(Some("u"), None), None, "a tombstone");
        for value in ["5", "[1]", "", "{\"a\":1},\"x\":{", "{\"a\":1}{\"b\":2}", "{"] {
            assert!(matches!(line_text(None, Some(value)), Some(Err(_))), "{value}");
        }
    }
}
