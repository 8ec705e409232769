//! What the name of a column says about its values. A name is a hint: it can make an attribute more protected, not less.

use crate::risk::identifiers::{Category, words};

/// Words that name a person where an identifier follows, or alone.
const PERSON: [&str; 20] = [
    "subject",
    "participant",
    "patient",
    "user",
    "person",
    "member",
    "client",
    "customer",
    "respondent",
    "individual",
    "pid",
    "uid",
    "userid",
    "patientid",
    "subjectid",
    "personid",
    "employee",
    "student",
    "athlete",
    "wearer",
];
/// Last words of the names of identifiers.
const IDENTIFIER: [&str; 17] = [
    "id",
    "ids",
    "uid",
    "uuid",
    "guid",
    "key",
    "token",
    "hash",
    "serial",
    "barcode",
    "nr",
    "no",
    "number",
    "userid",
    "patientid",
    "index",
    "rownum",
];
/// Words of columns that hold names of people and accounts.
const PEOPLE_NAMES: [&str; 12] = [
    "username",
    "nickname",
    "login",
    "surname",
    "lastname",
    "firstname",
    "fullname",
    "forename",
    "mail",
    "address",
    "contact",
    "twitter",
];
/// Words of columns that hold what people have written.
const WRITTEN: [&str; 13] = [
    "name",
    "comment",
    "comments",
    "note",
    "notes",
    "text",
    "message",
    "remark",
    "remarks",
    "description",
    "title",
    "feedback",
    "transcript",
];
/// Words of what people are judged by: GDPR article 9, and money.
const SENSITIVE: [&str; 42] = [
    "diagnosis",
    "diagnoses",
    "disease",
    "illness",
    "condition",
    "symptom",
    "symptoms",
    "icd",
    "icd10",
    "disorder",
    "medication",
    "drug",
    "drugs",
    "therapy",
    "hiv",
    "pregnant",
    "pregnancy",
    "disability",
    "religion",
    "faith",
    "ethnicity",
    "sexuality",
    "orientation",
    "party",
    "union",
    "political",
    "politics",
    "conviction",
    "criminal",
    "income",
    "salary",
    "wage",
    "debt",
    "mental",
    "depression",
    "suicide",
    "addiction",
    "smoking",
    "alcohol",
    "genotype",
    "allergy",
    "allergies",
];
/// Words of times.
const TEMPORAL: [&str; 16] = [
    "time",
    "timestamp",
    "date",
    "datetime",
    "ts",
    "at",
    "epoch",
    "day",
    "when",
    "start",
    "end",
    "created",
    "updated",
    "recorded",
    "birth",
    "dob",
];
const BIRTH: [&str; 4] = ["birth", "dob", "birthday", "birthdate"];
const POSTAL: [&str; 7] = ["zip", "zipcode", "postcode", "postal", "postalcode", "plz", "zip3"];
const PERCENT: [&str; 7] = ["percent", "percentage", "pct", "spo2", "saturation", "efficiency", "score"];

/// The words of a column's name.
#[derive(Clone, Debug)]
pub(super) struct Name {
    words: Vec<String>,
    category: Option<Category>,
}

impl Name {
    pub fn new(name: &str) -> Self {
        Self { words: words(name), category: Category::of_name(name) }
    }

    fn has(&self, of: &[&str]) -> bool {
        self.words.iter().any(|word| of.contains(&word.as_str()))
    }

    /// How likely it counts people: 3 where it names them, 2 where what it names may be one of several that a person has (a
    /// `user_session_id`), 1 for a lone `id`, else 0.
    pub fn counts_people(&self) -> u8 {
        let is_id = self.words.last().is_some_and(|word| IDENTIFIER.contains(&word.as_str()));
        match self.words.as_slice() {
            [only] if PERSON.contains(&only.as_str()) => 3,
            [.., of, _] if is_id && PERSON.contains(&of.as_str()) => 3,
            [_, ..] if is_id && self.has(&PERSON) => 2,
            [only] if only == "id" => 1,
            _ => 0,
        }
    }

    /// The Safe Harbor category of names, numbers and addresses of people; none for places and dates.
    pub fn of_people(&self) -> Option<Category> {
        self.category.filter(|category| !matches!(category, Category::Geography | Category::Dates))
    }

    pub fn is_identifier(&self) -> bool {
        self.words.last().is_some_and(|word| IDENTIFIER.contains(&word.as_str()))
    }

    pub fn names_people(&self) -> bool {
        self.has(&PEOPLE_NAMES)
            || matches!(self.words.as_slice(), [only] if only == "name")
            || self.has(&["street"])
            || (self.has(&["name"]) && self.has(&PERSON))
    }

    pub fn is_written(&self) -> bool {
        self.has(&WRITTEN)
    }

    pub fn is_sensitive(&self) -> bool {
        self.has(&SENSITIVE)
    }

    pub fn is_temporal(&self) -> bool {
        self.has(&TEMPORAL)
    }

    pub fn is_birth(&self) -> bool {
        self.has(&BIRTH)
    }

    pub fn is_postal(&self) -> bool {
        self.has(&POSTAL)
    }

    pub fn is_percent(&self) -> bool {
        self.has(&PERCENT)
    }

    pub fn is_age(&self) -> bool {
        self.has(&["age"])
    }

    pub fn is_place(&self) -> bool {
        self.has(&["gps", "location", "position", "coordinates", "coordinate", "latlon", "latlng", "geo"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hint() {
        for (name, rank) in [
            ("user_id", 3),
            ("userId", 3),
            ("participant", 3),
            ("study_patient_no", 3),
            ("user_session_id", 2),
            ("patient_visit_no", 2),
            ("Id", 1),
            ("id", 1),
            ("device_id", 0),
            ("steps", 0),
        ] {
            assert_eq!(Name::new(name).counts_people(), rank, "{name}");
        }
        assert!(Name::new("e-mail").of_people().is_some() && Name::new("zip").of_people().is_none());
        assert!(Name::new("userName").names_people() && Name::new("name").names_people());
        assert!(!Name::new("step_goal_label").is_written() && Name::new("activity_name").is_written());
        assert!(Name::new("salary-class").is_sensitive() && !Name::new("race").is_sensitive());
    }
}
