//! The input as the search sees it.

use super::attended::Attended;
use super::error::AnonymizeError;
use super::read::{self, Input};
use super::source::Source;
use super::step::Step;
use crate::anonymity::domain::Domain;
use crate::anonymity::lattice::coding;
use crate::anonymity::lattice::table::Records;
use crate::config::Config;

/// The input as the search sees it.
pub(super) struct Coded {
    pub input: Input,
    pub domains: Vec<Domain>,
    /// Of the sensitive attributes.
    pub sensitive_domains: Vec<Domain>,
    pub records: Records,
}

/// Reads and encodes the source of `config`, the file `file` in messages.
pub(super) fn coded(
    config: &Config,
    file: &str,
    source: &Source<'_>,
    attended: Attended<'_>,
) -> Result<Coded, AnonymizeError> {
    let told = |records| (attended.step)(Step::Reading { records });
    let input = read::read(config, file, source, attended.note, &told)?;
    let (domains, sensitive_domains, mut records) =
        coding::records(&input.books, &input.batch.columns, &input.quasi, &input.sensitive)?;
    records.subjects.clone_from(&input.subjects);
    records.released.clone_from(&input.released);
    Ok(Coded { input, domains, sensitive_domains, records })
}
