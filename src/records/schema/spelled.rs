//! The keys of an attribute that say how its values are spelled: `normalize`, `case`, `format`, `epoch`, `base`.

use super::attribute::{Origin, Role};
use crate::records::canonical::Type;
use crate::records::dates::{Dates, Epoch, Format};
use crate::records::keys::Keys;
use crate::records::spans::{Base, Clock, Span};
use crate::records::spelling::{Normalize, Spelling};

/// The one value of `case`.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Case {
    Fold,
}

/// Which spellings of a text are one. Subjects are merged unless the schema says `normalize = "none"`.
pub(super) fn spelling(keys: &mut Keys<'_>, kind: Option<Type>, role: Role) -> Spelling {
    let normalize: Option<Normalize> = keys.optional("normalize");
    let case: Option<Case> = keys.optional("case");
    if kind.is_some_and(|kind| kind != Type::String) {
        for (key, given) in [("normalize", normalize.is_some()), ("case", case.is_some())] {
            if given {
                keys.problem(key, "only strings have several spellings of one text: remove it");
            }
        }
        return Spelling::default();
    }
    let mut spelling = match (role, normalize) {
        (Role::Subject, None) => Spelling::OF_SUBJECTS,
        (Role::Subject, Some(normalize)) => Spelling { normalize, ..Spelling::OF_SUBJECTS },
        (_, normalize) => Spelling { normalize: normalize.unwrap_or_default(), ..Spelling::default() },
    };
    spelling.fold = case.is_some();
    spelling.numbers &= spelling.normalize != Normalize::None;
    spelling
}

/// What the times of an attribute count from, where that is another one.
pub(super) fn base(keys: &mut Keys<'_>, kind: Option<Type>, from: &Origin) -> Option<Base> {
    let attribute: String = keys.optional("base")?;
    if !matches!(kind, None | Some(Type::Date | Type::Timestamp)) {
        keys.problem("base", "only dates and timestamps count from another one: remove it, or correct `type`");
    }
    if *from == Origin::Timestamp || from.join().is_some() {
        keys.problem("base", "the timestamp of a message and what a profile has are times by themselves: remove it");
    }
    let (epoch, format): (Option<Epoch>, Option<String>) = (keys.optional("epoch"), keys.optional("format"));
    let span = match (epoch, format) {
        (Some(unit), None) => Span::Number(unit),
        (None, Some(format)) => match Clock::new(&format) {
            Ok(clock) => Span::Clock(clock),
            Err(fault) => {
                keys.problem("format", format!("{format:?} is {fault}"));
                return None;
            }
        },
        (Some(_), Some(_)) => {
            keys.problem("epoch", "format and epoch exclude each other: keep one");
            return None;
        }
        (None, None) => {
            let message =
                "nothing says what a cell counts: add `epoch` (the unit of a number) or `format` (of a time of day)";
            keys.problem("base", message);
            return None;
        }
    };
    Some(Base { attribute, span })
}

/// How dates and times are read.
pub(super) fn dates(keys: &mut Keys<'_>, kind: Option<Type>, from: &Origin) -> Dates {
    let formats = formats(keys);
    let epoch: Option<Epoch> = keys.optional("epoch");
    let temporal = matches!(kind, None | Some(Type::Date | Type::Timestamp));
    if *from == Origin::Timestamp {
        if !temporal {
            keys.problem("type", "the timestamp of a message is of type timestamp or date");
        }
        for (key, given) in [("format", formats.is_some()), ("epoch", epoch.is_some())] {
            if given {
                keys.problem(key, "the timestamp of a message is a time by itself: remove the key");
            }
        }
        return Dates::Iso;
    }
    for (key, given) in [("format", formats.is_some()), ("epoch", epoch.is_some())] {
        if given && !temporal {
            keys.problem(key, "only dates and timestamps have one: remove it, or correct `type`");
        }
    }
    match (formats, epoch) {
        (Some(_), Some(_)) => {
            keys.problem("epoch", "format and epoch exclude each other: keep one");
            Dates::Iso
        }
        (Some(formats), None) => Dates::Formats(formats),
        (None, Some(epoch)) => Dates::Epoch(epoch),
        (None, None) => Dates::Iso,
    }
}

/// Formats of one attribute. Every two of them are compared, and every cell may be tried with each.
const MOST_FORMATS: usize = 16;

/// One format or several, each checked, and all of them against each other.
fn formats(keys: &mut Keys<'_>) -> Option<Vec<Format>> {
    let texts = match keys.raw("format")? {
        toml::Value::String(text) => vec![text],
        toml::Value::Array(list) if !list.is_empty() && list.iter().all(toml::Value::is_str) => {
            list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        }
        _ => {
            keys.problem("format", "neither a format such as \"%m/%d/%Y\" nor a list of formats");
            return None;
        }
    };
    if texts.len() > MOST_FORMATS {
        let message =
            format!("{} formats, and at most {MOST_FORMATS} are compared: keep those that the data have", texts.len());
        keys.problem("format", message);
        return None;
    }
    let mut formats: Vec<(String, Format)> = Vec::new();
    for text in texts {
        match Format::new(&text) {
            Ok(format) => {
                if let Some((other, _)) = formats.iter().find(|(_, before)| before.contradicts(&format)) {
                    let message =
                        format!("ambiguous: {other:?} and {text:?} read one text as different days or times; keep one");
                    keys.problem("format", message);
                }
                formats.push((text, format));
            }
            Err(fault) => keys.problem("format", format!("{text:?} is {fault}")),
        }
    }
    Some(formats.into_iter().map(|(_, format)| format).collect())
}
