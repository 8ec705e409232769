//! What a release is worth and what it gives away, measured from outside: from the records before, the lines after, and the
//! custodian's lineage. Nothing here takes part in a release.
//!
//! | room | what it holds |
//! |---|---|
//! | [`original`], [`released`], [`lineage`] | what is read; `joined` takes rows of all groups apart |
//! | [`facts`] | what a cell stands for |
//! | [`quality`], [`information`], [`queries`] | what it is worth |
//! | [`learning`] | what a model learns from it |
//! | [`series`] | released series beside the original: contributions, cohorts, usefulness |
//! | [`risk`], [`singled`] | how far lines stand out; which combinations of attributes single people out |
//! | [`attack`] | what outsiders try |
//! | [`verification`] | whether a release keeps its promises, by its bytes |
//! | [`error`] | why nothing can be said |

pub mod attack;
pub mod error;
pub mod facts;
pub mod information;
mod joined;
pub mod learning;
pub mod lineage;
mod nested;
pub mod original;
pub mod quality;
pub mod queries;
pub mod released;
pub mod risk;
pub mod series;
pub mod singled;
pub mod verification;
