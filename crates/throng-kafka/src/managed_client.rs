//! Registered clients, which receive new credentials. One lock covers registration and distribution: no client misses a
//! credential.

#![allow(unsafe_code, reason = "three librdkafka calls that its Rust client lacks, each with a safety comment")]

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

/// Token with its expiry.
#[derive(Clone)]
pub struct BearerToken {
    /// Text of the token.
    pub value: Zeroizing<String>,
    /// Principal, for the client's log lines.
    pub principal: String,
    /// Expiry, in milliseconds since 1970.
    pub expires_ms: i64,
    /// SASL extensions sent with the token.
    pub extensions: BTreeMap<String, String>,
}

/// Returns the group member id; empty for a consumer that is no member.
pub(super) fn member_id<C: ConsumerContext>(consumer: &BaseConsumer<C>) -> String {
    let client = consumer.client().native_ptr();
    // SAFETY: the client outlives the borrow; the text is copied and freed.
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

/// Credential of a client.
#[derive(Clone)]
pub enum ClientCredential {
    /// User name and password of PLAIN and SCRAM.
    Password(String, Zeroizing<String>),
    /// Token of OAUTHBEARER.
    Token(BearerToken),
}

/// Client that accepts a new credential.
pub trait CredentialReceiver: Send + Sync {
    /// Stores `key` for the next authentication; false if rejected.
    fn take(&self, key: &ClientCredential) -> bool;
}

fn set_credential<C: ClientContext>(client: &Client<C>, key: &ClientCredential) -> bool {
    match key {
        ClientCredential::Password(user, password) => {
            let (Ok(user), Ok(password)) = (CString::new(user.as_str()), CString::new(password.as_str())) else {
                return false;
            };
            // SAFETY: the client outlives the borrow; both texts are copied. A returned error is destroyed here.
            unsafe {
                let error =
                    bindings::rd_kafka_sasl_set_credentials(client.native_ptr(), user.as_ptr(), password.as_ptr());
                if !error.is_null() {
                    bindings::rd_kafka_error_destroy(error);
                }
                error.is_null()
            }
        }
        ClientCredential::Token(BearerToken { value, principal, expires_ms, extensions }) => {
            let texts = [value.as_str(), principal.as_str()].map(CString::new);
            let [Ok(value), Ok(principal)] = texts else { return false };
            let pairs = extensions.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
            let Ok(pairs) = pairs.map(CString::new).collect::<Result<Vec<CString>, _>>() else { return false };
            let mut pairs: Vec<*const std::ffi::c_char> = pairs.iter().map(|text| text.as_ptr()).collect();
            // No buffer: the error text may quote the token.
            let mut words = [0; 1];
            // SAFETY: as above; all texts outlive the call, and the length is the list's.
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

impl<C: ConsumerContext> CredentialReceiver for BaseConsumer<C> {
    fn take(&self, key: &ClientCredential) -> bool {
        set_credential(self.client(), key)
    }
}

impl<C: ProducerContext + 'static> CredentialReceiver for BaseProducer<C> {
    fn take(&self, key: &ClientCredential) -> bool {
        set_credential(self.client(), key)
    }
}

impl<C: ClientContext> CredentialReceiver for AdminClient<C> {
    fn take(&self, key: &ClientCredential) -> bool {
        set_credential(self.inner(), key)
    }
}

/// Clients of one cluster.
#[derive(Default)]
pub struct CredentialDistributor(Mutex<ClientList>);

#[derive(Default)]
struct ClientList {
    key: Option<ClientCredential>,
    next: u64,
    alive: BTreeMap<u64, Weak<dyn CredentialReceiver>>,
}

impl CredentialDistributor {
    fn lock_list(&self) -> std::sync::MutexGuard<'_, ClientList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client, which receives current and later credentials.
    pub fn register_client<T: CredentialReceiver + 'static>(self: &Arc<Self>, client: T) -> ManagedClient<T> {
        let client = Arc::new(client);
        let mut known = self.lock_list();
        if known.key.as_ref().is_some_and(|key| !client.take(key)) {
            // Probably expired: the next one is being requested.
            tracing::debug!("a new Kafka client rejected the current credential");
        }
        let place = known.next;
        known.next += 1;
        let weak: Weak<dyn CredentialReceiver> = Arc::downgrade(&client) as Weak<dyn CredentialReceiver>;
        known.alive.insert(place, weak);
        drop(known);
        ManagedClient { client, registration_id: place, clients: Arc::clone(self) }
    }

    /// Passes `key` to all clients; false if one rejects it.
    pub fn distribute_credential(&self, key: ClientCredential) -> bool {
        let mut known = self.lock_list();
        let taken =
            known.alive.values().filter_map(Weak::upgrade).map(|client| client.take(&key)).fold(true, |a, b| a & b);
        known.key = Some(key);
        taken
    }
}

/// Registered client.
pub struct ManagedClient<T> {
    client: Arc<T>,
    registration_id: u64,
    clients: Arc<CredentialDistributor>,
}

impl<T> Deref for ManagedClient<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.client
    }
}

impl<T> Drop for ManagedClient<T> {
    fn drop(&mut self) {
        // Its owner destroys the client.
        self.clients.lock_list().alive.remove(&self.registration_id);
    }
}
