//! Readable descriptions of the source and sink of a configuration.

use crate::config::{Config, SinkKind, SourceKind};

/// Describes the source.
pub(super) fn source_phrase(config: &Config) -> String {
    match config.source.kind {
        SourceKind::Kafka => format!("the Kafka topic(s) {}", config.source.topics.join(", ")),
        SourceKind::File => format!("the file {}", config.source.path.display()),
    }
}

/// Describes the sink as a predicate.
pub(super) fn sink_phrase(config: &Config) -> String {
    match config.sink.kind {
        SinkKind::Kafka => format!("are released to the Kafka topic {}", config.sink.topic),
        SinkKind::File if writes_standard_output(config) => "are released to standard output".to_owned(),
        SinkKind::File => format!("are released to files at {}", config.sink.path.display()),
        SinkKind::None => "are only measured: nothing is released".to_owned(),
    }
}

/// Returns true if the sink is standard output, for which delivery cannot be confirmed.
pub(super) fn writes_standard_output(config: &Config) -> bool {
    config.sink.kind == SinkKind::File && config.sink.path.as_os_str() == "-"
}
