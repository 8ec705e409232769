//! Descriptions of source and sink.

use crate::config::{Config, SinkKind, SourceKind};

pub(super) fn source_phrase(config: &Config) -> String {
    match config.source.kind {
        SourceKind::Kafka => format!("the Kafka topic(s) {}", config.source.topics.join(", ")),
        SourceKind::File => format!("the file {}", config.source.path.display()),
    }
}

/// As a predicate.
pub(super) fn sink_phrase(config: &Config) -> String {
    match config.sink.kind {
        SinkKind::Kafka => format!("are released to the Kafka topic {}", config.sink.topic),
        SinkKind::File if writes_standard_output(config) => "are released to standard output".to_owned(),
        SinkKind::File => format!("are released to files at {}", config.sink.path.display()),
        SinkKind::None => "are only measured: nothing is released".to_owned(),
    }
}

/// Standard output cannot confirm delivery.
pub(super) fn writes_standard_output(config: &Config) -> bool {
    config.sink.kind == SinkKind::File && config.sink.path.as_os_str() == "-"
}
