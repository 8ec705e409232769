//! What a shared ledger goes with: it gives supports, and nothing else that a promise may need of other instances.

use crate::config::complaint::Complaints;
use crate::config::{Config, Diversity, ModelKind, PrivacyModel, Recoding, SinkKind, SourceKind};

const KEY: &str = "sink.ledger_topic";

/// Complaints about a ledger that is to be shared.
pub(super) fn ledger(config: &Config, found: &mut Complaints) {
    if config.sink.shared_ledger().is_none() {
        return;
    }
    let (privacy, sink) = (&config.privacy, &config.sink);
    let topics = sink.kind == SinkKind::Kafka && config.source.kind == SourceKind::Kafka;
    let message = "instances of one consumer group share it, which read topics and write topics";
    found.unless(topics, KEY, message, "remove the key");
    let window = !privacy.support_window.is_zero();
    let message = "nothing that was released before supports anything (privacy.support_window = \"0s\")";
    found.unless(window, KEY, message, "set privacy.support_window, or remove the key");
    let skew = sink.ledger_skew < privacy.support_window || !window;
    let remedy = "give less than privacy.support_window; 1m is usual";
    found.unless(skew, "sink.ledger_skew", "nothing of other instances would ever count", remedy);
    let strict = privacy.recoding == Recoding::Strict && privacy.crowd_in_batch() < privacy.crowd();
    let message = "strict recoding counts raw tuples, which instances do not tell each other";
    let remedy = "set recoding = \"ladder\", or privacy.batch_crowd to privacy.k, with which a batch needs no ledger";
    found.unless(!strict, KEY, message, remedy);
    let bounded = privacy.max_classes_per_subject > 0 || privacy.min_tenure > 0;
    let message = "who has spent a budget, or has been seen, elsewhere is not in it";
    let remedy = "remove privacy.max_classes_per_subject and privacy.min_tenure, or the key";
    found.unless(!bounded, KEY, message, remedy);
    for (index, model) in privacy.model.iter().enumerate() {
        let message =
            "on the lines of several instances together this model may not hold where it holds for each of them";
        let remedy = "ask for distinct l_diversity, or remove sink.ledger_topic";
        found.unless(holds_on_the_union(model), &format!("privacy.model[{index}].kind"), message, remedy);
    }
}

/// Whether what instances release satisfies a model together, if what each of them releases does (docs/guarantees.md).
pub(super) fn holds_on_the_union(model: &PrivacyModel) -> bool {
    match model.kind {
        ModelKind::KAnonymity | ModelKind::KMap => true,
        ModelKind::LDiversity => model.diversity == Diversity::Distinct,
        ModelKind::TCloseness | ModelKind::DeltaPresence => false,
    }
}
