//! Object stores: S3 and what speaks like it, Google Cloud Storage, Azure. Objects are listed, and read by ranges.
//!
//! The clients are those of the `object_store` crate, built with the feature `object-store` alone. Without it every object is
//! refused by name (`absent`), and nothing else of throng knows the difference.
//!
//! | files | what they hold |
//! |---|---|
//! | [`url`], [`error`] | how an object is named; what can go wrong |
//! | [`seen`] | what a listing says of an object |
//! | `stores` | the clients of a process, and what they have seen: an object that is another one later is refused |
//! | `client`, `fault` | the client of a bucket; what its errors mean |
//! | `listing` | one object, a folder, or all that match a pattern |
//! | [`plan`] | which bytes are fetched ahead, and which are dropped |
//! | `object` | an object that is read by ranges, or in order |
//! | `absent` | the same names without a client |

pub mod error;
pub mod seen;
pub mod url;

#[cfg(feature = "object-store")]
mod client;
#[cfg(feature = "object-store")]
mod fault;
#[cfg(feature = "object-store")]
mod listing;
#[cfg(feature = "object-store")]
mod object;
#[cfg(feature = "object-store")]
pub mod plan;
#[cfg(feature = "object-store")]
mod stores;

#[cfg(not(feature = "object-store"))]
mod absent;

#[cfg(not(feature = "object-store"))]
pub use absent::{Object, Text, is_built, look, look_anew, state_of};
pub use error::{Fault, StoreError};
#[cfg(feature = "object-store")]
pub use object::{Object, Text};
pub use seen::{Found, Seen};
#[cfg(feature = "object-store")]
pub use stores::{is_built, look, look_anew, state_of};
pub use url::is_url;

use std::path::Path;
use url::StoreUrl;

/// Looks whether a path can be read as far as its name tells; what is no URL can.
///
/// # Errors
/// When it names an object, and this build has no stores or the name is not one to be read. A secret in it is not repeated.
pub fn check(path: &Path) -> Result<(), StoreError> {
    if !is_url(path) {
        return Ok(());
    }
    let url = StoreUrl::parse(path)?;
    if is_built() { Ok(()) } else { Err(Fault::NotBuilt.of(&url.text)) }
}
