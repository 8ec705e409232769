//! Clients that are alive, and get another password or another token while they are.
//!
//! What is new is handed to all of them under one lock, under which each is let in and let go: nobody misses it, and a client is
//! never destroyed by whoever hands it out.

#![allow(unsafe_code, reason = "three calls of librdkafka that its Rust client does not have, each with its reason")]

use rdkafka::admin::AdminClient;
use rdkafka::bindings;
use rdkafka::client::{Client, ClientContext};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::producer::{BaseProducer, Producer, ProducerContext};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use zeroize::Zeroizing;

/// A token, and how long it is good for.
#[derive(Clone)]
pub struct Token {
    /// What is shown to a broker.
    pub value: Zeroizing<String>,
    /// Whom it is of, for the client's own lines.
    pub principal: String,
    /// When it ends, in milliseconds since 1970.
    pub expires_ms: i64,
    /// What goes along with it.
    pub extensions: BTreeMap<String, String>,
}

/// Id of a consumer as a member of its group, as the group's coordinator has given it; empty while it is no member.
pub(super) fn member_id<C: ConsumerContext>(consumer: &BaseConsumer<C>) -> String {
    let client = consumer.client().native_ptr();
    // SAFETY: the client lives as long as the borrow. The text is ours to free, and nothing of it is kept.
    unsafe {
        let text = bindings::rd_kafka_memberid(client);
        if text.is_null() {
            return String::new();
        }
        let id = CStr::from_ptr(text).to_string_lossy().into_owned();
        bindings::rd_kafka_mem_free(client, text.cast());
        id
    }
}

/// What opens the door for a client.
#[derive(Clone)]
pub enum Key {
    /// User and password of PLAIN and SCRAM.
    Password(String, Zeroizing<String>),
    /// A token of OAUTHBEARER.
    Token(Token),
}

/// A client that takes a key.
pub trait Keyed: Send + Sync {
    /// Takes `key` for the next time that it has to say who it is. False where it does not: it was made for another mechanism, or
    /// the key has ended or is none.
    fn take(&self, key: &Key) -> bool;
}

fn give<C: ClientContext>(client: &Client<C>, key: &Key) -> bool {
    match key {
        Key::Password(user, password) => {
            let (Ok(user), Ok(password)) = (CString::new(user.as_str()), CString::new(password.as_str())) else {
                return false;
            };
            // SAFETY: the client lives as long as the borrow, and librdkafka copies both texts. An error is ours to destroy.
            unsafe {
                let error =
                    bindings::rd_kafka_sasl_set_credentials(client.native_ptr(), user.as_ptr(), password.as_ptr());
                if !error.is_null() {
                    bindings::rd_kafka_error_destroy(error);
                }
                error.is_null()
            }
        }
        Key::Token(Token { value, principal, expires_ms, extensions }) => {
            let texts = [value.as_str(), principal.as_str()].map(CString::new);
            let [Ok(value), Ok(principal)] = texts else { return false };
            let pairs = extensions.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
            let Ok(pairs) = pairs.map(CString::new).collect::<Result<Vec<CString>, _>>() else { return false };
            let mut pairs: Vec<*const std::ffi::c_char> = pairs.iter().map(|text| text.as_ptr()).collect();
            // The client's words may quote the token: there is no room for them.
            let mut words = [0; 1];
            // SAFETY: as above; all texts outlive the call, and the length is that of the list.
            let code = unsafe {
                bindings::rd_kafka_oauthbearer_set_token(
                    client.native_ptr(),
                    value.as_ptr(),
                    *expires_ms,
                    principal.as_ptr(),
                    pairs.as_mut_ptr(),
                    pairs.len(),
                    words.as_mut_ptr(),
                    words.len(),
                )
            };
            code == bindings::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR
        }
    }
}

impl<C: ConsumerContext> Keyed for BaseConsumer<C> {
    fn take(&self, key: &Key) -> bool {
        give(self.client(), key)
    }
}

impl<C: ProducerContext + 'static> Keyed for BaseProducer<C> {
    fn take(&self, key: &Key) -> bool {
        give(self.client(), key)
    }
}

impl<C: ClientContext> Keyed for AdminClient<C> {
    fn take(&self, key: &Key) -> bool {
        give(self.inner(), key)
    }
}

/// The clients of one cluster.
#[derive(Default)]
pub struct Clients(Mutex<Known>);

#[derive(Default)]
struct Known {
    key: Option<Key>,
    next: u64,
    alive: BTreeMap<u64, Weak<dyn Keyed>>,
}

impl Clients {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a client in: it has the key that there is now, and gets those to come.
    pub fn admit<T: Keyed + 'static>(self: &Arc<Self>, client: T) -> Live<T> {
        let client = Arc::new(client);
        let mut known = self.known();
        if known.key.as_ref().is_some_and(|key| !client.take(key)) {
            // It has ended, most likely; the next one is on its way, and the client waits for it.
            tracing::debug!("a new client does not take what it is given");
        }
        let place = known.next;
        known.next += 1;
        let weak: Weak<dyn Keyed> = Arc::downgrade(&client) as Weak<dyn Keyed>;
        known.alive.insert(place, weak);
        drop(known);
        Live { client, place, clients: Arc::clone(self) }
    }

    /// Hands `key` to all of them, and to those to come. False where one of them does not take it.
    pub fn hand_out(&self, key: Key) -> bool {
        let mut known = self.known();
        let taken =
            known.alive.values().filter_map(Weak::upgrade).map(|client| client.take(&key)).fold(true, |a, b| a & b);
        known.key = Some(key);
        taken
    }
}

/// A client that is alive.
pub struct Live<T> {
    client: Arc<T>,
    place: u64,
    clients: Arc<Clients>,
}

impl<T> Deref for Live<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.client
    }
}

impl<T> Drop for Live<T> {
    fn drop(&mut self) {
        // Nobody else holds it once it is out of the list; it is destroyed behind this, by whoever had it.
        self.clients.known().alive.remove(&self.place);
    }
}
