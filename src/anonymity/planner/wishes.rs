//! What a consumer of the release needs together: wishes, and what they have come to (docs/methods.md §10.2).

/// Attributes that should leave together.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// Positions in the schema, ascending.
    pub attributes: Vec<usize>,
    /// Bits that each pair of them is worth more, above 0.
    pub weight: f64,
}

/// What a wish has come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WishAnswer {
    /// The largest part of it that leaves as one, ascending.
    pub together: Vec<usize>,
    /// Loss that this adds to a record, in cells: the price of the wish.
    pub loss: f64,
    /// The others, each with the reason.
    pub apart: Vec<(usize, Apart)>,
}

/// Why an attribute does not leave with others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Apart {
    /// One of them identifies by itself and never leaves.
    Identifier,
    /// One changes within a person and the other does not.
    Pace,
    /// Their group would be too wide.
    Width,
    /// It stands beside attributes that say more of it.
    Elsewhere,
    /// A rule keeps it in a compartment.
    Compartment,
    /// It would cost more than the price.
    Price {
        /// Loss that it would add to a record, in cells.
        loss: f64,
    },
}

impl Apart {
    /// The reason in a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Identifier => "identifier",
            Self::Pace => "pace",
            Self::Width => "width",
            Self::Elsewhere => "elsewhere",
            Self::Compartment => "compartment",
            Self::Price { .. } => "price",
        }
    }
}

/// What wishes for both of two attributes add to the worth of the pair, in bits.
#[must_use]
pub fn wished(wishes: &[Wish], a: usize, b: usize) -> f64 {
    let both = |wish: &&Wish| wish.attributes.contains(&a) && wish.attributes.contains(&b);
    wishes.iter().filter(both).map(|wish| wish.weight).sum()
}
