//! `[output]`: what a released line looks like.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the attributes of a line stand in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputShape {
    /// Side by side, under their names.
    #[default]
    Flat,
    /// One inside another, where their pointers lead.
    Nested,
}

/// What a released line looks like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Output {
    /// `flat`: the attributes under their names, side by side. `nested`: where the pointers of the record schema lead, as the
    /// input was nested; an element of an exploded array is the one element of it. JSON lines and messages only, not for joined rows.
    #[schemars(example = OutputShape::Nested)]
    pub shape: OutputShape,
}
