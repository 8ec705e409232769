//! What can go wrong with an object. No message repeats what a store has answered: answers quote keys, tokens and requests.

/// An object that cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{url} {fault}")]
pub struct StoreError {
    /// The object, folder or pattern, without user and query.
    pub url: String,
    /// What is wrong, and the remedy.
    pub fault: Fault,
}

/// What is wrong with an object or its store; the rest of a sentence that begins with its URL.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error(
        "lies in an object store, and this build has no object stores: build with --features object-store, or copy or mount the files"
    )]
    NotBuilt,
    #[error(
        "names no object store that can be read: give s3://, gs:// or az:// and a bucket, or copy or mount the files"
    )]
    Scheme,
    #[error(
        "has a user or a password before its @, which is not shown: take it out; credentials come from the environment \
         (AWS_ACCESS_KEY_ID and so on)"
    )]
    UserInfo,
    #[error(
        "has a query behind its ?, which is not shown: name the object by its key alone; credentials come from the environment"
    )]
    Query,
    #[error(
        "names no bucket: write s3://bucket/key, the address of the store to AWS_ENDPOINT_URL, and patterns in the key only"
    )]
    NoBucket,
    #[error(
        "has an empty part, a . or a .. between the / of its key, or a control character: such objects are not read; copy it"
    )]
    Key,
    #[error("is read by throng audit only: copy or mount it")]
    AuditOnly,
    #[error("has an endpoint that speaks http, unencrypted: give one with https, or allow it (AWS_ALLOW_HTTP=true)")]
    PlainHttp,
    #[error(
        "cannot be asked for: the settings of its store in the environment are not complete or not readable; check AWS_REGION, AWS_ENDPOINT_URL and the other variables of the store"
    )]
    Settings,
    #[error("is not there: check the bucket and the key")]
    Missing,
    #[error(
        "is in a bucket that is not there: check its name and the address of the store (AWS_ENDPOINT_URL, AWS_REGION)"
    )]
    NoSuchBucket,
    #[error(
        "is not to be read with these credentials: let whoever keeps the bucket allow reading and listing (s3:GetObject, s3:ListBucket)"
    )]
    Denied,
    #[error("was asked for with a token that has expired: get new credentials (AWS_SESSION_TOKEN)")]
    Expired,
    #[error(
        "was asked for with credentials that the store does not know: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
    )]
    Unknown,
    #[error(
        "was not asked for, for want of credentials: none are in the environment (AWS_ACCESS_KEY_ID, …), and this machine has no role; set \
         AWS_SKIP_SIGNATURE=true for a public bucket"
    )]
    NoCredentials,
    #[error("was refused because the clock of this machine is wrong: set it")]
    Clock,
    #[error("is in another region: set AWS_REGION to that of the bucket")]
    Region,
    #[error("is in a store that cannot be reached: check its address (AWS_ENDPOINT_URL) and the network")]
    Unreachable,
    #[error(
        "is in a store that does not answer in time: try again later, or allow more time for a request (AWS_TIMEOUT=120s)"
    )]
    Slow,
    #[error(
        "is in a store whose certificate is not trusted: name its authority (SSL_CERT_FILE), or correct its address"
    )]
    Certificate,
    #[error("is in a store that was busy or failed each time it was asked: try again later")]
    Busy,
    #[error("was cut short while it was sent, each time it was asked for: try again, or copy it")]
    CutShort,
    #[error("is in a store whose answer cannot be read: check its address (AWS_ENDPOINT_URL)")]
    Answer,
    #[error("has changed since it was first looked at: let whoever writes it finish, and read it again")]
    Changed,
    #[error("cannot be read as a pattern of names: correct its * ? and [ ]")]
    Pattern,
    #[error("names more objects than 100,000: name some of them by a pattern")]
    TooMany,
    #[error("was not read (this is a bug)")]
    Bug,
}

impl Fault {
    /// The error for an object.
    #[must_use]
    pub fn of(self, url: &str) -> StoreError {
        StoreError { url: url.to_owned(), fault: self }
    }
}

impl StoreError {
    /// Whether the name itself is at fault, or what was built: nothing has been asked of a store.
    #[must_use]
    pub fn is_of_usage(&self) -> bool {
        use Fault::{AuditOnly, Key, NoBucket, NotBuilt, Pattern, Query, Scheme, UserInfo};
        matches!(self.fault, AuditOnly | Key | NoBucket | NotBuilt | Pattern | Query | Scheme | UserInfo)
    }
}
