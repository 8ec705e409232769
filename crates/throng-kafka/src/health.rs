//! State of the Kafka consumer.

use super::partition_lags::PartitionLags;
use std::sync::atomic::AtomicBool;
use throng_core::stream::input_batch::SourceStatus;
use throng_core::stream::release_sink::InputPositions;
use throng_core::values::raw_batch::RecordPosition;

/// Consumer state, shared between callbacks and the daemon.
#[derive(Debug, Default)]
pub struct ConsumerHealth {
    /// True while a broker is connected.
    pub reachable: AtomicBool,
    /// True while partitions are assigned.
    pub assigned: AtomicBool,
    /// Lag of the assigned partitions, in records.
    pub lags: PartitionLags,
    /// True if a partition was given up without an acknowledgement.
    pub abandoned: AtomicBool,
}

impl ConsumerHealth {
    /// Logs an error without its text, which may quote a configuration.
    pub fn note_error(&self) {
        tracing::debug!("error of the Kafka client: retrying");
    }
}

impl SourceStatus for ConsumerHealth {
    fn lag(&self) -> Option<u64> {
        self.lags.total()
    }

    fn note_committed(&self, positions: &InputPositions) {
        self.lags.note_committed(positions);
    }

    fn describe(&self, at: RecordPosition) -> String {
        let RecordPosition { topic, partition, offset, .. } = at;
        let element = at.element_index().map_or(String::new(), |index| format!(", element {index}"));
        match topic {
            0 => format!("partition {partition}, offset {offset}{element}"),
            _ => format!("topic {} of the source, partition {partition}, offset {offset}{element}", topic + 1),
        }
    }
}
