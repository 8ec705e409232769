//! The intent of a batch, as the state holds it under its seal. What is read is written and read again as the same; so is
//! the ledger's delta inside it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::daemon::state::records::Intent;
use throng::ledger::delta::LedgerDelta;
use throng_fuzz::survives;

fuzz_target!(|data: &[u8]| {
    let Some(intent) = survives::<Intent>(data) else { return };
    assert!(intent.references.is_empty() && intent.met.is_none(), "those are under keys of their own");
    if let Some(delta) = LedgerDelta::from_bytes(&intent.ledger) {
        assert_eq!(delta.to_bytes(), intent.ledger);
    }
});
