//! Which conclusion from one policy to others is sound ([FL2] §2.4–2.7).
//!
//! [FL2] shows that under suppression most models and all measures lose the monotony that searches live on. What stays
//! is decided here, in one table, and every search asks it. Two conclusions always hold and carry the searches:
//! too many records lost for every specialisation ([`Conclusion::LostBelow`]), and a bound from generalization alone
//! that is beaten already ([`Conclusion::BeatenAbove`]).

use super::check::Terms;
use crate::anonymity::privacy::Model;

/// From what is known of a policy x to the policies above or below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The records that x loses for every specialisation exceed the limit: no specialisation is admissible.
    LostBelow,
    /// x is not admissible: no specialisation is.
    InadmissibleBelow,
    /// x is admissible: every generalization is.
    AdmissibleAbove,
    /// x is admissible: no generalization costs less.
    DearerAbove,
    /// The bound of x exceeds the cost of a known admissible policy: so does the cost of every generalization.
    BeatenAbove,
}

impl Conclusion {
    /// Every conclusion.
    pub const ALL: [Self; 5] =
        [Self::LostBelow, Self::InadmissibleBelow, Self::AdmissibleAbove, Self::DearerAbove, Self::BeatenAbove];

    /// Whether it is sound for these terms, where the limit allows `may_suppress` records. No measure tells them apart:
    /// none is monotone once anything is suppressed ([FL2] §2.5), all are before.
    ///
    /// | | nothing suppressed | k-anonymity, k-map, distinct-ℓ | any other model | δ-presence with min > 0 |
    /// |---|---|---|---|---|
    /// | `LostBelow` | yes | yes | yes | yes |
    /// | `InadmissibleBelow` | yes | yes | no | no |
    /// | `AdmissibleAbove` | yes | yes | no | no |
    /// | `DearerAbove` | yes | no | no | no; yes where nothing is suppressed |
    /// | `BeatenAbove` | yes | yes | yes | yes |
    ///
    /// The first column does not hold for δ-presence with min > 0 in its second and third row.
    #[must_use]
    pub fn is_sound(self, terms: &Terms, may_suppress: u64) -> bool {
        match self {
            Self::LostBelow | Self::BeatenAbove => true,
            Self::DearerAbove => may_suppress == 0,
            Self::InadmissibleBelow | Self::AdmissibleAbove if may_suppress == 0 => {
                terms.models.iter().all(Model::monotone_without_suppression)
            }
            Self::InadmissibleBelow | Self::AdmissibleAbove => {
                terms.models.iter().all(Model::monotone_under_suppression)
            }
        }
    }
}
