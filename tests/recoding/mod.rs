//! `throng anonymize` with records at several levels, aggregates in the place of numbers, and models of a population:
//! whatever it writes is read back and judged by definition.

mod cases;
mod output;
mod scenarios;
mod verdict;
