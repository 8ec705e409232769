//! Warnings about a schema that leaves data unprotected. They cover mistakes that no count of classes reveals, such as
//! an insensitive name.

use super::configured_groups::group_shapes;
use super::sampling::read_without_joins;
use crate::config::{Config, SourceKind};
use crate::io::file::is_rereadable;
use crate::planner::sample_identifiers::profile_codes;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use throng_core::plan::plan_shared_attributes::find_shared_attributes;
use throng_core::plan::{Plan, PlanGroup};
use throng_core::values::codebook::{Code, Codebook};
use throng_core::values::identifier_shapes::IdentifierShape;
use throng_core::values::schema::{Attribute, AttributeType, ChangeFrequency, Role, Schema};
use throng_risk::identifiers::{IdentifierJudgement, IdentifierReason, IdentifierRule, SafeHarborCategory};

const EXAMINED_RECORDS: usize = 1000;
/// For the share of distinct values of an insensitive attribute.
const MIN_JUDGED_RECORDS: u64 = 20;

/// Returns the warnings from schema and configuration.
pub fn configuration_warnings(config: &Config, schema: &Schema) -> Vec<String> {
    let mut doubts = Vec::new();
    if schema.subject.is_none() && !schema.is_one_record_each {
        doubts.push(format!(
            "the schema {:?} has no subject: every record counts as a person, and one person with {} records forms a class (give the attribute that identifies the person role = \"subject\"; if no person has two records, declare subject = \"record\")",
            schema.name, config.privacy.k
        ));
    }
    for attribute in schema.attributes.iter().filter(|a| a.role == Role::Insensitive) {
        if let Some(category) = SafeHarborCategory::of_name(&attribute.name).filter(|category| names_people(*category))
        {
            doubts
                .push(insensitive_warning(attribute, &format!("has the name of an identifier ({})", category.title())));
        }
    }
    for attribute in
        schema.attributes.iter().filter(|a| a.kind() == AttributeType::Timestamp && a.typing.zone.is_none())
    {
        for format in attribute.typing.dates.formats_without_zone() {
            doubts.push(format!(
                "attribute {:?}: its format {format:?} has no time zone, and UTC is assumed (set that of the clock, as in zone = \"Europe/Zurich\" or \"UTC\"; add %z where the data has an offset)",
                attribute.name
            ));
        }
    }
    doubts.extend(config.state.secret_file.as_deref().and_then(secret_file_warning));
    if schema.subject.is_some() && !config.privacy.longest_delay().is_zero() && config.release.fragments {
        let groups = group_shapes(config, schema, "").unwrap_or_default();
        let shared = find_shared_attributes(groups.iter().map(|group| group.quasi.as_slice()));
        for group in groups {
            let attribute = |a: usize| &schema.attributes[a];
            let own = || group.quasi.iter().chain(&group.sensitive).copied().filter(|a| !shared.contains(a));
            let said = || own().map(attribute);
            let changing = said().filter(|a| a.changes == Some(ChangeFrequency::Always));
            let still = said().filter(|a| match a.changes {
                Some(changes) => changes != ChangeFrequency::Always,
                None => a.role == Role::Sensitive,
            });
            doubts.extend(mixed_pace_warning(&group.name, &names(still), &names(changing)));
        }
    }
    doubts
}

/// Returns the warnings from the paces of a plan.
pub fn pace_warnings(plan: &Plan, schema: &Schema) -> Vec<String> {
    let pace = |a: usize| plan.paces.iter().find(|pace| pace.attribute == a).map(|pace| pace.changes);
    let shared = plan.attributes_in_several_groups();
    let of = |group: &PlanGroup| {
        let said = || group.unshared_attributes(&shared).filter(|a| !plan.identifiers.contains(a));
        let named = |always: bool| {
            let those =
                said().filter(|&a| pace(a).is_some_and(|changes| (changes == ChangeFrequency::Always) == always));
            names(those.map(|a| &schema.attributes[a]))
        };
        mixed_pace_warning(&group.name, &named(false), &named(true))
    };
    plan.groups.iter().filter_map(of).collect()
}

fn names<'a>(attributes: impl Iterator<Item = &'a Arc<Attribute>>) -> Vec<&'a str> {
    attributes.map(|attribute| attribute.name.as_str()).collect()
}

/// Constant values are released once per window only if no attribute of the group changes.
fn mixed_pace_warning(group: &str, still: &[&str], changing: &[&str]) -> Option<String> {
    (!still.is_empty() && !changing.is_empty()).then(|| {
        let (still, changing) = (still.join(", "), changing.join(", "));
        format!(
            "group {group:?} releases constant attributes of a person ({still}) again with every record, because others change ({changing}): over many batches, the times of records can identify the person (put {still} into a separate [[group]]; if sensitive, declare there how they change: changes = \"never\", \"slowly\" or \"always\")"
        )
    })
}

/// Places and dates do not name subjects.
fn names_people(category: SafeHarborCategory) -> bool {
    !matches!(category, SafeHarborCategory::Geography | SafeHarborCategory::Dates)
}

/// Warns of group access; loading refuses access for all users.
fn secret_file_warning(path: &Path) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    let may = match (mode & 0o044 != 0, mode & 0o022 != 0) {
        (_, true) => "write",
        (true, false) => "read",
        (false, false) => return None,
    };
    Some(format!(
        "state.secret_file {}: others may {may} the file (mode {:o}): with the secret, all possible names of a person can be tested against the digests (chmod 600)",
        path.display(),
        mode & 0o777
    ))
}

/// Returns the warnings from the first records of a source file.
pub fn first_record_warnings(config: &Config, schema: &Schema) -> Vec<String> {
    let path = &config.source.path;
    if config.source.kind != SourceKind::File || !is_rereadable(path) {
        return Vec::new();
    }
    let unreadable = |why: String| vec![format!("source.path: {why}")];
    let read = match read_without_joins(config, schema, path, EXAMINED_RECORDS) {
        Ok(read) => read,
        Err(error) => return unreadable(error.to_string()),
    };
    if !read.absent.is_empty() {
        let names: Vec<&str> = read.absent.iter().map(|a| schema.attributes[*a].name.as_str()).collect();
        return unreadable(format!("{} has no column for {}", path.display(), names.join(", ")));
    }
    read.books.iter().zip(&read.batch.columns).filter_map(|(book, codes)| value_warning(book, codes)).collect()
}

/// Returns the warning about the values of one attribute, if any.
pub fn value_warning(book: &Codebook, codes: &[Code]) -> Option<String> {
    let attribute = book.attribute();
    if !attribute.role.is_releasable() {
        return None;
    }
    if attribute.role != Role::Insensitive {
        return book.first_shape().map(|shape| identifier_shape_warning(attribute, shape));
    }
    let rule =
        IdentifierRule { min_rows: MIN_JUDGED_RECORDS, ..IdentifierRule::for_stream(IdentifierRule::CARDINALITY) };
    let IdentifierJudgement { reasons, .. } = rule.judge(&profile_codes(codes, book), false, None);
    let why = match reasons.first()? {
        IdentifierReason::Shape { shape, .. } => format!("has values with the shape of {}", shape_title(*shape)),
        _ => "has a different value in nearly every record".to_owned(),
    };
    Some(insensitive_warning(attribute, &why))
}

fn insensitive_warning(attribute: &Attribute, why: &str) -> String {
    format!(
        "attribute {:?} is insensitive and {why}: it is released unchanged (give it the role identifier, or quasi)",
        attribute.name
    )
}

fn identifier_shape_warning(attribute: &Attribute, shape: IdentifierShape) -> String {
    format!(
        "attribute {:?} has values with the shape of {}: they are released as \"*\" (give it the role identifier; insensitive releases them)",
        attribute.name,
        shape_title(shape)
    )
}

/// Returns the title of a value shape.
pub fn shape_title(shape: IdentifierShape) -> &'static str {
    SafeHarborCategory::of_shape(shape).title()
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::plan::AttributeChangeRate;
    use throng_core::values::digest::DigestKey;
    use throng_core::values::raw_batch::RawToken;

    fn told(role: &str, kind: &str, value: impl Fn(usize) -> String, rows: usize) -> Option<String> {
        let text = format!("name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"{kind}\"\nrole = \"{role}\"\n");
        let schema = Schema::parse(&text, "t.toml", Path::new("")).expect("a schema");
        let mut book = Codebook::new(Arc::clone(&schema.attributes[0]), &DigestKey([1; 32]), 10_000).expect("a book");
        let codes: Vec<Code> =
            (0..rows).map(|row| book.encode(RawToken::Untyped(&value(row))).expect("of the type")).collect();
        value_warning(&book, &codes)
    }

    #[test]
    fn insensitive_identifiers_raise_warning() {
        let mail = |row: usize| format!("p{}@example.org", row % 3);
        assert!(told("insensitive", "string", mail, 9).is_some_and(|d| d.contains("e-mail address")));
        assert!(told("quasi", "string", mail, 9).is_some_and(|d| d.contains("released as \"*\"")));
        assert!(told("insensitive", "integer", |row| row.to_string(), 20).is_some_and(|d| d.contains("nearly every")));
        assert_eq!(told("insensitive", "integer", |row| row.to_string(), 19), None, "too few to tell");
        assert_eq!(told("insensitive", "integer", |row| (row % 5).to_string(), 100), None);
        assert_eq!(told("quasi", "integer", |row| row.to_string(), 100), None, "a crowd protects it");
    }

    #[test]
    fn group_mixing_constant_and_changing_attributes_raises_warning() {
        let told = |activity: &str, diagnosis: &str, settings: &str| {
            let text = format!(
                "name = \"t\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n[[attribute]]\nname = \"activity\"\ntype = \"string\"\n{activity}\n[[attribute]]\nname = \"diagnosis\"\ntype = \"string\"\nrole = \"sensitive\"\n{diagnosis}\n"
            );
            let schema = Schema::parse(&text, "t.toml", Path::new("")).expect("a schema");
            let config: Config = toml::from_str(settings).expect("a configuration");
            configuration_warnings(&config, &schema)
                .into_iter()
                .find(|doubt| doubt.contains("releases constant attributes"))
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
    fn measured_paces_raise_the_same_warning() {
        let text = "name = \"t\"\n[[attribute]]\nname = \"home\"\ntype = \"string\"\n[[attribute]]\nname = \"pulse\"\ntype = \"string\"\n";
        let schema = Schema::parse(text, "t.toml", Path::new("")).expect("a schema");
        let group = |quasi: Vec<usize>| PlanGroup {
            name: "g".to_owned(),
            quasi,
            sensitive: vec![],
            insensitive: vec![],
            ladder: vec![],
            ranges: false,
        };
        let told = |groups: Vec<PlanGroup>, identifiers: Vec<usize>| {
            let pace = |attribute, changes| AttributeChangeRate { attribute, changes, declared: false, share: None };
            let paces = vec![pace(0, ChangeFrequency::Never), pace(1, ChangeFrequency::Always)];
            pace_warnings(&Plan { identifiers, paces, ..Plan::inactive(groups) }, &schema)
        };
        assert_eq!(told(vec![group(vec![0, 1])], vec![]).len(), 1);
        assert!(told(vec![group(vec![0]), group(vec![1])], vec![]).is_empty());
        assert!(told(vec![group(vec![0, 1])], vec![0]).is_empty(), "an identifier is never said");
    }

    #[test]
    fn secret_file_with_group_access_raises_warning() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "x").expect("a file");
        for (mode, says) in
            [(0o600, None), (0o400, None), (0o440, Some("read")), (0o640, Some("read")), (0o660, Some("write"))]
        {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("our file");
            let told = secret_file_warning(&path);
            assert_eq!(told.is_some(), says.is_some(), "{mode:o}");
            assert!(told.is_none_or(|told| told.contains(&format!("others may {}", says.unwrap_or("")))));
        }
    }
}
