//! What Parquet is read from: a file, or an object of a store.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, Length};

use super::SourceError;
use super::fingerprint::imprint;
use super::stream::open_file;
use crate::io::store::{self, Object, StoreError};

/// A file, or an object.
#[derive(Debug)]
pub(super) enum Opened {
    File(File),
    Object(Object),
}

impl Opened {
    /// Opens what a path names; of what is no regular file the length is 0.
    pub fn open(path: &Path) -> Result<(Self, u64), SourceError> {
        if store::is_url(path) {
            let object = Object::open(path)?;
            let length = object.length();
            return Ok((Self::Object(object), length));
        }
        let (file, length) = open_file(path)?;
        Ok((Self::File(file), length.unwrap_or(0)))
    }

    /// The same once more, with the place where it is read.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::File(file) => Self::File(file.try_clone()?),
            Self::Object(object) => Self::Object(object.clone()),
        })
    }

    /// Length and digest by which it is known again.
    pub fn imprint(&self, length: u64) -> io::Result<(u64, u64)> {
        match self {
            Self::File(file) => imprint(file, length),
            Self::Object(object) => Ok((length, object.digest())),
        }
    }

    /// Has what is far away fetched before it is asked for: the columns that are `read`, row group by row group.
    pub fn read_ahead(&self, about: &ParquetMetaData, read: impl Fn(usize) -> bool) {
        let Self::Object(object) = self else { return };
        let groups = about.row_groups().iter().map(|group| {
            let columns = group.columns().iter().enumerate().filter(|(leaf, _)| read(*leaf));
            columns.map(|(_, column)| bytes_of(column)).collect::<Vec<_>>()
        });
        object.read_ahead(&groups.collect::<Vec<_>>());
    }

    /// What a store said, where what reads Parquet only says that something failed.
    pub fn take_fault(&self) -> Option<StoreError> {
        if let Self::Object(object) = self { object.take_fault() } else { None }
    }
}

/// Where a column of a row group lies; no range where the footer is damaged.
fn bytes_of(column: &ColumnChunkMetaData) -> Range<u64> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let place = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
    let end = place.and_then(|(start, length)| Some(start..start.checked_add(length)?));
    end.unwrap_or(u64::MAX..u64::MAX)
}

impl Length for Opened {
    fn len(&self) -> u64 {
        match self {
            Self::File(file) => Length::len(file),
            Self::Object(object) => object.length(),
        }
    }
}

impl ChunkReader for Opened {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(match self {
            Self::File(file) => Box::new(file.get_read(start)?),
            Self::Object(object) => Box::new(object.get_read(start)?),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        match self {
            Self::File(file) => file.get_bytes(start, length),
            Self::Object(object) => object.get_bytes(start, length),
        }
    }
}
