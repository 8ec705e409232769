//! `throng anonymize` with local recoding, microaggregation and population models, checked against the definitions.

mod cases;
mod output;
mod scenarios;
mod verdict;
