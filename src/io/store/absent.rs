//! A build without object stores: each is refused by name.

use std::convert::Infallible;
use std::io;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};

use super::error::{Fault, StoreError};
use super::seen::{Found, Seen};
use super::url::StoreUrl;

/// Whether objects can be read.
#[must_use]
pub fn is_built() -> bool {
    false
}

/// What a URL names.
///
/// # Errors
/// Always.
pub fn look(path: &Path) -> Result<Found, StoreError> {
    Err(Fault::NotBuilt.of(&StoreUrl::parse(path)?.text))
}

/// As [`look`].
///
/// # Errors
/// Always.
pub fn look_anew(path: &Path) -> Result<Found, StoreError> {
    look(path)
}

/// How an object was when it was last looked at: never.
#[must_use]
pub fn state_of(_: &Path) -> Option<Seen> {
    None
}

/// An object; there is none.
#[derive(Clone, Debug)]
pub struct Object(Infallible);

/// The text of an object; there is none.
#[derive(Debug)]
pub struct Text(Infallible);

#[allow(missing_docs, reason = "documented where objects are read")]
impl Object {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        look(path).and(Err(Fault::NotBuilt.of(&StoreUrl::parse(path)?.text)))
    }

    pub fn length(&self) -> u64 {
        match self.0 {}
    }

    pub fn digest(&self) -> u64 {
        match self.0 {}
    }

    pub fn read_ahead(&self, _: &[Vec<Range<u64>>]) {
        match self.0 {}
    }

    pub fn take_fault(&self) -> Option<StoreError> {
        match self.0 {}
    }

    pub fn text(self) -> Text {
        match self.0 {}
    }
}

impl Length for Object {
    fn len(&self) -> u64 {
        match self.0 {}
    }
}

impl ChunkReader for Object {
    type T = Text;

    fn get_read(&self, _: u64) -> ParquetResult<Text> {
        match self.0 {}
    }

    fn get_bytes(&self, _: u64, _: usize) -> ParquetResult<Bytes> {
        match self.0 {}
    }
}

impl io::Read for Text {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}
