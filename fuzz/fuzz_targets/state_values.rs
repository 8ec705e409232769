//! Reads other values of the state, selected by the first byte. Each is unchanged after writing and reading; unsealed
//! bytes do not open.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::daemon::state::records::{StoredRow, StreamProgress};
use throng::daemon::state::rows::{RowBlock, RowPacker};
use throng::daemon::state::state_keys::StateKeys;
use throng::planner::closeness_counts::ReferenceCounts;
use throng::planner::drift::DriftBaseline;
use throng::start::run_findings::RunStatistics;
use throng_core::plan::Plan;
use throng_core::plan::evidence::PlanEvidence;
use throng_fuzz::{RECORD, codebooks, survives};

const REMEMBERED: [usize; 3] = [0, 1, 7];

fn rows(data: &[u8]) {
    let Some(block) = survives::<RowBlock>(data) else { return };
    let mut books = codebooks(&RECORD);
    let Some(batch) = block.unpack(&REMEMBERED, &mut books) else { return };
    assert!(batch.columns.iter().all(|column| column.len() == batch.rows()));
    let mut fresh = codebooks(&RECORD);
    let packed = RowPacker::default().pack(&batch, 1, &REMEMBERED, &books);
    let again = packed.unpack(&REMEMBERED, &mut fresh).expect("what was packed");
    assert_eq!(again.subjects, batch.subjects);
    for attribute in REMEMBERED {
        for (one, other) in batch.columns[attribute].iter().zip(&again.columns[attribute]) {
            assert_eq!(books[attribute].canonical(*one), fresh[attribute].canonical(*other));
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    match kind % 10 {
        0 => drop(survives::<StreamProgress>(data)),
        1 => drop(survives::<Vec<StoredRow>>(data)),
        2 => drop(survives::<Plan>(data)),
        3 => drop(survives::<DriftBaseline>(data)),
        4 => drop(survives::<PlanEvidence>(data)),
        5 => drop(survives::<Vec<ReferenceCounts>>(data)),
        6 => drop(survives::<(u64, RunStatistics)>(data)),
        7 => drop(survives::<(u64, Vec<u8>)>(data)),
        8 => assert!(StateKeys::derive(b"a secret of the fuzzer").sealer().open(b"progress", data).is_none()),
        _ => rows(data),
    }
});
