//! Full-domain generalization and record suppression: the search for the policy of least cost (docs/methods.md §7).
//!
//! | file | idea |
//! |---|---|
//! | [`policy`] | a level for each attribute, and the lattice of all of them |
//! | [`antichain`] | what is known of many policies, kept in few |
//! | [`table`], `grouping`, `anchors` | rows of codes, and how they become classes fast |
//! | [`packing`] | a table of records that come in parts |
//! | [`coding`] | from codebooks to domains and columns |
//! | `bench` | the members of classes, brought together |
//! | [`check`] | one policy: what it suppresses, what it costs |
//! | [`settle`] | one policy: what becomes of every row |
//! | [`soundness`] | which conclusion from one policy to others holds for which models, limits and measures |
//! | [`search`] and the files named after a strategy | the way through the lattice |
//! | [`until`] | when a search ends before it is through |
//! | [`passes`] | local recoding: the search once more for what it left |
//! | [`nearest`] | where no policy is admissible: the one that lacks least |

mod anchors;
pub mod antichain;
mod bench;
pub mod check;
pub mod coding;
mod grouping;
pub mod nearest;
pub mod packing;
pub mod passes;
pub mod policy;
pub mod search;
pub mod settle;
pub mod soundness;
mod strategies;
pub mod table;
pub mod until;
