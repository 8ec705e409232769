//! The stores of a process: their clients, and what has been seen of objects.
//!
//! The first look binds: an object that is another one at a later look, or when it is read, is refused. A process that reads a data set
//! therefore reads one state of each object, however often it is asked for it.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::client::{Store, open};
use super::error::{Fault, StoreError};
use super::listing;
use super::seen::{Found, Seen};
use super::url::{Kind, StoreUrl};

/// Requests of one process at a time.
const AT_ONCE: usize = 16;
/// Threads that wait for stores.
const THREADS: usize = 2;

/// Clients by store and bucket, and what they have seen.
pub(super) struct Stores {
    runtime: Runtime,
    /// Who may ask.
    pub turns: Arc<Semaphore>,
    clients: Mutex<BTreeMap<(Kind, String), Arc<dyn Store>>>,
    /// What each URL was found to name, also in vain: a store that does not answer is not waited for twice.
    found: Mutex<BTreeMap<String, Result<Found, StoreError>>>,
    /// Each object as it was first seen, and as it was last.
    seen: Mutex<BTreeMap<String, (Seen, Seen)>>,
}

fn of<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic has left is whole: each of these is changed by one call.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stores of this process.
///
/// # Errors
/// When it can have no threads.
pub(super) fn stores(url: &StoreUrl) -> Result<&'static Stores, StoreError> {
    static STORES: OnceLock<Option<Stores>> = OnceLock::new();
    STORES.get_or_init(Stores::new).as_ref().ok_or_else(|| Fault::Settings.of(&url.text))
}

impl Stores {
    fn new() -> Option<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(THREADS).thread_name("object store").enable_all().build();
        Some(Self {
            runtime: runtime.ok()?,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            clients: Mutex::default(),
            found: Mutex::default(),
            seen: Mutex::default(),
        })
    }

    /// The client of a bucket.
    ///
    /// # Errors
    /// When the settings in the environment make none.
    pub fn client(&self, url: &StoreUrl) -> Result<Arc<dyn Store>, StoreError> {
        let mut clients = of(&self.clients);
        let place = (url.kind, url.bucket.clone());
        if let Some(client) = clients.get(&place) {
            return Ok(Arc::clone(client));
        }
        let client = open(url)?;
        clients.insert(place, Arc::clone(&client));
        Ok(client)
    }

    /// Waits for an answer. Not to be called by what is waited for.
    pub fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }

    /// Asks without waiting.
    pub fn begin<T: Send + 'static>(&self, answer: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.runtime.spawn(answer)
    }

    /// The object as it was first seen, which it must still be; asked for where nobody has seen it yet.
    ///
    /// # Errors
    /// When it is no object, or is not to be seen.
    pub fn first_seen(&self, url: &StoreUrl) -> Result<Seen, StoreError> {
        let known = of(&self.seen).get(&url.text).map(|(first, _)| first.clone());
        if let Some(first) = known {
            return Ok(first);
        }
        match self.look(url)? {
            Found::One(seen) => Ok(seen),
            Found::Folder(_) | Found::Matching(_) => Err(Fault::Missing.of(&url.text)),
        }
    }

    fn look(&self, url: &StoreUrl) -> Result<Found, StoreError> {
        if let Some(found) = of(&self.found).get(&url.text) {
            return found.clone();
        }
        let found = self.client(url).and_then(|client| self.wait(listing::look(&*client, url)));
        if let Ok(Found::One(seen)) = &found {
            self.remember(std::slice::from_ref(seen));
        } else if let Ok(Found::Folder(all) | Found::Matching(all)) = &found {
            self.remember(all);
        }
        of(&self.found).insert(url.text.clone(), found.clone());
        found
    }

    fn remember(&self, all: &[Seen]) {
        let mut seen = of(&self.seen);
        for one in all {
            let known = seen.entry(one.url.clone()).or_insert_with(|| (one.clone(), one.clone()));
            known.1 = one.clone();
        }
    }
}

/// Whether objects can be read.
#[must_use]
pub fn is_built() -> bool {
    true
}

/// What a URL names, as it was when it was first asked for.
///
/// # Errors
/// When its store cannot be asked, when there is nothing, and when it names too much.
pub fn look(path: &Path) -> Result<Found, StoreError> {
    let url = StoreUrl::parse(path)?;
    stores(&url)?.look(&url)
}

/// What a URL names now.
///
/// # Errors
/// As [`look`].
pub fn look_anew(path: &Path) -> Result<Found, StoreError> {
    let url = StoreUrl::parse(path)?;
    let stores = stores(&url)?;
    of(&stores.found).remove(&url.text);
    stores.look(&url)
}

/// An object as it was when it was last looked at; none where nobody has.
#[must_use]
pub fn state_of(path: &Path) -> Option<Seen> {
    let url = StoreUrl::parse(path).ok()?;
    of(&stores(&url).ok()?.seen).get(&url.text).map(|(_, last)| last.clone())
}
