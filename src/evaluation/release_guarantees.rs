//! Guarantees of a configuration.

use crate::config::Config;
use throng_eval::attack::ReleaseGuarantees;

/// Returns a configuration's guarantees; `subjects`: records have a subject.
#[must_use]
pub fn release_guarantees(config: &Config, subjects: bool) -> ReleaseGuarantees {
    let privacy = &config.privacy;
    ReleaseGuarantees {
        crowd: privacy.required_subjects(),
        colluders: privacy.colluders,
        has_one_line: !subjects || privacy.max_lines_per_subject == 1,
        limits_repetition: subjects && privacy.max_lines_per_subject > 0 && !privacy.longest_delay().is_zero(),
    }
}
