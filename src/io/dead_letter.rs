//! Dead letters: that a record was refused, where it lies and why; never what is in it.

use serde::Serialize;

use crate::records::raw::Coordinate;
use crate::telemetry::{Label, RejectionReason};

/// The report on one refused record. No field can hold a value of the record: the reason is one of a closed list, topic and
/// attribute are names from the configuration and the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetter<'a> {
    /// Where the record lies; its topic index is resolved by `topic`.
    pub coordinate: Coordinate,
    /// Its topic, or the name of its file.
    pub topic: &'a str,
    /// Why it was refused; this also tells the stage that did.
    pub reason: RejectionReason,
    /// The schema's name of the attribute at fault, if one is.
    pub attribute: Option<&'a str>,
    /// Sequence number of the batch.
    pub batch: u64,
}

impl DeadLetter<'_> {
    /// Headers in the manner of Kafka Connect's dead letter queue; `__throng.errors.*` where Connect has no name.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("__connect.errors.topic", self.topic.to_owned()),
            ("__connect.errors.partition", self.coordinate.partition.to_string()),
            ("__connect.errors.offset", self.coordinate.offset.to_string()),
            ("__connect.errors.stage", self.reason.stage().as_str().to_owned()),
            ("__connect.errors.exception.class.name", self.reason.as_str().to_owned()),
            ("__throng.errors.batch", self.batch.to_string()),
        ];
        headers.extend(self.coordinate.index().map(|index| ("__throng.errors.element", index.to_string())));
        headers.extend(self.attribute.map(|name| ("__throng.errors.attribute", name.to_owned())));
        headers
    }

    /// The body: one JSON object without a line break.
    ///
    /// # Panics
    /// Never: texts and integers are always JSON.
    #[must_use]
    pub fn body(&self) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            topic: &'a str,
            partition: i32,
            offset: i64,
            #[serde(skip_serializing_if = "Option::is_none")]
            element: Option<u32>,
            stage: &'a str,
            reason: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            attribute: Option<&'a str>,
            batch: u64,
        }
        let body = Body {
            topic: self.topic,
            partition: self.coordinate.partition,
            offset: self.coordinate.offset,
            element: self.coordinate.index(),
            stage: self.reason.stage().as_str(),
            reason: self.reason.as_str(),
            attribute: self.attribute,
            batch: self.batch,
        };
        serde_json::to_string(&body).expect("texts and integers are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_names_place_and_reason() {
        let coordinate = Coordinate { topic: 0, partition: 2, offset: 41, element: 0 };
        let reason = RejectionReason::DuplicateKey;
        let mut letter = DeadLetter { coordinate, topic: "wearable.raw", reason, attribute: None, batch: 7 };
        let expected =
            r#"{"topic":"wearable.raw","partition":2,"offset":41,"stage":"decode","reason":"duplicate_key","batch":7}"#;
        assert_eq!(letter.body(), expected);
        letter.coordinate.element = 4;
        let element = r#"{"topic":"wearable.raw","partition":2,"offset":41,"element":3,"stage":"decode","reason":"duplicate_key","batch":7}"#;
        assert_eq!(letter.body(), element);
        assert!(letter.headers().contains(&("__throng.errors.element", "3".to_owned())));
        letter.attribute = Some("heart_rate");
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
