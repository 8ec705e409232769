//! The strategies: one order each.

pub mod bfs;
pub mod dfs;
pub mod flash;
pub mod incognito;
pub mod ola;
