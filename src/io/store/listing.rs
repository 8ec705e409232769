//! What a URL names: one object, a folder, or all that match a pattern. Listings come in pages, whose order is not relied on.

use object_store::list::PaginatedListOptions;
use object_store::path::Path as Key;
use object_store::{GetOptions, ObjectMeta};

use super::client::Store;
use super::error::{Fault, StoreError};
use super::fault::fault_of;
use super::seen::{Found, Seen};
use super::url::{Kind, StoreUrl};

/// More are refused: their names are held.
const MOST_OBJECTS: usize = 100_000;

/// How patterns match: letter by letter, `*` within one name, and no hidden name; as for files.
const MATCHING: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// All folders below one.
const ANY_DEPTH: &str = "**";

/// One level of a folder.
#[derive(Default)]
struct Level {
    objects: Vec<Seen>,
    /// Names of folders.
    folders: Vec<String>,
}

/// What a URL names. A key that is no object may be that of a folder, without its last `/`.
///
/// # Errors
/// When the store cannot be asked, when nothing is there, and when there is too much.
pub(super) async fn look(store: &dyn Store, url: &StoreUrl) -> Result<Found, StoreError> {
    if url.is_pattern() {
        return Ok(Found::Matching(matching(store, url).await?));
    }
    if url.key.is_empty() || url.key.ends_with('/') {
        return Ok(Found::Folder(level(store, url, &url.key, "").await?.objects));
    }
    let asked = store.get_opts(&key_of(url)?, GetOptions { head: true, ..GetOptions::default() }).await;
    let fault = match asked {
        Ok(got) => return Ok(Found::One(seen(url, &got.meta))),
        Err(error) => fault_of(&error),
    };
    if fault != Fault::Missing {
        return Err(fault.of(&url.text));
    }
    let within = level(store, url, &format!("{}/", url.key), "").await?;
    if within.objects.is_empty() && within.folders.is_empty() {
        return Err(Fault::Missing.of(&url.text));
    }
    Ok(Found::Folder(within.objects))
}

/// The key as the client takes it: as it is.
pub(super) fn key_of(url: &StoreUrl) -> Result<Key, StoreError> {
    Key::parse(&url.key).map_err(|_| Fault::Key.of(&url.text))
}

fn seen(url: &StoreUrl, meta: &ObjectMeta) -> Seen {
    let url = url.with_key(meta.location.as_ref()).text;
    Seen { url, length: meta.size, mark: meta.e_tag.clone(), written: meta.last_modified.timestamp() }
}

fn name_of(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

/// What stands directly in `folder` (empty, or with a `/` at its end) under a name that begins with `start`. Hidden names are left out.
async fn level(store: &dyn Store, url: &StoreUrl, folder: &str, start: &str) -> Result<Level, StoreError> {
    // Azure's client leaves out what is as long as the prefix that was asked for: there, one letter less is asked for, and more comes.
    let shorter = start.chars().count().saturating_sub(usize::from(url.kind == Kind::Azure));
    let prefix = format!("{folder}{}", start.chars().take(shorter).collect::<String>());
    let (mut found, mut page_token) = (Level::default(), None);
    let (mut before, mut entries) = (None, 0);
    loop {
        let options =
            PaginatedListOptions { delimiter: Some("/".into()), page_token: page_token.take(), ..Default::default() };
        let page =
            store.list_paginated(Some(&prefix).filter(|prefix| !prefix.is_empty()).map(String::as_str), options).await;
        let page = page.map_err(|error| fault_of(&error).of(&url.text))?;
        for meta in &page.result.objects {
            let (key, name) = (meta.location.as_ref(), name_of(meta.location.as_ref()));
            // A store that does not keep to what it was asked would bring in what nobody has named.
            if key.strip_prefix(folder).is_none_or(|name| name.contains('/')) && format!("{key}/") != folder {
                return Err(Fault::Answer.of(&url.text));
            }
            if !name.starts_with(start) {
                continue;
            }
            // Some tools mark a folder by an empty object of its name.
            let is_mark = meta.size == 0 && (format!("{key}/") == folder || !name.contains('.'));
            if !is_mark && !name.starts_with('.') {
                found.objects.push(seen(url, meta));
            }
        }
        let names = page.result.common_prefixes.iter().map(|folder| name_of(folder.as_ref()).to_owned());
        found.folders.extend(names.filter(|name| !name.starts_with('.') && name.starts_with(start)));
        entries += page.result.objects.len() + page.result.common_prefixes.len();
        if found.objects.len() + found.folders.len() > MOST_OBJECTS {
            return Err(Fault::TooMany.of(&url.text));
        }
        // A listing that never ends, or begins again, is none.
        if entries > 10 * MOST_OBJECTS || page.page_token.is_some() && page.page_token == before {
            return Err(Fault::TooMany.of(&url.text));
        }
        before.clone_from(&page.page_token);
        page_token = page.page_token;
        if page_token.is_none() {
            return Ok(found);
        }
    }
}

/// The objects whose keys match the pattern, by key; none twice. It means what a pattern of file names means.
async fn matching(store: &dyn Store, url: &StoreUrl) -> Result<Vec<Seen>, StoreError> {
    // Where we have got to: folders with their `/`; the empty one is the bucket.
    let (mut at, mut objects) = (vec![String::new()], Vec::new());
    let parts: Vec<&str> = url.key.split('/').collect();
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        let mut next = Vec::new();
        for folder in &at {
            if *part == ANY_DEPTH {
                below(store, url, folder, &mut next).await?;
            } else if part.contains(['*', '?', '[']) {
                let pattern = glob::Pattern::new(part).map_err(|_| Fault::Pattern.of(&url.text))?;
                let start = part.split(['*', '?', '[']).next().unwrap_or_default();
                let level = level(store, url, folder, start).await?;
                let matches = |name: &str| pattern.matches_with(name, MATCHING);
                if is_last {
                    objects.extend(level.objects.into_iter().filter(|one| matches(name_of(&one.url))));
                } else {
                    next.extend(
                        level.folders.iter().filter(|name| matches(name)).map(|name| format!("{folder}{name}/")),
                    );
                }
            } else if is_last {
                let level = level(store, url, folder, part).await?;
                objects.extend(level.objects.into_iter().filter(|one| name_of(&one.url) == *part));
            } else {
                next.push(format!("{folder}{part}/"));
            }
        }
        // Two `**` may lead to one place.
        next.sort_unstable();
        next.dedup();
        at = next;
        if at.len().max(objects.len()) > MOST_OBJECTS {
            return Err(Fault::TooMany.of(&url.text));
        }
    }
    objects.sort_unstable_by(|a, b| a.url.cmp(&b.url));
    objects.dedup_by(|a, b| a.url == b.url);
    Ok(objects)
}

/// The folder and all folders below it, hidden ones left out.
async fn below(store: &dyn Store, url: &StoreUrl, folder: &str, found: &mut Vec<String>) -> Result<(), StoreError> {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let level = level(store, url, &folder, "").await?;
        open.extend(level.folders.iter().map(|name| format!("{folder}{name}/")));
        found.push(folder);
        if found.len() > MOST_OBJECTS {
            return Err(Fault::TooMany.of(&url.text));
        }
    }
    Ok(())
}
