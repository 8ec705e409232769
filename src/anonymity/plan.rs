//! A plan: everything the treatment needs to know about the stream, as an immutable value.
//!
//! A batch is treated by exactly one plan. A plan holds no values of the data: attribute positions and levels only.

pub mod evidence;
pub mod shared;

use serde::{Deserialize, Serialize};
use throng_core::values::schema::Changes;

/// One node of a generalization lattice: a level for each quasi attribute of a group (0 = raw).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// A level for each quasi attribute, in the order of the group.
    pub levels: Vec<u8>,
    /// Expected Loss (docs/methods.md §9) of a record released at this node, in [0, 1].
    pub loss: f32,
}

/// The attributes that leave together in one fragment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its name in the configuration, and in the names of outputs.
    pub name: String,
    /// Attributes whose joint tuple must have support (positions in the schema, ascending).
    pub quasi: Vec<usize>,
    /// Attributes that leave beside the class, each where its own value has support.
    pub sensitive: Vec<usize>,
    /// Attributes that the schema opts out of any treatment.
    pub insensitive: Vec<usize>,
    /// Nodes by rising loss. A record takes the first at which its class has support.
    pub ladder: Vec<Node>,
    /// Classes show their own ranges; the ladder is empty then.
    pub ranges: bool,
}

impl Group {
    /// All attributes of the group in the order in which they leave: the schema's.
    pub fn attributes(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.quasi.iter().chain(&self.sensitive).chain(&self.insensitive).copied().collect();
        all.sort_unstable();
        all
    }

    /// The attributes that a fragment of the group has to say: those of the class and beside it that are not `shared`.
    pub fn own<'a>(&'a self, shared: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        self.quasi.iter().chain(&self.sensitive).copied().filter(|a| !shared.contains(a))
    }
}

/// How often an attribute changes within a subject, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Position in the schema.
    pub attribute: usize,
    /// How often it changes within a person.
    pub changes: Changes,
    /// The record schema says so; otherwise it was measured.
    pub declared: bool,
    /// Share of consecutive records of a subject between which the value differs: the median over people with two records
    /// or more, where enough of them were seen.
    pub share: Option<f32>,
}

/// An immutable, versioned treatment of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// 1 is the plan made from the schema alone.
    pub version: u64,
    /// Attributes found to be identifiers in the data: always suppressed.
    pub identifiers: Vec<usize>,
    /// What leaves together; an attribute that is in several groups is [shared](Plan::shared).
    pub groups: Vec<Group>,
    /// Rows that the plan was made from.
    pub rows: u64,
    /// These are of `plan.prime` and not of the stream.
    pub primed: bool,
    /// How often the attributes change that classes and sensitive values are made of; empty where that is of no account.
    pub paces: Vec<Pace>,
}

impl Plan {
    /// A plan that treats nothing yet: version 0 is in force nowhere.
    pub fn blank(groups: Vec<Group>) -> Self {
        Self { version: 0, identifiers: Vec::new(), groups, rows: 0, primed: false, paces: Vec::new() }
    }

    /// Whether nothing that a group says of a person changes: then it is said once a window. An attribute of which
    /// nothing is known does not change; identifiers are never said, and shared attributes are for the others to say.
    pub fn is_static(&self, group: &Group) -> bool {
        !self.paces.is_empty() && self.changing(group).is_empty()
    }

    /// The attributes of a group that change within a person from record to record.
    pub fn changing(&self, group: &Group) -> Vec<usize> {
        let shared = self.shared();
        let changes = |attribute: &usize| {
            let pace = self.paces.iter().find(|pace| pace.attribute == *attribute);
            pace.is_some_and(|pace| pace.changes == Changes::Always) && !self.identifiers.contains(attribute)
        };
        group.own(&shared).filter(changes).collect()
    }
}
