//! What signs the certificates of one state, and where their chain stands.

use crate::certificates::head::Head;
use crate::certificates::output::{Framing, OutputDigest};
use crate::certificates::statement::{Chain, Output, Range, Sha256Hex, Subject};
use crate::config::{Config, Format, SinkKind, SourceKind};
use crate::daemon::state::records::OffsetRange;
use crate::release::verified::Verified;
use crate::start::certified::Signer;
use std::sync::Arc;

/// What signs the certificates of one state.
pub struct Certifier {
    /// The key, and the policy that it signs under.
    pub(super) signer: Arc<Signer>,
    /// Identity of the state.
    pub(super) instance: String,
    /// By output its name and its topic; none for files.
    outputs: Vec<(String, Option<String>)>,
    /// Names of the source topics, by index; empty for a file.
    sources: Vec<String>,
    framing: Framing,
    /// `privacy.k`, and what a class is asked for: inside the window and inside its batch.
    pub(super) k: u64,
    pub(super) asked: u64,
    pub(super) asked_in_batch: u64,
    /// The last certificate that has left; none where the chain has not begun.
    pub(super) head: Option<Head>,
}

impl Certifier {
    /// A certifier of the state `instance`, whose chain stands at `head`.
    #[must_use]
    pub fn new(signer: Arc<Signer>, config: &Config, instance: &str, head: Option<Head>) -> Self {
        let sink = &config.sink;
        let topic = |name: &str| (sink.kind == SinkKind::Kafka).then(|| sink.topic_of(name));
        // What stands before a framed message may hold any byte.
        let framing = match sink.kind {
            SinkKind::Kafka if sink.format() != Format::Json || sink.framed == Some(true) => Framing::Length,
            SinkKind::Kafka | SinkKind::File | SinkKind::None => Framing::Newline,
        };
        Self {
            signer,
            instance: instance.to_owned(),
            outputs: config.output_names().into_iter().map(|name| (name.to_owned(), topic(name))).collect(),
            sources: match config.source.kind {
                SourceKind::Kafka => config.source.topics.clone(),
                SourceKind::File => Vec::new(),
            },
            framing,
            k: config.privacy.k as u64,
            asked: config.privacy.crowd() as u64,
            asked_in_batch: config.privacy.crowd_in_batch() as u64,
            head,
        }
    }

    /// What each output gets of a batch, and what digests it.
    pub(super) fn outputs(
        &self,
        verified: &Verified,
        lines_before: impl Fn(&str) -> Option<u64>,
    ) -> (Vec<Subject>, Vec<Output>) {
        let output = |(at, (name, topic)): (usize, &(String, Option<String>))| {
            let mut digest = OutputDigest::new(self.framing);
            verified.output(at).iter().for_each(|(_, line)| digest.add(line.bytes));
            let ((lines, bytes), name, topic) = (digest.size(), name.clone(), topic.clone());
            let first_line = if topic.is_none() { lines_before(&name) } else { None };
            let subject = Subject { name: name.clone(), digest: Sha256Hex { sha256: digest.hex() } };
            (subject, Output { name, topic, lines, bytes, first_line, framing: self.framing })
        };
        self.outputs.iter().enumerate().take(verified.outputs()).map(output).unzip()
    }

    /// Offsets with the name of their topic.
    pub(super) fn range(&self, range: &OffsetRange) -> Range {
        let OffsetRange { topic, partition, from, to } = *range;
        Range { topic: self.sources.get(usize::from(topic)).cloned(), partition, from, to }
    }

    /// The place of the certificate of batch `sequence`.
    pub(super) fn chain(&self, sequence: u64) -> Chain {
        let (number, previous) = self.head.map_or((1, None), |head| (head.number + 1, Some(head.hex())));
        Chain { instance: self.instance.clone(), number, sequence, previous }
    }
}
