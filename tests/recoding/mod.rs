//! `throng anonymize` with local recoding, microaggregation and population models. The output is read back and
//! checked against the definitions.

mod cases;
mod output;
mod scenarios;
mod verdict;
