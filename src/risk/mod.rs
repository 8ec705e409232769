//! Risk: which attributes and which combinations of them single people out.
//!
//! | room | what it holds |
//! |---|---|
//! | [`audit`] | the whole account of one table: identifiers, quasi-identifiers, exposure |
//! | [`compute`] | counting equivalence classes of many attribute sets over a dictionary-encoded table |
//! | [`device_check`] | whether a GPU counts as the CPU does, and how fast |
//! | [`exposure`] | how exposed records and people are: crowds, risk, which attributes weigh most |
//! | [`identifiers`] | columns that identify by themselves |
//! | [`qid`] | Find-QID: the minimal quasi-identifiers and the maximal sets that are none |

pub mod audit;
pub mod compute;
pub mod device_check;
pub mod exposure;
pub mod identifiers;
pub mod qid;
