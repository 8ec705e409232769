//! Source and sink of a configuration in words.

use crate::config::{Config, SinkKind, SourceKind};

/// The source in words.
pub(super) fn read_from(config: &Config) -> String {
    match config.source.kind {
        SourceKind::Kafka => format!("the Kafka topic(s) {}", config.source.topics.join(", ")),
        SourceKind::File => format!("the file {}", config.source.path.display()),
    }
}

/// The sink in words, as a predicate.
pub(super) fn released_to(config: &Config) -> String {
    match config.sink.kind {
        SinkKind::Kafka => format!("leave to the Kafka topic {}", config.sink.topic),
        SinkKind::File if is_printed(config) => "leave to standard output".to_owned(),
        SinkKind::File => format!("leave to files at {}", config.sink.path.display()),
        SinkKind::None => "are only measured: nothing leaves".to_owned(),
    }
}

/// Standard output: nobody can tell what of it has arrived.
pub(super) fn is_printed(config: &Config) -> bool {
    config.sink.kind == SinkKind::File && config.sink.path.as_os_str() == "-"
}
