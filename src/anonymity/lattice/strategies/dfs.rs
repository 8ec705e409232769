//! Every policy, nothing left out.

use crate::anonymity::lattice::policy::Policy;
use crate::anonymity::lattice::search::{BATCH, Search};

pub fn run(search: &mut Search<'_>) -> bool {
    let lattice = search.lattice.clone();
    let mut all = lattice.iter();
    loop {
        let batch: Vec<Policy> = all.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return true;
        }
        if search.over() {
            return false;
        }
        search.check(&batch);
    }
}
