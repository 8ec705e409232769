//! Opens a state directory and decrypts all its values.

use crate::support::canaries::hex;
use crate::support::copies;
use std::path::Path;
use std::sync::Arc;
use throng::config::Config;
use throng::daemon::state::state_keys::StateKeys;
use throng::start::checked_config::CheckedConfig;
use throng_core::ledger::release_log::release_log_key;
use throng_core::ledger::supporters::supporter_key;
use throng_core::treatment::group_digests::{class_key_base, group_identity};
use throng_core::values::digest::{DigestKey, NameDigest};
use throng_core::values::raw_batch::RawToken;
use throng_core::values::subject_digest::SubjectDigester;

pub struct Opened {
    values: Vec<(String, Vec<u8>, Vec<u8>)>,
    sealed: Vec<Vec<u8>>,
}

pub fn databases(state: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(state).expect("a state directory").map(|entry| entry.expect("an entry"));
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

impl Opened {
    pub fn read(state: &Path, secret: &[u8]) -> Self {
        let databases = databases(state);
        assert_eq!(databases.len(), 1, "one database: {databases:?}");
        let sealer = StateKeys::derive(secret).sealer();
        let (mut values, mut all) = (Vec::new(), Vec::new());
        copies::look(&state.join(&databases[0]), |db| {
            for name in ["throng", "window"] {
                for entry in &db.open_tree(name).expect("a tree") {
                    let (key, sealed) = entry.expect("an entry");
                    if key.as_ref() == b"check" {
                        continue;
                    }
                    let plain = sealer.open(&key, &sealed).expect("it opens");
                    values.push((name.to_owned(), key.to_vec(), plain));
                    all.push(sealed.to_vec());
                }
            }
        });
        Self { values, sealed: all }
    }

    pub fn sealed(&self, needles: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let holds = |bytes: &[u8]| needles.iter().any(|needle| bytes.windows(needle.len()).any(|w| w == needle));
        let found = self.values.iter().zip(&self.sealed).filter(|((_, key, plain), _)| holds(key) || holds(plain));
        found.map(|(_, sealed)| sealed.clone()).collect()
    }

    /// Returns the keys, as text, of the entries that contain one of `needles` in key or value.
    pub fn with(&self, needles: &[Vec<u8>]) -> Vec<String> {
        let holds = |bytes: &[u8]| needles.iter().any(|needle| bytes.windows(needle.len()).any(|w| w == needle));
        let found = self.values.iter().filter(|(_, key, plain)| holds(key) || holds(plain));
        found.map(|(tree, key, _)| format!("{tree}/{}", String::from_utf8_lossy(key))).collect()
    }

    pub fn kinds(&self, needles: &[Vec<u8>]) -> Vec<String> {
        let mut kinds: Vec<String> = self
            .with(needles)
            .into_iter()
            .map(|key| key.splitn(3, '/').take(2).collect::<Vec<_>>().join("/"))
            .collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }
}

/// Returns every form of a subject in a state: the digest in each byte order, and its keys.
pub fn spellings(config: &Config, secret: &[u8], person: &str) -> Vec<Vec<u8>> {
    let checked = CheckedConfig::new(config.clone(), "throng.toml").unwrap_or_else(|p| panic!("{p:#?}"));
    let keys = StateKeys::derive(secret);
    let subject = &checked.schema.attributes[checked.schema.subject.expect("a subject")];
    let mut subjects = SubjectDigester::new(Arc::clone(subject), &DigestKey(keys.subjects));
    let digest = subjects.digest(RawToken::Untyped(person)).expect("a subject");
    let mut found = vec![digest.to_le_bytes().to_vec(), digest.to_be_bytes().to_vec(), varint(digest.into())];
    found.push(hex(&digest.to_be_bytes()).into_bytes());
    // A short name may occur by chance.
    if person.len() >= 8 {
        found.push(person.as_bytes().to_vec());
    }
    let names: Vec<&str> = checked.schema.attributes.iter().map(|a| a.name.as_str()).collect();
    let of_names = NameDigest::new(&DigestKey(keys.classes));
    for shape in &checked.shapes {
        let group = shape.without_ladder();
        let name = |text: &str| of_names.digest(text);
        let said = release_log_key(group_identity(&group, &names, name), digest);
        let supporter = supporter_key(class_key_base(&group, &names, name), digest);
        for key in [said, supporter] {
            found.extend([key.to_le_bytes().to_vec(), varint(key)]);
        }
    }
    found
}

/// Encodes a number as postcard does.
fn varint(mut rest: u128) -> Vec<u8> {
    let mut bytes = Vec::new();
    while rest >= 0x80 {
        bytes.push((rest as u8) | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}
