//! Types of a schema proposal.

use throng_core::values::moment::CalendarUnit;
use throng_core::values::schema::{AttributeOrigin, AttributePlace, AttributeType, ChangeFrequency, Role};

#[derive(Clone, Debug)]
pub(super) struct ProposedAttribute {
    pub name: String,
    pub from: AttributeOrigin,
    pub place: AttributePlace,
    pub role: Role,
    pub reading: ColumnReading,
    pub missing: Option<Vec<String>>,
    pub round: Option<ProposedRounding>,
    pub ladder: Option<ProposedHierarchy>,
    pub changes: Option<ChangeFrequency>,
    pub evidence: Vec<String>,
}

pub(super) struct SchemaProposal {
    pub name: String,
    pub head: Vec<String>,
    pub attributes: Vec<ProposedAttribute>,
}

#[derive(Clone, Debug)]
pub(super) struct ColumnReading {
    pub kind: AttributeType,
    /// Missing spellings; the key is written unless empty.
    pub missing: Vec<String>,
    pub dates: DateSpelling,
    /// Numbers have a decimal comma.
    pub decimal_comma: bool,
    /// Decimal points that may separate thousands.
    pub points_may_group: bool,
    /// Cells that are neither missing nor of the type.
    pub misfits: u64,
    /// Question for the operator.
    pub operator_question: Option<String>,
}

impl ColumnReading {
    /// Creates a reading as texts.
    pub fn of_texts(missing: Vec<String>) -> Self {
        Self {
            kind: AttributeType::String,
            missing,
            dates: DateSpelling::Iso,
            decimal_comma: false,
            points_may_group: false,
            misfits: 0,
            operator_question: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum DateSpelling {
    Iso,
    Formats(Vec<&'static str>),
    Epoch(&'static str),
}

impl DateSpelling {
    /// Years have two digits.
    pub fn has_short_years(&self) -> bool {
        matches!(self, Self::Formats(formats) if formats.iter().any(|format| format.contains("%y")))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ProposedHierarchy {
    /// The value, then `*`.
    Flat,
    /// Rows from a label to its coarsest group.
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
    /// Units, and the first and last day.
    Calendar {
        levels: Vec<CalendarUnit>,
        domain: Option<(String, String)>,
    },
    Grid(Vec<f64>),
}

impl ProposedHierarchy {
    /// Some values may be uncovered.
    pub fn may_miss_values(&self) -> bool {
        match self {
            Self::Tree(_) | Self::Widths { .. } | Self::Bounds { .. } => true,
            Self::Calendar { domain, .. } => domain.is_some(),
            Self::Flat | Self::Prefix(_) | Self::Grid(_) => false,
        }
    }
}

/// Precedes the count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ProposedRounding {
    Step(f64),
    Unit(CalendarUnit),
}

/// Hierarchy with rounding and remark.
pub(super) struct HierarchyProposal {
    pub ladder: ProposedHierarchy,
    pub round: Option<ProposedRounding>,
    pub remark: Option<String>,
}

impl HierarchyProposal {
    /// Without rounding and remark.
    pub fn of(ladder: ProposedHierarchy) -> Self {
        Self { ladder, round: None, remark: None }
    }
}
