//! Dead letters, without record content.

use serde::Serialize;

use super::release_sink::RejectedRecord;

/// Report on a rejected record, without values: only closed lists and configured names.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DeadLetter<'a> {
    /// Topic or file name.
    topic: &'a str,
    partition: i32,
    offset: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    element: Option<u32>,
    /// Rejecting stage.
    stage: &'static str,
    reason: &'static str,
    /// Name of the faulty attribute.
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute: Option<&'a str>,
    /// Batch number.
    batch: u64,
}

impl<'a> DeadLetter<'a> {
    /// Creates a report. `attributes` are schema names.
    pub fn of(rejected: &RejectedRecord, topic: &'a str, attributes: &'a [String], batch: u64) -> Self {
        let RejectedRecord { coordinate, reason, attribute } = rejected;
        Self {
            topic,
            partition: coordinate.partition,
            offset: coordinate.offset,
            element: coordinate.element_index(),
            stage: reason.stage_name(),
            reason: reason.counted_reason().name(),
            attribute: attribute.map(|attribute| attributes[attribute].as_str()),
            batch,
        }
    }

    /// Returns headers as in Kafka Connect's dead letter queue, otherwise `__throng.errors.*`.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("__connect.errors.topic", self.topic.to_owned()),
            ("__connect.errors.partition", self.partition.to_string()),
            ("__connect.errors.offset", self.offset.to_string()),
            ("__connect.errors.stage", self.stage.to_owned()),
            ("__connect.errors.exception.class.name", self.reason.to_owned()),
            ("__throng.errors.batch", self.batch.to_string()),
        ];
        headers.extend(self.element.map(|index| ("__throng.errors.element", index.to_string())));
        headers.extend(self.attribute.map(|name| ("__throng.errors.attribute", name.to_owned())));
        headers
    }

    /// Returns one JSON object without line break.
    pub fn body(&self) -> String {
        serde_json::to_string(self).expect("texts and integers are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::raw_batch::RecordPosition;
    use crate::values::rejection::RejectionReason;

    #[test]
    fn dead_letter_reports_position_and_reason() {
        let attributes = ["heart_rate".to_owned()];
        let letter = |element, attribute| {
            let coordinate = RecordPosition { topic: 0, partition: 2, offset: 41, element };
            let rejected = RejectedRecord { coordinate, reason: RejectionReason::DuplicateKey, attribute };
            DeadLetter::of(&rejected, "wearable.raw", &attributes, 7)
        };
        let expected =
            r#"{"topic":"wearable.raw","partition":2,"offset":41,"stage":"decode","reason":"duplicate_key","batch":7}"#;
        assert_eq!(letter(0, None).body(), expected);
        let element = r#"{"topic":"wearable.raw","partition":2,"offset":41,"element":3,"stage":"decode","reason":"duplicate_key","batch":7}"#;
        assert_eq!(letter(4, None).body(), element);
        assert!(letter(4, None).headers().contains(&("__throng.errors.element", "3".to_owned())));
        let letter = letter(4, Some(0));
        let headers = letter.headers();
        let value = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        assert_eq!(value("__connect.errors.topic"), Some("wearable.raw"));
        assert_eq!(value("__connect.errors.partition"), Some("2"));
        assert_eq!(value("__connect.errors.offset"), Some("41"));
        assert_eq!(value("__connect.errors.stage"), Some("decode"));
        assert_eq!(value("__connect.errors.exception.class.name"), Some("duplicate_key"));
        assert_eq!(value("__throng.errors.attribute"), Some("heart_rate"));
        assert_eq!(value("__throng.errors.batch"), Some("7"));
        assert!(letter.body().contains(r#""attribute":"heart_rate""#));
    }
}
