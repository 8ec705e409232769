//! An engine that takes over from another one between two batches, under another policy.
//!
//! What is remembered is written down first, and the successor reads it as a start does: whatever a start with this state and this
//! configuration may do, and nothing else, happens from the next batch on. Until it stands, the one before goes on unchanged.

use super::assemble::{AssemblyError, Opened, bind, build, ledger};
use super::audit::Auditor;
use super::fields::Engine;
use crate::records::digest::DigestKey;
use crate::start::checked::Checked;
use crate::telemetry::PolicyInForce;
use std::sync::Arc;

impl Engine {
    /// The engine of `checked`, which goes on where this one stands; this one must not be used any more. To be called between two
    /// batches, none of which is to be repeated.
    ///
    /// # Errors
    /// When nothing can be made of the state: this engine can go on then. Where the state itself has failed, the
    /// next write of either says so and ends the run.
    pub fn successor(&mut self, mut checked: Checked) -> Result<Self, AssemblyError> {
        self.flush()?;
        // What leaves has the same schemas (start/replaceable.rs): they are registered already.
        checked.registered = self.settings.format.registered();
        let mut ledger = ledger(&checked);
        let config = Arc::clone(&checked.config);
        let secret = config.secret.as_ref().map(crate::config::Secret::expose);
        let (mut store, keys, mut recovered) = self.durable.store.again(secret, &mut ledger)?;
        ledger.key_said(&DigestKey(keys.repetition));
        bind(&mut store, &checked, false)?;
        if let Some(given_up) = recovered.intent.take() {
            // Its partitions have gone meanwhile, or it would be repeated before anything else happens.
            recovered.rows.retain(|(sequence, _)| *sequence != given_up.after.sequence);
            store.settle_recovered(given_up, false, &mut ledger)?;
        }
        let digest = checked.policy;
        let auditor = Auditor::new(&config, &digest, store.id());
        let opened = Opened { ledger, store, keys, untruthful: self.untruthful.clone(), auditor };
        let mut next = build(checked, &self.telemetry, self.settings.accept_rewind, opened, recovered.into())?;
        let store = &mut next.durable.store;
        store.note_succession(digest.bytes())?;
        // Batches that were encoded ahead are of dictionaries that go now.
        next.coding.numbering = self.coding.numbering + 1;
        next.joins = std::mem::take(&mut self.joins);
        next.origin = Arc::clone(&self.origin);
        PolicyInForce { digest: &digest.short(), k: config.privacy.k }.emit(&self.telemetry);
        Ok(next)
    }
}
