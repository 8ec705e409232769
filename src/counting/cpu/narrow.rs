//! A column in the narrowest width that holds its codes.

/// Codes of one column.
pub(crate) enum Narrow {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
}

/// Runs an expression with the codes as a slice of their own width; for the widest, a conversion in it is none.
macro_rules! with_codes {
    ($narrow:expr, $codes:ident => $body:expr) => {
        match $narrow {
            $crate::counting::cpu::narrow::Narrow::One($codes) => $body,
            $crate::counting::cpu::narrow::Narrow::Two($codes) => $body,
            #[allow(clippy::useless_conversion, reason = "the same expression for all widths")]
            $crate::counting::cpu::narrow::Narrow::Four($codes) => $body,
        }
    };
}
pub(crate) use with_codes;

impl Narrow {
    /// The codes, below `cardinality`, in the given order of rows.
    pub(crate) fn new(codes: &[u32], cardinality: usize, order: Option<&[u32]>) -> Self {
        fn narrowed<T>(codes: &[u32], order: Option<&[u32]>, narrow: impl Fn(u32) -> T) -> Vec<T> {
            match order {
                None => codes.iter().map(|c| narrow(*c)).collect(),
                Some(order) => order.iter().map(|row| narrow(codes[*row as usize])).collect(),
            }
        }
        if cardinality <= 1 << 8 {
            Self::One(narrowed(codes, order, |c| c as u8))
        } else if cardinality <= 1 << 16 {
            Self::Two(narrowed(codes, order, |c| c as u16))
        } else {
            Self::Four(narrowed(codes, order, |c| c))
        }
    }
}
