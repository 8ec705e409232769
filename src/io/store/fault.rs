//! What an error of a client means. Its own text is looked at and never repeated: it quotes answers, and those quote keys, tokens and
//! signed requests.

use std::error::Error;

use object_store::client::{HttpError, HttpErrorKind};

use super::error::Fault;

/// Codes of S3, and of Google Cloud Storage and Azure where theirs are others.
const CODES: [(&str, Fault); 19] = [
    ("NoSuchBucket", Fault::NoSuchBucket),
    ("ContainerNotFound", Fault::NoSuchBucket),
    ("NoSuchKey", Fault::Missing),
    ("BlobNotFound", Fault::Missing),
    ("ExpiredToken", Fault::Expired),
    ("TokenRefreshRequired", Fault::Expired),
    ("RequestTimeTooSkewed", Fault::Clock),
    ("InvalidAccessKeyId", Fault::Unknown),
    ("SignatureDoesNotMatch", Fault::Unknown),
    ("InvalidToken", Fault::Unknown),
    ("InvalidSecurity", Fault::Unknown),
    ("AuthenticationFailed", Fault::Unknown),
    ("AuthorizationHeaderMalformed", Fault::Region),
    ("PermanentRedirect", Fault::Region),
    ("IllegalLocationConstraintException", Fault::Region),
    ("AccessDenied", Fault::Denied),
    ("AuthorizationFailure", Fault::Denied),
    ("SlowDown", Fault::Busy),
    ("ServerBusy", Fault::Busy),
];

/// Places at which clients ask for the credentials of a role.
const ROLES: [&str; 5] =
    ["/latest/api/token", "/latest/meta-data", "/computeMetadata/", "/metadata/identity", "/v2/credentials"];

/// What went wrong.
pub(super) fn fault_of(error: &object_store::Error) -> Fault {
    let text = error.to_string();
    if ROLES.iter().any(|place| text.contains(place)) || text.contains("InstanceCredential") {
        return Fault::NoCredentials;
    }
    let coded = CODES.iter().find(|(code, _)| text.contains(&format!("<Code>{code}</Code>")));
    if let Some((_, fault)) = coded {
        return *fault;
    }
    match error {
        object_store::Error::NotFound { .. } => return Fault::Missing,
        object_store::Error::Precondition { .. } | object_store::Error::NotModified { .. } => return Fault::Changed,
        object_store::Error::PermissionDenied { .. } => return Fault::Denied,
        object_store::Error::Unauthenticated { .. } => return Fault::Unknown,
        object_store::Error::InvalidPath { .. } => return Fault::Key,
        object_store::Error::JoinError { .. } => return Fault::Bug,
        _ => {}
    }
    if ["InvalidCertificate", "invalid peer certificate", "certificate verify"].iter().any(|said| text.contains(said))
        || is_of_certificate(error)
    {
        return Fault::Certificate;
    }
    match http(error).map(HttpError::kind) {
        Some(HttpErrorKind::Timeout) => Fault::Slow,
        Some(HttpErrorKind::Connect | HttpErrorKind::Request) => Fault::Unreachable,
        Some(HttpErrorKind::Interrupted | HttpErrorKind::Decode) => Fault::CutShort,
        _ if text.contains("redirect without LOCATION") => Fault::Region,
        _ if ["status code: 5", "status code: 429", "status code: 408"].iter().any(|said| text.contains(said)) => {
            Fault::Busy
        }
        Some(HttpErrorKind::Unknown) => Fault::CutShort,
        _ => Fault::Answer,
    }
}

/// The causes of an error, itself first.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn http(error: &object_store::Error) -> Option<&HttpError> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

fn is_of_certificate(error: &object_store::Error) -> bool {
    causes(error).any(|cause| cause.to_string().contains("certificate"))
}
