//! Re-identification risk: group counting, the minimal quasi-identifiers (Find-QID), the Bayesian adjacency model, identifiers and exposure.
//!
//! | module | contents |
//! |---|---|
//! | [`adjacency`] | the Bayesian model of the stream: counts of values and pairs, cycle inference, triage |
//! | [`audit`] | the whole account of one table: identifiers, quasi-identifiers, exposure |
//! | [`counting`] | group counting, on a CPU or a GPU |
//! | [`exposure`] | how exposed records and people are: crowds, risk, which attributes weigh most |
//! | [`identifiers`] | columns that identify by themselves |
//! | [`inferences`] | which value gives which other one away, and to how many |
//! | [`linking`] | which records can be tied to people of whom something is known |
//! | [`multigrid`] | aggregation of attributes and values that go together: fewer columns, nodes and edges, the same answers |
//! | [`qid`] | Find-QID: the minimal quasi-identifiers and the maximal sets that are none |

pub mod adjacency;
pub mod audit;
pub mod counting;
pub mod exposure;
pub mod identifiers;
pub mod inferences;
pub mod linking;
pub mod multigrid;
pub mod qid;
