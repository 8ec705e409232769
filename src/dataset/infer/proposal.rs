//! A proposal and its parts, before they are text.

use throng_core::values::moment::Unit;
use throng_core::values::schema::{Changes, Origin, Place, Role, Type};

/// An attribute as it is proposed.
#[derive(Clone, Debug)]
pub(super) struct Proposed {
    pub name: String,
    pub from: Origin,
    pub place: Place,
    pub role: Role,
    pub reading: Reading,
    pub missing: Option<Vec<String>>,
    pub round: Option<Round>,
    pub ladder: Option<Ladder>,
    pub changes: Option<Changes>,
    pub evidence: Vec<String>,
}

/// A schema as it is proposed.
pub(super) struct Proposal {
    pub name: String,
    pub head: Vec<String>,
    pub attributes: Vec<Proposed>,
}

/// How a column's cells are read.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub kind: Type,
    /// Texts that say that there is no value; the key is written where it is not empty.
    pub missing: Vec<String>,
    pub dates: Spelled,
    /// Numbers have a decimal comma.
    pub decimal_comma: bool,
    /// Points are read as decimal points, and may separate thousands.
    pub points_may_group: bool,
    /// Cells that are neither missing nor of the type.
    pub misfits: u64,
    /// What a reader must decide.
    pub doubt: Option<String>,
}

impl Reading {
    /// Texts as they are, some of which say that there is no value.
    pub fn of_texts(missing: Vec<String>) -> Self {
        Self {
            kind: Type::String,
            missing,
            dates: Spelled::Iso,
            decimal_comma: false,
            points_may_group: false,
            misfits: 0,
            doubt: None,
        }
    }
}

/// How dates and times are spelled.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Spelled {
    Iso,
    Formats(Vec<&'static str>),
    Epoch(&'static str),
}

impl Spelled {
    /// Whether years have two digits.
    pub fn has_short_years(&self) -> bool {
        matches!(self, Self::Formats(formats) if formats.iter().any(|format| format.contains("%y")))
    }
}

/// A hierarchy, as a schema spells it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ladder {
    /// The value, then `*`.
    Flat,
    /// A row a label: from the label to its coarsest group.
    Tree(Vec<Vec<String>>),
    Widths {
        min: f64,
        max: f64,
        origin: f64,
        widths: Vec<f64>,
    },
    Bounds {
        min: f64,
        max: f64,
        levels: Vec<Vec<f64>>,
    },
    Prefix(Vec<usize>),
    /// Units; the first day of the first year and the end of the last one.
    Calendar {
        levels: Vec<Unit>,
        domain: Option<(String, String)>,
    },
    Grid(Vec<f64>),
}

impl Ladder {
    /// Whether there may be values that it does not cover.
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Tree(_) | Self::Widths { .. } | Self::Bounds { .. } => true,
            Self::Calendar { domain, .. } => domain.is_some(),
            Self::Flat | Self::Prefix(_) | Self::Grid(_) => false,
        }
    }
}

/// How values are rounded before they are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Round {
    Step(f64),
    Unit(Unit),
}

/// A hierarchy, the rounding before it, and what to tell of both.
pub(super) struct Generalized {
    pub ladder: Ladder,
    pub round: Option<Round>,
    pub remark: Option<String>,
}

impl Generalized {
    /// Without rounding or remark.
    pub fn of(ladder: Ladder) -> Self {
        Self { ladder, round: None, remark: None }
    }
}
