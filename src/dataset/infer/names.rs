//! Hints in the name of a column. A name can make an attribute more protected, not less.

use throng_risk::identifiers::{Category, words};

/// Words that name a person before a number or code, or alone: research, clinical trials (CDISC), registries and hospitals.
const PERSON: [&str; 91] = [
    // English.
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
    "employee",
    "student",
    "athlete",
    "wearer",
    "volunteer",
    "donor",
    "enrollee",
    "resident",
    "insured",
    "beneficiary",
    "interviewee",
    "examinee",
    "proband",
    "panelist",
    "caregiver",
    // Abbreviations and names of columns in well known data sets.
    "pid",
    "uid",
    "userid",
    "patientid",
    "subjectid",
    "personid",
    "subj",
    "subjid",
    "usubjid",
    "ptid",
    "ppid",
    "ppt",
    "ptnum",
    "patno",
    "patid",
    "mrn",
    "empi",
    "mpi",
    "nhsno",
    "nhsnumber",
    "eid",
    "seqn",
    "idno",
    "projid",
    "partid",
    "studyid",
    "recordid",
    "vp",
    "vpn",
    "vpnr",
    "vpcode",
    "pseudonym",
    "psn",
    // Numbers that states and health services give to people.
    "nhs",
    "ptno",
    "bsn",
    "dni",
    "cpf",
    "curp",
    "pesel",
    "svnr",
    "insz",
    "hkid",
    // German, Dutch and Scandinavian.
    "versuchsperson",
    "teilnehmer",
    "teilnehmerin",
    "patientin",
    "befragter",
    "mitglied",
    "kunde",
    "versicherter",
    "deelnemer",
    "proefpersoon",
    "deltager",
    "deltagare",
    "cpr",
    "personnummer",
    // French, Spanish, Portuguese, Italian and Polish.
    "sujet",
    "participante",
    "paciente",
    "sujeto",
    "sujeito",
    "paziente",
    "soggetto",
    "pacjent",
    "uczestnik",
];
/// Beginnings of words that name a person and go on with an ending of the language or with "number" (`Patientennummer`).
const PERSON_STEMS: [&str; 15] = [
    "patient",
    "particip",
    "proband",
    "teilnehmer",
    "versuchsp",
    "versicherte",
    "deelnemer",
    "proefpers",
    "deltag",
    "pacient",
    "pazient",
    "partecip",
    "pacjent",
    "uczestni",
    "försöksp",
];
/// Words of records and cases, each of one person, who has one or a few of them.
const CASE: [&str; 14] = [
    "record",
    "case",
    "chart",
    "dossier",
    "enrollment",
    "enrolment",
    "randomization",
    "randomisation",
    "rand",
    "fall",
    "akte",
    "caso",
    "cas",
    "expediente",
];
/// Words of visits, stays and samples, each of one person, who has many of them.
const VISIT: [&str; 25] = [
    "visit",
    "encounter",
    "admission",
    "episode",
    "stay",
    "icustay",
    "hadm",
    "hospitalization",
    "appointment",
    "consultation",
    "referral",
    "claim",
    "specimen",
    "sample",
    "screening",
    "accession",
    "session",
    "aufnahme",
    "besuch",
    "aufenthalt",
    "visite",
    "visita",
    "séjour",
    "ricovero",
    "przypadek",
];
/// Beginnings of words of cases that go on with "number" (`Fallnummer`).
const CASE_STEMS: [&str; 5] = ["fallnum", "fallnr", "caseid", "casenum", "caseno"];
/// Last words of the names of identifiers.
const IDENTIFIER: [&str; 25] = [
    "id",
    "ids",
    "uid",
    "uuid",
    "guid",
    "deviceid",
    "casenum",
    "caseno",
    "key",
    "token",
    "hash",
    "serial",
    "barcode",
    "nr",
    "no",
    "num",
    "number",
    "userid",
    "patientid",
    "index",
    "rownum",
    "pseudonym",
    "identifier",
    "identifiant",
    "nummer",
];
/// Words that name an identifier beside a word of a person, case or visit; alone they may be a vocabulary's.
const CODE: [&str; 14] = [
    "code",
    "ref",
    "ident",
    "kennung",
    "kennziffer",
    "chiffre",
    "schlüssel",
    "numéro",
    "numero",
    "número",
    "codice",
    "código",
    "codigo",
    "label",
];
/// Ends of words of identifiers that are written together with the word before (`Fallnummer`).
const IDENTIFIER_ENDS: [&str; 4] = ["nummer", "number", "kennung", "pseudonym"];
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
/// `1.10` is another version than `1.1`.
const VERSION: [&str; 4] = ["version", "firmware", "revision", "build"];
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

    /// How likely it counts people: 3 where it names them, 2 where the person may have several of them (a `user_session_id`,
    /// a `record_id`), 1 for a lone `id` or `code`, else 0.
    pub fn counts_people(&self) -> u8 {
        let is_id = self.is_identifier();
        match self.words.as_slice() {
            [only] if is_person(only) => 3,
            [.., of, _] if is_id && is_person(of) && !self.words.iter().any(|word| is_visit(word)) => 3,
            [first, .., last] if is_id && is_person(last) && CODE.contains(&first.as_str()) => 3,
            [_, ..] if is_id && self.words.iter().any(|word| is_person(word)) => 2,
            _ if is_id && self.words.iter().any(|word| is_case(word)) => 2,
            [only] if only == "id" || only == "code" => 1,
            _ => 0,
        }
    }

    /// The Safe Harbor category of names, numbers and addresses of people; none for places and dates.
    pub fn of_people(&self) -> Option<Category> {
        self.category.filter(|category| !matches!(category, Category::Geography | Category::Dates))
    }

    /// Whether it is the name of a number or code. The order of words differs between languages (`codice paziente`).
    pub fn is_identifier(&self) -> bool {
        let is_code = |word: &String| {
            IDENTIFIER.contains(&word.as_str()) || IDENTIFIER_ENDS.iter().any(|end| word.ends_with(end))
        };
        let is_of = |word: &String| is_person(word) || is_case(word) || is_visit(word);
        let may_be = |word: &String| CODE.contains(&word.as_str());
        match self.words.as_slice() {
            [.., last] if is_code(last) => true,
            [rest @ .., last] if may_be(last) && rest.iter().any(is_of) => true,
            [first, rest @ ..] => (first == "id" || first == "nr" || may_be(first)) && rest.iter().any(is_of),
            [] => false,
        }
    }

    /// Whether values of this name that come back may be codes of people: an identifier, but for a measured index.
    pub fn is_code(&self) -> bool {
        self.is_identifier() && self.words.last().is_none_or(|word| word != "index")
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

    pub fn is_version(&self) -> bool {
        self.has(&VERSION)
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

fn is_person(word: &str) -> bool {
    PERSON.contains(&word) || PERSON_STEMS.iter().any(|stem| word.starts_with(stem))
}

fn is_case(word: &str) -> bool {
    CASE.contains(&word) || CASE_STEMS.iter().any(|stem| word.starts_with(stem))
}

fn is_visit(word: &str) -> bool {
    VISIT.contains(&word)
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
            ("USUBJID", 3),
            ("subject-code", 3),
            ("Patientennummer", 3),
            ("Probanden-ID", 3),
            ("Versuchsperson", 3),
            ("codice paziente", 3),
            ("numéro de patient", 3),
            ("participante", 3),
            ("deelnemer_nr", 3),
            ("record_id", 2),
            ("recordId", 2),
            ("case_no", 2),
            ("Fallnummer", 2),
            ("casenum", 2),
            ("BSN", 3),
            ("ptno", 3),
            ("visit_number", 0),
            ("hadm_id", 0),
            ("diagnosis_code", 0),
            ("numero caso", 2),
            ("case", 0),
            ("id_sujet", 2),
            ("number_of_patients", 0),
            ("participation_rate", 0),
            ("zip_code", 0),
            ("user_session_id", 2),
            ("patient_visit_no", 2),
            ("Id", 1),
            ("id", 1),
            ("device_id", 0),
            ("steps", 0),
        ] {
            assert_eq!(Name::new(name).counts_people(), rank, "{name}");
        }
        for name in [
            "visit_number",
            "hadm_id",
            "session id",
            "device_id",
            "deviceid",
            "Fallnummer",
            "numéro de séjour",
            "specimen code",
        ] {
            assert!(Name::new(name).is_code(), "{name}");
        }
        for name in ["diagnosis_code", "zip code", "body_mass_index", "case", "number_of_children"] {
            assert!(!Name::new(name).is_code(), "{name}");
        }
        assert!(Name::new("e-mail").of_people().is_some() && Name::new("zip").of_people().is_none());
        assert!(Name::new("userName").names_people() && Name::new("name").names_people());
        assert!(!Name::new("step_goal_label").is_written() && Name::new("activity_name").is_written());
        assert!(Name::new("salary-class").is_sensitive() && !Name::new("race").is_sensitive());
    }
}
