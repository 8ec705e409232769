//! Immutable plan of the treatment. Exactly one plan treats a batch.
//!
//! A plan contains only attribute positions and levels, no values of the data.

pub mod evidence;
pub mod plan_shared_attributes;

use crate::values::schema::ChangeFrequency;
use serde::{Deserialize, Serialize};

/// Node of a generalization lattice: one level per quasi-identifier of a group (0 = raw).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderNode {
    /// One level per quasi-identifier, in the order of the group.
    pub levels: Vec<u8>,
    /// Expected Loss (docs/internals/methods.md §9) of a record released at this node, in [0, 1].
    pub loss: f32,
}

/// Attributes of one group, without a ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupShape {
    /// Name in the configuration.
    pub name: String,
    /// Class attributes (positions in the schema, ascending).
    pub quasi: Vec<usize>,
    /// Attributes released with the class.
    pub sensitive: Vec<usize>,
    /// Attributes released unchanged.
    pub insensitive: Vec<usize>,
    /// Classes show their value ranges instead of ladder levels.
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

/// Attribute group: its attributes are released together in one fragment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanGroup {
    /// Name in the configuration and in the names of outputs.
    pub name: String,
    /// Quasi-identifiers; their joint tuple must have support (positions in the schema, ascending).
    pub quasi: Vec<usize>,
    /// Sensitive attributes, released with the class only where the value has support.
    pub sensitive: Vec<usize>,
    /// Attributes that the schema excludes from any treatment.
    pub insensitive: Vec<usize>,
    /// Nodes by rising loss. A record takes the first node at which its class has support.
    pub ladder: Vec<LadderNode>,
    /// Classes show ranges that are computed per batch; the ladder is then empty.
    pub ranges: bool,
}

impl PlanGroup {
    /// Returns all attributes of the group in the order of the schema, which is the order of the output.
    pub fn attributes(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.quasi.iter().chain(&self.sensitive).chain(&self.insensitive).copied().collect();
        all.sort_unstable();
        all
    }

    /// Returns the quasi-identifiers and sensitive attributes of the group that are not `attributes_in_several_groups`.
    pub fn unshared_attributes<'a>(&'a self, shared: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        self.quasi.iter().chain(&self.sensitive).copied().filter(|a| !shared.contains(a))
    }
}

/// Change frequency of an attribute within a subject, and the source of this knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttributeChangeRate {
    /// Position in the schema.
    pub attribute: usize,
    /// Change frequency within a subject.
    pub changes: ChangeFrequency,
    /// Set if the record schema declares the frequency; otherwise it was measured.
    pub declared: bool,
    /// Median over subjects of the share of consecutive records with different values; `None` if too few subjects
    /// have at least two records.
    pub share: Option<f32>,
}

/// Immutable, versioned plan for the treatment of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version; 1 is the plan made from the schema alone.
    pub version: u64,
    /// Attributes that were identified as identifiers in the data; always suppressed.
    pub identifiers: Vec<usize>,
    /// Attribute groups; an attribute in several groups is [shared](Plan::attributes_in_several_groups).
    pub groups: Vec<PlanGroup>,
    /// Number of rows from which the plan was made.
    pub rows: u64,
    /// Set if the rows are from `plan.prime` and not from the stream.
    pub primed: bool,
    /// Change frequencies of the quasi-identifiers and sensitive attributes; empty where they are not used.
    pub paces: Vec<AttributeChangeRate>,
}

impl Plan {
    /// Returns a plan that treats nothing yet. Its version 0 is never active.
    pub fn inactive(groups: Vec<PlanGroup>) -> Self {
        Self { version: 0, identifiers: Vec::new(), groups, rows: 0, primed: false, paces: Vec::new() }
    }

    /// Returns `true` if no attribute of the group changes within a subject; the group is then released once per
    /// window.
    ///
    /// Attributes without a known frequency count as unchanging. Identifiers and shared attributes are ignored.
    pub fn is_static(&self, group: &PlanGroup) -> bool {
        !self.paces.is_empty() && self.changing_attributes(group).is_empty()
    }

    /// Returns the attributes of a group that change within a subject from record to record.
    pub fn changing_attributes(&self, group: &PlanGroup) -> Vec<usize> {
        let shared = self.attributes_in_several_groups();
        let changes = |attribute: &usize| {
            let pace = self.paces.iter().find(|pace| pace.attribute == *attribute);
            pace.is_some_and(|pace| pace.changes == ChangeFrequency::Always) && !self.identifiers.contains(attribute)
        };
        group.unshared_attributes(&shared).filter(changes).collect()
    }
}
