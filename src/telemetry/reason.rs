//! Reasons as text and labels.

use super::labels::{Label, Stage, SuppressionReason};
pub use throng_core::values::rejection::RejectionReason;

impl SuppressionReason {
    /// Returns the text after "suppressed:".
    #[must_use]
    pub const fn reason_text(self) -> &'static str {
        match self {
            Self::NoSupport => "too few people share their values, even fully generalized",
            Self::Quiet => "their batch had too few people for too long",
            Self::Guard => "counts would have linked two of their fragments",
            Self::Shutdown => "they were held when the run stopped",
            Self::HeldOut => "too few people shared their values while they were held",
            Self::Thinned => "other lines of the same people represent them",
            Self::EndOfStream => "they were held when the stream ended",
            Self::Monitoring => "no record is released: sink.kind is none or release.fragments is false",
        }
    }
}

/// Returns the rejecting stage.
pub const fn stage_of(reason: RejectionReason) -> Stage {
    match reason {
        RejectionReason::WrongType => Stage::Encode,
        _ => Stage::Decode,
    }
}

/// Each reason has the label of its [counted reason](RejectionReason::counted_reason).
impl Label for RejectionReason {
    const ALL: &'static [Self] = &[
        Self::MalformedJson,
        Self::NotUtf8,
        Self::Oversized,
        Self::TooDeep,
        Self::DuplicateKey,
        Self::NotAnObject,
        Self::Empty,
        Self::RaggedRow,
        Self::MalformedRow,
        Self::UnknownAttribute,
        Self::WrongType,
        Self::MalformedAvro,
        Self::MalformedProtobuf,
        Self::BrokenFrame,
        Self::UnknownSchema,
        Self::MissingField,
        Self::NoElements,
        Self::TooManyElements,
        Self::NotAnArray,
    ];

    fn as_str(self) -> &'static str {
        self.counted_reason().name()
    }

    fn index(self) -> usize {
        self.counted_reason() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stage_names_of_reasons_are_labels() {
        for reason in RejectionReason::ALL {
            assert_eq!(stage_of(*reason).as_str(), reason.stage_name());
        }
    }

    #[test]
    fn reason_texts_are_distinct_and_not_empty() {
        let suppressed = SuppressionReason::ALL.iter().map(|reason| reason.reason_text());
        let mut words: Vec<&str> =
            suppressed.chain(RejectionReason::ALL.iter().map(|reason| reason.reason_clause())).collect();
        words.sort_unstable();
        let all = words.len();
        words.dedup();
        assert_eq!((words.len(), words[0].is_empty()), (all, false), "{words:?}");
    }

    #[test]
    fn every_rejection_reason_has_label() {
        for reason in
            RejectionReason::ALL.iter().copied().chain([RejectionReason::Truncated, RejectionReason::TrailingText])
        {
            assert_eq!(RejectionReason::ALL[reason.index()], reason.counted_reason(), "{reason}");
            assert_eq!(RejectionReason::ALL[reason.index()].as_str(), reason.as_str(), "{reason}");
        }
    }
}
