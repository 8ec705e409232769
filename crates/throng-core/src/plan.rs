//! Immutable treatment plan of positions and levels, without data values.

pub mod evidence;
pub mod plan_shared_attributes;

use crate::values::schema::ChangeFrequency;
use serde::{Deserialize, Serialize};

/// Node of a generalization lattice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderNode {
    /// One level per quasi-identifier of the group; 0 is raw.
    pub levels: Vec<u8>,
    /// Expected Loss (docs/internals/methods.md §9) of a record at this node, in [0, 1].
    pub loss: f32,
}

/// Attributes of one group, without a ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupShape {
    /// Name in the configuration.
    pub name: String,
    /// Class attributes: schema positions, ascending.
    pub quasi: Vec<usize>,
    /// Attributes released with the class.
    pub sensitive: Vec<usize>,
    /// Attributes released unchanged.
    pub insensitive: Vec<usize>,
    /// Set if classes show ranges instead of ladder levels.
    pub ranges: bool,
}

impl GroupShape {
    /// Converts to a plan group with an empty ladder.
    pub fn without_ladder(&self) -> PlanGroup {
        PlanGroup {
            name: self.name.clone(),
            quasi: self.quasi.clone(),
            sensitive: self.sensitive.clone(),
            insensitive: self.insensitive.clone(),
            ladder: Vec::new(),
            ranges: self.ranges,
        }
    }
}

/// Attributes released together in one fragment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanGroup {
    /// Name in the configuration and of outputs.
    pub name: String,
    /// Quasi-identifiers: schema positions, ascending.
    pub quasi: Vec<usize>,
    /// Sensitive attributes, shown with support only.
    pub sensitive: Vec<usize>,
    /// Attributes without treatment.
    pub insensitive: Vec<usize>,
    /// Nodes by rising loss; records take the first with support.
    pub ladder: Vec<LadderNode>,
    /// Set if classes show ranges; the ladder is then empty.
    pub ranges: bool,
}

impl PlanGroup {
    /// All attributes in schema order, which is the output order.
    pub fn attributes(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.quasi.iter().chain(&self.sensitive).chain(&self.insensitive).copied().collect();
        all.sort_unstable();
        all
    }

    /// Quasi-identifiers and sensitive attributes outside `shared`.
    pub fn unshared_attributes<'a>(&'a self, shared: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        self.quasi.iter().chain(&self.sensitive).copied().filter(|a| !shared.contains(a))
    }
}

/// Change frequency of an attribute, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttributeChangeRate {
    /// Position in the schema.
    pub attribute: usize,
    /// Change frequency within a subject.
    pub changes: ChangeFrequency,
    /// Set if declared by the schema, otherwise measured.
    pub declared: bool,
    /// Median over subjects of the share of changes between consecutive records; `None` with too few subjects.
    pub share: Option<f32>,
}

/// Versioned plan for the treatment of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version; 1 is made from the schema alone.
    pub version: u64,
    /// Detected identifiers, always suppressed.
    pub identifiers: Vec<usize>,
    /// Groups; an attribute in several ones is [shared](Plan::attributes_in_several_groups).
    pub groups: Vec<PlanGroup>,
    /// Number of rows behind the plan.
    pub rows: u64,
    /// Set if the rows are from `plan.prime`.
    pub primed: bool,
    /// Change frequencies of quasi-identifiers and sensitive attributes; empty if unused.
    pub paces: Vec<AttributeChangeRate>,
}

impl Plan {
    /// Plan of version 0, which is never active.
    pub fn inactive(groups: Vec<PlanGroup>) -> Self {
        Self { version: 0, identifiers: Vec::new(), groups, rows: 0, primed: false, paces: Vec::new() }
    }

    /// Checks that no attribute of the group changes within a subject.
    ///
    /// Unknown frequencies count as unchanging. Identifiers and shared attributes are ignored.
    pub fn is_static(&self, group: &PlanGroup) -> bool {
        !self.paces.is_empty() && self.changing_attributes(group).is_empty()
    }

    /// Attributes that change between records of a subject.
    pub fn changing_attributes(&self, group: &PlanGroup) -> Vec<usize> {
        let shared = self.attributes_in_several_groups();
        let changes = |attribute: &usize| {
            let pace = self.paces.iter().find(|pace| pace.attribute == *attribute);
            pace.is_some_and(|pace| pace.changes == ChangeFrequency::Always) && !self.identifiers.contains(attribute)
        };
        group.unshared_attributes(&shared).filter(changes).collect()
    }
}
