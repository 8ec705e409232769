//! The client of a bucket, set up by the environment.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::list::PaginatedListStore;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use tokio_rustls::rustls::crypto::ring;

use super::error::{Fault, StoreError};
use super::url::{Kind, StoreUrl};

/// A client that lists page by page.
pub(super) trait Store: ObjectStore + PaginatedListStore {}

impl<T: ObjectStore + PaginatedListStore> Store for T {}

/// What is asked in vain is asked again for at most 40 s from the first time on, after pauses that grow to 5 s.
const RETRIES: usize = 8;
const PATIENCE: Duration = Duration::from_secs(40);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The client of the bucket. Address, region and credentials are those of the environment; nothing of them is in the URL.
///
/// # Errors
/// When the environment does not make one.
pub(super) fn open(url: &StoreUrl) -> Result<Arc<dyn Store>, StoreError> {
    // Refused where somebody else has chosen before, who was content with less.
    let (Ok(()) | Err(_)) = ring::default_provider().install_default();
    let backoff = BackoffConfig { init_backoff: FIRST_PAUSE, max_backoff: LONGEST_PAUSE, base: 2.0 };
    let retry = RetryConfig { backoff, max_retries: RETRIES, retry_timeout: PATIENCE };
    let bucket = url.bucket.as_str();
    let client: Result<Arc<dyn Store>, object_store::Error> = match url.kind {
        Kind::S3 if is_plain() => return Err(Fault::PlainHttp.of(&url.text)),
        Kind::S3 => {
            let builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
            builder.build().map(|client| Arc::new(client) as Arc<dyn Store>)
        }
        Kind::Google => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).with_retry(retry);
            builder.build().map(|client| Arc::new(client) as Arc<dyn Store>)
        }
        Kind::Azure => {
            let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket).with_retry(retry);
            builder.build().map(|client| Arc::new(client) as Arc<dyn Store>)
        }
    };
    // Its own text may quote a variable.
    client.map_err(|_| Fault::Settings.of(&url.text))
}

/// Whether the endpoint is spoken to in the clear, and nobody has allowed that: the client would fail at the first request.
fn is_plain() -> bool {
    let set = |name: &str| std::env::var(name).ok();
    let endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"].into_iter().find_map(set);
    let is_allowed = set("AWS_ALLOW_HTTP")
        .is_some_and(|said| matches!(said.to_ascii_lowercase().as_str(), "true" | "1" | "yes" | "on" | "y"));
    endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) && !is_allowed
}
