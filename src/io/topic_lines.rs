//! The messages of topics as lines of NDJSON, for looking at records that no schema describes: `{"key": …, "value": …}`.

use super::kafka::sampled::Sampled;
use super::message::{Message, Messages, Undecoded};
use crate::telemetry::RejectionReason;
use rdkafka::message::{Message as _, OwnedMessage};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use throng_core::values::raw::{Coordinate, RawBatch, Token};

/// The cell of a whole value and that of a whole key, in what [`TopicLines`] decodes.
pub const VALUE: usize = 0;
/// See [`VALUE`].
pub const KEY: usize = 1;

/// How long somebody who is needed to read a message may not answer.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);

/// Messages that are no records, by reason.
pub type Unreadable = Arc<Mutex<BTreeMap<&'static str, u64>>>;

/// Reads topic after topic. Memory: one message.
pub struct TopicLines {
    topics: VecDeque<(String, Sampled)>,
    messages: Messages,
    unreadable: Unreadable,
    line: Vec<u8>,
    given: usize,
}

impl TopicLines {
    /// The lines of `topics`. `messages` decodes whole values and keys into the cells [`VALUE`] and [`KEY`].
    pub fn new(topics: Vec<(String, Sampled)>, messages: Messages) -> Self {
        let (topics, unreadable) = (topics.into(), Unreadable::default());
        Self { topics, messages, unreadable, line: Vec::new(), given: 0 }
    }

    /// What could not be read; it grows while lines are read.
    pub fn unreadable(&self) -> Unreadable {
        Arc::clone(&self.unreadable)
    }

    /// Makes the next line; false at the end.
    fn go_on(&mut self) -> io::Result<bool> {
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
        if self.given == self.line.len() && !self.go_on()? {
            return Ok(0);
        }
        let rest = &self.line[self.given..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}

/// The line of a message; none for one without a value.
fn line(
    messages: &Messages,
    topic: &str,
    message: &OwnedMessage,
) -> io::Result<Option<Result<Vec<u8>, RejectionReason>>> {
    let Some(value) = message.payload() else { return Ok(None) };
    let message = Message { topic, key: message.key(), value, headers: &[], timestamp_ms: None };
    let mut batch = RawBatch::new(2);
    let since = Instant::now();
    loop {
        match messages.decode(&message, Coordinate { topic: 0, partition: 0, offset: 0, element: 0 }, &mut batch) {
            Ok(()) => break,
            Err(Undecoded::Rejected { reason, .. }) => return Ok(Some(Err(reason))),
            Err(Undecoded::Wait) if since.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(Undecoded::Wait) => {
                return Err(io::Error::other("the schema registry does not answer, and the records need it"));
            }
        }
    }
    let mut line = b"{".to_vec();
    match batch.token(0, KEY) {
        Token::Absent | Token::Null => {}
        key => {
            line.extend_from_slice(b"\"key\":");
            spell(key, &mut line);
            line.push(b',');
        }
    }
    let is_object = matches!(batch.token(0, VALUE), Token::Structure(text) if text.trim_start().starts_with('{'));
    if !is_object {
        return Ok(Some(Err(RejectionReason::NotAnObject)));
    }
    line.extend_from_slice(b"\"value\":");
    spell(batch.token(0, VALUE), &mut line);
    line.extend_from_slice(b"}\n");
    Ok(Some(Ok(line)))
}

/// A token as JSON on one line.
fn spell(token: Token<'_>, line: &mut Vec<u8>) {
    match token {
        Token::Absent | Token::Null => line.extend_from_slice(b"null"),
        Token::Bool(is) => line.extend_from_slice(if is { b"true" } else { b"false" }),
        // Well formed: a line break in it is between two tokens.
        Token::Number(text) | Token::Structure(text) => {
            line.extend(text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
        }
        Token::Text(text) | Token::Untyped(text) => {
            line.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::Timestamp;
    use throng_formats::{Field, JsonCodec, Limits, TextCodec};

    fn lined(key: Option<&str>, value: Option<&str>) -> Option<Result<String, RejectionReason>> {
        let whole = |attribute| [(attribute, Field::at(Vec::new()))];
        let messages = Messages {
            value: Box::new(JsonCodec::of_part(&whole(VALUE), Limits::default())),
            key: Some(Box::new(TextCodec::new(&whole(KEY), Limits::default()))),
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
    fn a_message_becomes_one_line() {
        let line = |key, value| lined(key, Some(value)).expect("a value").expect("a record");
        assert_eq!(line(None, "{\"a\":1}"), "{\"value\":{\"a\":1}}\n");
        assert_eq!(
            line(Some("u\n\"7\""), " {\"a\":\r\n[1,\n2]} "),
            "{\"key\":\"u\\n\\\"7\\\"\",\"value\":{\"a\":  [1, 2]}}\n"
        );
    }

    #[test]
    fn what_is_no_record_makes_no_line() {
        assert_eq!(lined(Some("u"), None), None, "a tombstone");
        for value in ["5", "[1]", "", "{\"a\":1},\"x\":{", "{\"a\":1}{\"b\":2}", "{"] {
            assert!(matches!(lined(None, Some(value)), Some(Err(_))), "{value}");
        }
    }
}
