//! Release certificates: a signed statement of what one committed batch was, chained to the one before it.
//!
//! A certificate is one line: a DSSE envelope around an in-toto statement, signed with Ed25519 (`docs/certificates.md` has its form by
//! field). It has counts and digests, and no value of any record: nothing here is given one.
//!
//! | file | what it holds |
//! |---|---|
//! | [`statement`] | what a certificate says, by field |
//! | [`envelope`] | the signed form, and what of it is signed |
//! | [`key`] | keys that sign, and keys that check |
//! | [`head`] | where a chain stands |
//! | [`output`] | the digest of what a batch writes to one output |

pub mod envelope;
pub mod head;
mod hex;
pub mod key;
pub mod output;
pub mod statement;
