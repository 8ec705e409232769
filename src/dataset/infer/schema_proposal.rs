//! Types of a schema proposal before it is written as text.

use throng_core::values::moment::CalendarUnit;
use throng_core::values::schema::{AttributeOrigin, AttributePlace, AttributeType, ChangeFrequency, Role};

/// Proposed attribute.
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

/// Proposed schema.
pub(super) struct SchemaProposal {
    pub name: String,
    pub head: Vec<String>,
    pub attributes: Vec<ProposedAttribute>,
}

/// Type and spelling of a column's cells.
#[derive(Clone, Debug)]
pub(super) struct ColumnReading {
    pub kind: AttributeType,
    /// Spellings of a missing value. The key is written if the list is not empty.
    pub missing: Vec<String>,
    pub dates: DateSpelling,
    /// Numbers have a decimal comma.
    pub decimal_comma: bool,
    /// Points are read as decimal points, but may separate thousands.
    pub points_may_group: bool,
    /// Cells that are neither missing nor of the type.
    pub misfits: u64,
    /// Question for the operator.
    pub operator_question: Option<String>,
}

impl ColumnReading {
    /// Creates a reading as texts, with these missing spellings.
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

/// Spelling of dates and times.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DateSpelling {
    Iso,
    Formats(Vec<&'static str>),
    Epoch(&'static str),
}

impl DateSpelling {
    /// Returns true if years have two digits.
    pub fn has_short_years(&self) -> bool {
        matches!(self, Self::Formats(formats) if formats.iter().any(|format| format.contains("%y")))
    }
}

/// Hierarchy in the form of the schema.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ProposedHierarchy {
    /// The value, then `*`.
    Flat,
    /// One row per label, from the label to its coarsest group.
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
    /// Units, and the first day of the first year with the end of the last one.
    Calendar {
        levels: Vec<CalendarUnit>,
        domain: Option<(String, String)>,
    },
    Grid(Vec<f64>),
}

impl ProposedHierarchy {
    /// Returns true if the hierarchy may not cover every value.
    pub fn may_miss_values(&self) -> bool {
        match self {
            Self::Tree(_) | Self::Widths { .. } | Self::Bounds { .. } => true,
            Self::Calendar { domain, .. } => domain.is_some(),
            Self::Flat | Self::Prefix(_) | Self::Grid(_) => false,
        }
    }
}

/// Rounding of values before they are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ProposedRounding {
    Step(f64),
    Unit(CalendarUnit),
}

/// Hierarchy, rounding before it, and a remark on both.
pub(super) struct HierarchyProposal {
    pub ladder: ProposedHierarchy,
    pub round: Option<ProposedRounding>,
    pub remark: Option<String>,
}

impl HierarchyProposal {
    /// Creates a hierarchy without rounding and remark.
    pub fn of(ladder: ProposedHierarchy) -> Self {
        Self { ladder, round: None, remark: None }
    }
}
