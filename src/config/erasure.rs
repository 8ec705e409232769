//! `[erasure]`: a topic that names people who are to be erased.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::complaint::Complaints;
use super::{Config, SourceKind};

/// Who is to be erased, named in a topic that every instance reads for itself. `throng forget` and the pages erase people
/// without it as well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Erasure {
    /// The Kafka topic, on the brokers of the source, of which every message names a person by its key: UTF-8, spelled as `throng forget` takes
    /// it. Its value is not read, and one without a value names the person all the same. For sources of kind `kafka`; without it (`""`) there is none.
    #[schemars(example = &"throng.erasures")]
    pub topic: String,
}

impl Erasure {
    /// Whether people are named in a topic.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.topic.is_empty()
    }
}

/// Complaints about the topic of erasures.
pub(super) fn erasure(config: &Config, found: &mut Complaints) {
    let kafka = config.source.kind == SourceKind::Kafka || !config.erasure.is_on();
    let message = "people are named in a topic on the brokers of the source, and records come from a file";
    found.unless(kafka, "erasure.topic", message, "use throng forget, or read records from a topic");
}
