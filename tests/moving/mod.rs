//! Static and moving attributes: what does not change within a person is said once a window, after a delay of its own;
//! what changes is said of one person at most so often in a batch. Attacks that join fragments by repetition, with and
//! without these limits (`attacks`), and random streams with every fault (`streams`).

mod attacks;
mod streams;
