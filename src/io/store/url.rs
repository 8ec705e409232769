//! How an object is named: `s3://bucket/key`, also where the build has no stores, so that it is refused by name.

use std::path::Path;

use super::error::{Fault, StoreError};

/// The stores that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Amazon S3, and what speaks like it.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage; the bucket is a container.
    Azure,
}

const KINDS: [(&str, Kind); 3] = [("s3", Kind::S3), ("gs", Kind::Google), ("az", Kind::Azure)];

/// A named object, a folder that ends in `/`, or a pattern. The key stands there as the store has it: nothing in it is percent-encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    /// As it was given; it holds no secret.
    pub text: String,
    /// Which store.
    pub kind: Kind,
    /// The bucket, or container.
    pub bucket: String,
    /// All that is behind it; empty for the whole bucket.
    pub key: String,
}

/// Whether a path is spelled like a URL: letters, `://`. What lies on the disk under a foreign scheme is a file.
#[must_use]
pub fn is_url(path: &Path) -> bool {
    scheme(path).is_some_and(|(scheme, _)| KINDS.iter().any(|(name, _)| *name == scheme) || !path.exists())
}

fn scheme(path: &Path) -> Option<(&str, &str)> {
    let (scheme, rest) = path.to_str()?.split_once("://")?;
    let is_one = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_one.then_some((scheme, rest))
}

impl StoreUrl {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// When it is of no store, names no bucket, or has a secret in it, which is not repeated.
    pub fn parse(path: &Path) -> Result<Self, StoreError> {
        // What is no text has no scheme either; a caller that asks anyway is told of a pattern.
        let Some((scheme, rest)) = scheme(path) else { return Err(Fault::Scheme.of(&path.to_string_lossy())) };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        // A password may have a / in it.
        if bucket.contains('@') || bucket.contains(':') && rest.contains('@') {
            return Err(Fault::UserInfo.of(&format!("{scheme}://…")));
        }
        if let Some(before) = query(rest) {
            return Err(Fault::Query.of(&format!("{scheme}://{before}?…")));
        }
        let text = format!("{scheme}://{rest}");
        let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == scheme) else {
            return Err(Fault::Scheme.of(&text));
        };
        if bucket.is_empty() || bucket.contains(['*', '?', '[', ':']) {
            return Err(Fault::NoBucket.of(&text));
        }
        let parts: Vec<&str> = key.strip_suffix('/').unwrap_or(key).split('/').collect();
        let is_odd = |part: &&str| matches!(*part, "" | "." | "..") || part.chars().any(|c| c.is_ascii_control());
        if !key.is_empty() && parts.iter().any(is_odd) {
            return Err(Fault::Key.of(&text));
        }
        Ok(Self { text, kind: *kind, bucket: bucket.to_owned(), key: key.to_owned() })
    }

    /// The same store with another key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        let scheme = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        let text = format!("{scheme}://{}/{key}", self.bucket);
        Self { text, kind: self.kind, bucket: self.bucket.clone(), key: key.to_owned() }
    }

    /// Whether the key is a pattern of names.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        self.key.contains(['*', '?', '['])
    }
}

/// What stands before a query (`?name=…`), as signed URLs have one. A `?` that is a wildcard is followed by no name and `=`.
fn query(rest: &str) -> Option<&str> {
    let is_name = |text: &str| {
        let name = text.split('=').next().unwrap_or_default();
        name.len() < text.len()
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    rest.match_indices('?').find(|(at, _)| is_name(&rest[at + 1..])).map(|(at, _)| &rest[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(url: &str) -> String {
        StoreUrl::parse(Path::new(url)).expect_err("refused").to_string()
    }

    #[test]
    fn a_url_is_taken_apart_and_keeps_its_key_as_it_is() {
        let url = StoreUrl::parse(Path::new("s3://data/a b/50%25/part-*.parquet")).expect("a URL");
        assert_eq!((url.kind, &*url.bucket, &*url.key), (Kind::S3, "data", "a b/50%25/part-*.parquet"));
        assert!(url.is_pattern());
        assert_eq!(url.with_key("x/y.csv").text, "s3://data/x/y.csv");
        for (whole, key) in [("gs://data", ""), ("az://data/", ""), ("s3://data/days/", "days/")] {
            assert_eq!(StoreUrl::parse(Path::new(whole)).expect("a URL").key, key, "{whole}");
        }
        assert!(is_url(Path::new("s3://data")) && is_url(Path::new("https://a/b")));
        for path in ["data/a.csv", "a:b", "://a", "-", "C:/a//b", "a b://c"] {
            assert!(!is_url(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn secrets_in_a_url_are_refused_and_not_repeated() {
        for url in [
            "s3://AKIAKNOWN:topsecret@data/a.csv",
            "s3://AKIAKNOWN:top/secret@data/a.csv",
            "gs://topsecret@data",
            "s3://data/a.csv?X-Amz-Signature=topsecret",
        ] {
            let said = said(url);
            assert!(!said.contains("secret") && !said.contains("AKIAKNOWN"), "{said}");
        }
        assert!(said("s3://user@data/a").contains("environment"), "{}", said("s3://user@data/a"));
        assert!(
            said("s3://data/a.csv?versionId=7").starts_with("s3://data/a.csv?… "),
            "{}",
            said("s3://data/a.csv?versionId=7")
        );
        // Wildcards in names of folders as Hive writes them are none.
        for url in ["s3://data/year=202?/month=1/x.parquet", "s3://data/day-?.csv", "s3://data/a?"] {
            assert!(StoreUrl::parse(Path::new(url)).is_ok(), "{url}");
        }
    }

    #[test]
    fn what_names_no_object_is_refused_by_name() {
        for (url, says) in [
            ("https://host/a.csv", "no object store"),
            ("s3a://data/a.csv", "no object store"),
            ("s3:///a.csv", "bucket"),
            ("s3://da*ta/a.csv", "bucket"),
            ("s3://data:9000/a.csv", "bucket"),
            ("s3://data//a.csv", "empty"),
            ("s3://data/x/../a.csv", "empty"),
        ] {
            let said = said(url);
            assert!(said.contains(says) && said.starts_with(url), "{said}");
        }
    }
}
