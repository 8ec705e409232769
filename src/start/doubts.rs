//! What a schema leaves unprotected, in words: told by `throng check`, in the log of a run and on its page.
//!
//! A schema is believed: where it says that an attribute may leave as it is, it leaves. But a schema can be wrong, and
//! these are the mistakes that no count of crowds would ever show.

use super::sampling::read_unjoined;
use super::shapes::group_shapes;
use crate::anonymity::plan::shared::in_several;
use crate::anonymity::plan::{Group, Plan};
use crate::anonymity::planner::identifiers::profile_of;
use crate::config::{Config, SourceKind};
use crate::io::file::is_at_rest;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use throng_core::values::codebook::{Code, Codebook};
use throng_core::values::schema::{Attribute, Changes, Role, Schema, Type};
use throng_core::values::shapes::Shape;
use throng_risk::identifiers::{Category, Judgement, Reason, Rule};

/// Records of a file that are looked at before a run.
const LOOKED_AT: usize = 1000;
/// Records below which a share of different values says nothing of an attribute that is not protected at all.
const FEW: u64 = 20;

/// Doubts that the schema and the configuration raise by themselves.
pub fn of_configuration(config: &Config, schema: &Schema) -> Vec<String> {
    let mut doubts = Vec::new();
    if schema.subject.is_none() && !schema.is_one_record_each {
        doubts.push(format!(
            "the schema {:?} names no subject: every record counts as a person, and one person with {} records is a crowd (give the attribute that names the person role = \"subject\"; where nobody has two records, declare subject = \"record\")",
            schema.name, config.privacy.k
        ));
    }
    for attribute in schema.attributes.iter().filter(|a| a.role == Role::Insensitive) {
        if let Some(category) = Category::of_name(&attribute.name).filter(|category| names_people(*category)) {
            doubts.push(insensitive(attribute, &format!("is called like an identifier ({})", category.title())));
        }
    }
    for attribute in schema.attributes.iter().filter(|a| a.kind() == Type::Timestamp && a.typing.zone.is_none()) {
        for format in attribute.typing.dates.without_zone() {
            doubts.push(format!(
                "attribute {:?}: its format {format:?} has no time zone, and UTC is assumed (name that of the clock, as in zone = \"Europe/Zurich\" or \"UTC\"; add %z where the data has an offset)",
                attribute.name
            ));
        }
    }
    doubts.extend(config.state.secret_file.as_deref().and_then(of_secret_file));
    if schema.subject.is_some() && !config.privacy.longest_delay().is_zero() && config.release.fragments {
        let groups = group_shapes(config, schema, "").unwrap_or_default();
        let shared = in_several(groups.iter().map(|group| group.quasi.as_slice()));
        for group in groups {
            let attribute = |a: usize| &schema.attributes[a];
            let own = || group.quasi.iter().chain(&group.sensitive).copied().filter(|a| !shared.contains(a));
            let said = || own().map(attribute);
            let changing = said().filter(|a| a.changes == Some(Changes::Always));
            let still = said().filter(|a| match a.changes {
                Some(changes) => changes != Changes::Always,
                None => a.role == Role::Sensitive,
            });
            doubts.extend(mixed(&group.name, &names(still), &names(changing)));
        }
    }
    doubts
}

/// Doubts that the paces of a plan raise, measured or declared.
pub fn of_paces(plan: &Plan, schema: &Schema) -> Vec<String> {
    let pace = |a: usize| plan.paces.iter().find(|pace| pace.attribute == a).map(|pace| pace.changes);
    let shared = plan.shared();
    let of = |group: &Group| {
        let said = || group.own(&shared).filter(|a| !plan.identifiers.contains(a));
        let named = |always: bool| {
            let those = said().filter(|&a| pace(a).is_some_and(|changes| (changes == Changes::Always) == always));
            names(those.map(|a| &schema.attributes[a]))
        };
        mixed(&group.name, &named(false), &named(true))
    };
    plan.groups.iter().filter_map(of).collect()
}

fn names<'a>(attributes: impl Iterator<Item = &'a Arc<Attribute>>) -> Vec<&'a str> {
    attributes.map(|attribute| attribute.name.as_str()).collect()
}

/// What does not change is said once a window only where nothing of its group changes.
fn mixed(group: &str, still: &[&str], changing: &[&str]) -> Option<String> {
    (!still.is_empty() && !changing.is_empty()).then(|| {
        let (still, changing) = (still.join(", "), changing.join(", "));
        format!(
            "group {group:?} says what does not change within a person ({still}) again with every record, because of what does ({changing}): over many batches, who sent when tells whose it is (put {still} into a [[group]] of their own; if sensitive, say there how they change: changes = \"never\", \"slowly\" or \"always\")"
        )
    })
}

/// Names of places and dates are no names of people.
fn names_people(category: Category) -> bool {
    !matches!(category, Category::Geography | Category::Dates)
}

/// A secret that its group may read; a file that others may read is refused.
fn of_secret_file(path: &Path) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    let may = match (mode & 0o044 != 0, mode & 0o022 != 0) {
        (_, true) => "write",
        (true, false) => "read",
        (false, false) => return None,
    };
    Some(format!(
        "state.secret_file {} is a file that others may {may} (mode {:o}): whoever has it can try every name of a person against the digests (chmod 600)",
        path.display(),
        mode & 0o777
    ))
}

/// Doubts that the first records of a source raise, where it is a regular file.
pub fn of_first_records(config: &Config, schema: &Schema) -> Vec<String> {
    let path = &config.source.path;
    if config.source.kind != SourceKind::File || !is_at_rest(path) {
        return Vec::new();
    }
    let unreadable = |why: String| vec![format!("source.path: {why}")];
    let read = match read_unjoined(config, schema, path, LOOKED_AT) {
        Ok(read) => read,
        Err(error) => return unreadable(error.to_string()),
    };
    if !read.absent.is_empty() {
        let names: Vec<&str> = read.absent.iter().map(|a| schema.attributes[*a].name.as_str()).collect();
        return unreadable(format!("{} has no column for {}", path.display(), names.join(", ")));
    }
    read.books.iter().zip(&read.batch.columns).filter_map(|(book, codes)| of_values(book, codes)).collect()
}

/// The doubt that the values of one attribute raise, if any.
pub fn of_values(book: &Codebook, codes: &[Code]) -> Option<String> {
    let attribute = book.attribute();
    if !attribute.role.is_releasable() {
        return None;
    }
    if attribute.role != Role::Insensitive {
        return book.shaped().map(|shape| hidden(attribute, shape));
    }
    let rule = Rule { min_rows: FEW, ..Rule::of_a_stream(Rule::CARDINALITY) };
    let Judgement { reasons, .. } = rule.judge(&profile_of(codes, book), false, None);
    let why = match reasons.first()? {
        Reason::Shape { shape, .. } => format!("has values with the shape of {}", shape_title(*shape)),
        _ => "has another value in nearly every record".to_owned(),
    };
    Some(insensitive(attribute, &why))
}

fn insensitive(attribute: &Attribute, why: &str) -> String {
    format!(
        "attribute {:?} is insensitive and {why}: it leaves as it is, for everybody to see (give it the role identifier, or quasi)",
        attribute.name
    )
}

fn hidden(attribute: &Attribute, shape: Shape) -> String {
    format!(
        "attribute {:?} has values with the shape of {}: they leave as \"*\" (give it the role identifier; insensitive lets them leave)",
        attribute.name,
        shape_title(shape)
    )
}

/// What a form of values is called.
pub fn shape_title(shape: Shape) -> &'static str {
    Category::of_shape(shape).title()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymity::plan::Pace;
    use throng_core::values::digest::DigestKey;
    use throng_core::values::raw::Token;

    fn told(role: &str, kind: &str, value: impl Fn(usize) -> String, rows: usize) -> Option<String> {
        let text = format!("name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"{kind}\"\nrole = \"{role}\"\n");
        let schema = Schema::parse(&text, "t.toml", Path::new("")).expect("a schema");
        let mut book = Codebook::new(Arc::clone(&schema.attributes[0]), &DigestKey([1; 32]), 10_000).expect("a book");
        let codes: Vec<Code> =
            (0..rows).map(|row| book.encode(Token::Untyped(&value(row))).expect("of the type")).collect();
        of_values(&book, &codes)
    }

    #[test]
    fn insensitive_identifiers_are_told_and_other_values_are_not() {
        let mail = |row: usize| format!("p{}@example.org", row % 3);
        assert!(told("insensitive", "string", mail, 9).is_some_and(|d| d.contains("e-mail address")));
        assert!(told("quasi", "string", mail, 9).is_some_and(|d| d.contains("leave as \"*\"")));
        assert!(told("insensitive", "integer", |row| row.to_string(), 20).is_some_and(|d| d.contains("nearly every")));
        assert_eq!(told("insensitive", "integer", |row| row.to_string(), 19), None, "too few to tell");
        assert_eq!(told("insensitive", "integer", |row| (row % 5).to_string(), 100), None);
        assert_eq!(told("quasi", "integer", |row| row.to_string(), 100), None, "a crowd protects it");
    }

    #[test]
    fn what_does_not_change_beside_what_does_is_told() {
        let told = |activity: &str, diagnosis: &str, settings: &str| {
            let text = format!(
                "name = \"t\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n[[attribute]]\nname = \"activity\"\ntype = \"string\"\n{activity}\n[[attribute]]\nname = \"diagnosis\"\ntype = \"string\"\nrole = \"sensitive\"\n{diagnosis}\n"
            );
            let schema = Schema::parse(&text, "t.toml", Path::new("")).expect("a schema");
            let config: Config = toml::from_str(settings).expect("a configuration");
            of_configuration(&config, &schema).into_iter().find(|doubt| doubt.contains("says what does not change"))
        };
        let (always, never) = ("changes = \"always\"", "changes = \"never\"");
        let apart = "[[group]]\nname = \"a\"\nattributes = [\"activity\"]\n[[group]]\nname = \"d\"\nattributes = [\"diagnosis\"]\n";
        assert!(told(always, "", "").is_some_and(|d| d.contains("(diagnosis)") && d.contains("(activity)")));
        assert!(told(always, never, "").is_some());
        assert!(told(never, always, "").is_some_and(|d| d.contains("(activity) again")));
        assert_eq!(told(always, always, ""), None);
        assert_eq!(told("", "", ""), None, "nothing is known before it is measured");
        assert_eq!(told(always, "", apart), None);
    }

    #[test]
    fn measured_paces_tell_the_same() {
        let text = "name = \"t\"\n[[attribute]]\nname = \"home\"\ntype = \"string\"\n[[attribute]]\nname = \"pulse\"\ntype = \"string\"\n";
        let schema = Schema::parse(text, "t.toml", Path::new("")).expect("a schema");
        let group = |quasi: Vec<usize>| Group {
            name: "g".to_owned(),
            quasi,
            sensitive: vec![],
            insensitive: vec![],
            ladder: vec![],
            ranges: false,
        };
        let told = |groups: Vec<Group>, identifiers: Vec<usize>| {
            let pace = |attribute, changes| Pace { attribute, changes, declared: false, share: None };
            let paces = vec![pace(0, Changes::Never), pace(1, Changes::Always)];
            of_paces(&Plan { identifiers, paces, ..Plan::blank(groups) }, &schema)
        };
        assert_eq!(told(vec![group(vec![0, 1])], vec![]).len(), 1);
        assert!(told(vec![group(vec![0]), group(vec![1])], vec![]).is_empty());
        assert!(told(vec![group(vec![0, 1])], vec![0]).is_empty(), "an identifier is never said");
    }

    #[test]
    fn a_secret_of_others_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "x").expect("a file");
        for (mode, says) in
            [(0o600, None), (0o400, None), (0o440, Some("read")), (0o640, Some("read")), (0o660, Some("write"))]
        {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("our file");
            let told = of_secret_file(&path);
            assert_eq!(told.is_some(), says.is_some(), "{mode:o}");
            assert!(told.is_none_or(|told| told.contains(&format!("others may {}", says.unwrap_or("")))));
        }
    }
}
