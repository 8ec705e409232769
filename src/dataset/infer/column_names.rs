//! Hints in column names, which can only increase protection.

use throng_risk::identifiers::{SafeHarborCategory, header_words};

/// Person words, alone or before a number or code, from research, clinical trials (CDISC), registries and hospitals.
const PERSON_WORDS: [&str; 91] = [
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
    // Abbreviations, and columns of well-known data sets.
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
    // Personal numbers of states and health services.
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
/// Stems before an ending or "number" (`Patientennummer`).
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
/// A case belongs to one person, which has few.
const CASE_WORDS: [&str; 14] = [
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
/// A visit belongs to one person, which has many.
const VISIT_WORDS: [&str; 25] = [
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
/// Stems before "number" (`Fallnummer`).
const CASE_STEMS: [&str; 5] = ["fallnum", "fallnr", "caseid", "casenum", "caseno"];
/// Last words of identifiers.
const IDENTIFIER_WORDS: [&str; 25] = [
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
/// Identifiers together with a person, case or visit; alone perhaps a vocabulary.
const CODE_WORDS: [&str; 14] = [
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
/// Endings of compounds (`Fallnummer`).
const IDENTIFIER_ENDINGS: [&str; 4] = ["nummer", "number", "kennung", "pseudonym"];
const PERSONAL_NAME_WORDS: [&str; 12] = [
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
const FREE_TEXT_WORDS: [&str; 13] = [
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
/// GDPR article 9, and money.
const SENSITIVE_WORDS: [&str; 42] = [
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
const TIME_WORDS: [&str; 16] = [
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
const BIRTH_WORDS: [&str; 4] = ["birth", "dob", "birthday", "birthdate"];
const POSTAL_WORDS: [&str; 7] = ["zip", "zipcode", "postcode", "postal", "postalcode", "plz", "zip3"];
/// `1.10` differs from `1.1`.
const VERSION_WORDS: [&str; 4] = ["version", "firmware", "revision", "build"];
const PERCENT_WORDS: [&str; 7] = ["percent", "percentage", "pct", "spo2", "saturation", "efficiency", "score"];

#[derive(Clone, Debug)]
pub(super) struct ColumnName {
    words: Vec<String>,
    category: Option<SafeHarborCategory>,
}

impl ColumnName {
    pub fn new(name: &str) -> Self {
        Self { words: header_words(name), category: SafeHarborCategory::of_name(name) }
    }

    fn has(&self, of: &[&str]) -> bool {
        self.words.iter().any(|word| of.contains(&word.as_str()))
    }

    /// 3: names persons; 2: several per person (`user_session_id`, `record_id`); 1: a lone `id` or `code`; 0: others.
    pub fn subject_rank(&self) -> u8 {
        let is_id = self.is_identifier();
        match self.words.as_slice() {
            [only] if is_person(only) => 3,
            [.., of, _] if is_id && is_person(of) && !self.words.iter().any(|word| is_visit(word)) => 3,
            [first, .., last] if is_id && is_person(last) && CODE_WORDS.contains(&first.as_str()) => 3,
            [_, ..] if is_id && self.words.iter().any(|word| is_person(word)) => 2,
            _ if is_id && self.words.iter().any(|word| is_case(word)) => 2,
            [only] if only == "id" || only == "code" => 1,
            _ => 0,
        }
    }

    /// Safe Harbor category of personal names, numbers and addresses; `None` for places and dates.
    pub fn personal_category(&self) -> Option<SafeHarborCategory> {
        self.category.filter(|category| !matches!(category, SafeHarborCategory::Geography | SafeHarborCategory::Dates))
    }

    /// The word order depends on the language (`codice paziente`).
    pub fn is_identifier(&self) -> bool {
        let is_code = |word: &String| {
            IDENTIFIER_WORDS.contains(&word.as_str()) || IDENTIFIER_ENDINGS.iter().any(|end| word.ends_with(end))
        };
        let is_of = |word: &String| is_person(word) || is_case(word) || is_visit(word);
        let may_be = |word: &String| CODE_WORDS.contains(&word.as_str());
        match self.words.as_slice() {
            [.., last] if is_code(last) => true,
            [rest @ .., last] if may_be(last) && rest.iter().any(is_of) => true,
            [first, rest @ ..] => (first == "id" || first == "nr" || may_be(first)) && rest.iter().any(is_of),
            [] => false,
        }
    }

    /// Repeated values may be subject codes: an identifier, except a measured index.
    pub fn is_code(&self) -> bool {
        self.is_identifier() && self.words.last().is_none_or(|word| word != "index")
    }

    pub fn is_personal_name(&self) -> bool {
        self.has(&PERSONAL_NAME_WORDS)
            || matches!(self.words.as_slice(), [only] if only == "name")
            || self.has(&["street"])
            || (self.has(&["name"]) && self.has(&PERSON_WORDS))
    }

    pub fn is_free_text(&self) -> bool {
        self.has(&FREE_TEXT_WORDS)
    }

    pub fn is_sensitive(&self) -> bool {
        self.has(&SENSITIVE_WORDS)
    }

    pub fn is_temporal(&self) -> bool {
        self.has(&TIME_WORDS)
    }

    pub fn is_birth(&self) -> bool {
        self.has(&BIRTH_WORDS)
    }

    pub fn is_postal(&self) -> bool {
        self.has(&POSTAL_WORDS)
    }

    pub fn is_version(&self) -> bool {
        self.has(&VERSION_WORDS)
    }

    pub fn is_percent(&self) -> bool {
        self.has(&PERCENT_WORDS)
    }

    pub fn is_age(&self) -> bool {
        self.has(&["age"])
    }

    pub fn is_place(&self) -> bool {
        self.has(&["gps", "location", "position", "coordinates", "coordinate", "latlon", "latlng", "geo"])
    }
}

fn is_person(word: &str) -> bool {
    PERSON_WORDS.contains(&word) || PERSON_STEMS.iter().any(|stem| word.starts_with(stem))
}

fn is_case(word: &str) -> bool {
    CASE_WORDS.contains(&word) || CASE_STEMS.iter().any(|stem| word.starts_with(stem))
}

fn is_visit(word: &str) -> bool {
    VISIT_WORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_names_give_expected_hints() {
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
            assert_eq!(ColumnName::new(name).subject_rank(), rank, "{name}");
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
            assert!(ColumnName::new(name).is_code(), "{name}");
        }
        for name in ["diagnosis_code", "zip code", "body_mass_index", "case", "number_of_children"] {
            assert!(!ColumnName::new(name).is_code(), "{name}");
        }
        assert!(
            ColumnName::new("e-mail").personal_category().is_some()
                && ColumnName::new("zip").personal_category().is_none()
        );
        assert!(ColumnName::new("userName").is_personal_name() && ColumnName::new("name").is_personal_name());
        assert!(!ColumnName::new("step_goal_label").is_free_text() && ColumnName::new("activity_name").is_free_text());
        assert!(ColumnName::new("salary-class").is_sensitive() && !ColumnName::new("race").is_sensitive());
    }
}
