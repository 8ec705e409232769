//! Identifier categories of the HIPAA Safe Harbor method (\[HIP], (A)–(R)).

use throng_core::values::identifier_shapes::IdentifierShape;

/// Category of identifiers, in the order of the regulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SafeHarborCategory {
    /// (A) Names.
    Names,
    /// (B) Geographic units smaller than a state.
    Geography,
    /// (C) Dates more precise than a year, and ages over 89.
    Dates,
    /// (D) Telephone numbers.
    Telephone,
    /// (E) Fax numbers.
    Fax,
    /// (F) E-mail addresses.
    Email,
    /// (G) Social security (and other national) numbers.
    SocialSecurity,
    /// (H) Medical record numbers.
    MedicalRecord,
    /// (I) Health plan beneficiary numbers.
    HealthPlan,
    /// (J) Account numbers, payment cards included.
    Account,
    /// (K) Certificate and licence numbers.
    Licence,
    /// (L) Vehicle identifiers and plates.
    Vehicle,
    /// (M) Device identifiers and serial numbers.
    Device,
    /// (N) URLs.
    Url,
    /// (O) IP addresses.
    IpAddress,
    /// (P) Biometric identifiers.
    Biometric,
    /// (Q) Full-face photographs.
    Photograph,
    /// (R) Any other unique number, characteristic or code.
    OtherCode,
}

impl SafeHarborCategory {
    /// All categories, in order.
    pub const ALL: [Self; 18] = [
        Self::Names,
        Self::Geography,
        Self::Dates,
        Self::Telephone,
        Self::Fax,
        Self::Email,
        Self::SocialSecurity,
        Self::MedicalRecord,
        Self::HealthPlan,
        Self::Account,
        Self::Licence,
        Self::Vehicle,
        Self::Device,
        Self::Url,
        Self::IpAddress,
        Self::Biometric,
        Self::Photograph,
        Self::OtherCode,
    ];

    /// Returns the category of a value's shape.
    pub fn of_shape(shape: IdentifierShape) -> Self {
        match shape {
            IdentifierShape::Email => Self::Email,
            IdentifierShape::Url => Self::Url,
            IdentifierShape::Uuid => Self::OtherCode,
            IdentifierShape::MacAddress => Self::Device,
            IdentifierShape::IpAddress => Self::IpAddress,
            IdentifierShape::NationalId => Self::SocialSecurity,
            IdentifierShape::CreditCard => Self::Account,
            IdentifierShape::Phone => Self::Telephone,
        }
    }

    /// Returns the category suggested by a header, if any.
    pub fn of_name(header: &str) -> Option<Self> {
        let words = header_words(header);
        // Earlier entries take precedence.
        HEADER_WORDS.iter().find(|(said, _)| contains_run(&words, said)).map(|&(_, category)| category)
    }

    /// Returns the name in a report.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Geography => "place smaller than a state",
            Self::Dates => "date or age over 89",
            Self::Telephone => "telephone number",
            Self::Fax => "fax number",
            Self::Email => "e-mail address",
            Self::SocialSecurity => "social security number",
            Self::MedicalRecord => "medical record number",
            Self::HealthPlan => "health plan number",
            Self::Account => "account number",
            Self::Licence => "licence number",
            Self::Vehicle => "vehicle identifier",
            Self::Device => "device identifier",
            Self::Url => "URL",
            Self::IpAddress => "IP address",
            Self::Biometric => "biometric identifier",
            Self::Photograph => "photograph",
            Self::OtherCode => "other unique code",
        }
    }
}

/// Word sequences of headers with their category; the first match decides.
const HEADER_WORDS: [(&[&str], SafeHarborCategory); 71] = [
    (&["ip", "address"], SafeHarborCategory::IpAddress),
    (&["ip"], SafeHarborCategory::IpAddress),
    (&["mac", "address"], SafeHarborCategory::Device),
    (&["email"], SafeHarborCategory::Email),
    (&["e", "mail"], SafeHarborCategory::Email),
    (&["mail", "address"], SafeHarborCategory::Email),
    (&["fax"], SafeHarborCategory::Fax),
    (&["telephone"], SafeHarborCategory::Telephone),
    (&["phone"], SafeHarborCategory::Telephone),
    (&["mobile", "number"], SafeHarborCategory::Telephone),
    (&["ssn"], SafeHarborCategory::SocialSecurity),
    (&["social", "security"], SafeHarborCategory::SocialSecurity),
    (&["national", "id"], SafeHarborCategory::SocialSecurity),
    (&["ahv"], SafeHarborCategory::SocialSecurity),
    (&["medical", "record"], SafeHarborCategory::MedicalRecord),
    (&["mrn"], SafeHarborCategory::MedicalRecord),
    (&["patient", "id"], SafeHarborCategory::MedicalRecord),
    (&["patient", "number"], SafeHarborCategory::MedicalRecord),
    (&["health", "plan"], SafeHarborCategory::HealthPlan),
    (&["insurance", "number"], SafeHarborCategory::HealthPlan),
    (&["beneficiary"], SafeHarborCategory::HealthPlan),
    (&["policy", "number"], SafeHarborCategory::HealthPlan),
    (&["iban"], SafeHarborCategory::Account),
    (&["account"], SafeHarborCategory::Account),
    (&["credit", "card"], SafeHarborCategory::Account),
    (&["card", "number"], SafeHarborCategory::Account),
    (&["license", "plate"], SafeHarborCategory::Vehicle),
    (&["licence", "plate"], SafeHarborCategory::Vehicle),
    (&["number", "plate"], SafeHarborCategory::Vehicle),
    (&["vin"], SafeHarborCategory::Vehicle),
    (&["vehicle"], SafeHarborCategory::Vehicle),
    (&["license"], SafeHarborCategory::Licence),
    (&["licence"], SafeHarborCategory::Licence),
    (&["certificate"], SafeHarborCategory::Licence),
    (&["passport"], SafeHarborCategory::Licence),
    (&["serial"], SafeHarborCategory::Device),
    (&["imei"], SafeHarborCategory::Device),
    (&["udi"], SafeHarborCategory::Device),
    (&["device", "id"], SafeHarborCategory::Device),
    (&["url"], SafeHarborCategory::Url),
    (&["website"], SafeHarborCategory::Url),
    (&["homepage"], SafeHarborCategory::Url),
    (&["fingerprint"], SafeHarborCategory::Biometric),
    (&["voiceprint"], SafeHarborCategory::Biometric),
    (&["retina"], SafeHarborCategory::Biometric),
    (&["iris", "scan"], SafeHarborCategory::Biometric),
    (&["photo"], SafeHarborCategory::Photograph),
    (&["photograph"], SafeHarborCategory::Photograph),
    (&["portrait"], SafeHarborCategory::Photograph),
    (&["first", "name"], SafeHarborCategory::Names),
    (&["last", "name"], SafeHarborCategory::Names),
    (&["full", "name"], SafeHarborCategory::Names),
    (&["family", "name"], SafeHarborCategory::Names),
    (&["given", "name"], SafeHarborCategory::Names),
    (&["surname"], SafeHarborCategory::Names),
    (&["patient", "name"], SafeHarborCategory::Names),
    (&["zip"], SafeHarborCategory::Geography),
    (&["zipcode"], SafeHarborCategory::Geography),
    (&["postcode"], SafeHarborCategory::Geography),
    (&["postal"], SafeHarborCategory::Geography),
    (&["street"], SafeHarborCategory::Geography),
    (&["city"], SafeHarborCategory::Geography),
    (&["county"], SafeHarborCategory::Geography),
    (&["latitude"], SafeHarborCategory::Geography),
    (&["longitude"], SafeHarborCategory::Geography),
    (&["birth"], SafeHarborCategory::Dates),
    (&["birthday"], SafeHarborCategory::Dates),
    (&["dob"], SafeHarborCategory::Dates),
    (&["date"], SafeHarborCategory::Dates),
    (&["timestamp"], SafeHarborCategory::Dates),
    (&["uuid"], SafeHarborCategory::OtherCode),
];

/// Splits a header into lower-case words, such as `patientID` into two.
pub fn header_words(header: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut open, mut lower) = (false, false);
    for c in header.chars() {
        if !c.is_alphanumeric() {
            (open, lower) = (false, false);
            continue;
        }
        if !open || lower && c.is_uppercase() {
            words.push(String::new());
        }
        (open, lower) = (true, c.is_lowercase());
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

fn contains_run(words: &[String], said: &[&str]) -> bool {
    words.windows(said.len()).any(|run| run.iter().zip(said).all(|(a, b)| a == b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_words_determine_the_category() {
        for (header, category) in [
            ("email", SafeHarborCategory::Email),
            ("user.eMail", SafeHarborCategory::Email),
            ("patientID", SafeHarborCategory::MedicalRecord),
            ("Patient Id", SafeHarborCategory::MedicalRecord),
            ("first_name", SafeHarborCategory::Names),
            ("fax-no", SafeHarborCategory::Fax),
            ("phone", SafeHarborCategory::Telephone),
            ("SSN", SafeHarborCategory::SocialSecurity),
            ("policyNumber", SafeHarborCategory::HealthPlan),
            ("iban", SafeHarborCategory::Account),
            ("passport_no", SafeHarborCategory::Licence),
            ("license_plate", SafeHarborCategory::Vehicle),
            ("device.serial", SafeHarborCategory::Device),
            ("homepage", SafeHarborCategory::Url),
            ("client_ip_address", SafeHarborCategory::IpAddress),
            ("fingerprint", SafeHarborCategory::Biometric),
            ("photo", SafeHarborCategory::Photograph),
            ("zip", SafeHarborCategory::Geography),
            ("date_of_birth", SafeHarborCategory::Dates),
            ("uuid", SafeHarborCategory::OtherCode),
        ] {
            assert_eq!(SafeHarborCategory::of_name(header), Some(category), "{header}");
        }
        for header in ["age", "sex", "steps", "trip", "description", "shipping", "citywide", "updated", "", "日本"] {
            assert_eq!(SafeHarborCategory::of_name(header), None, "{header}");
        }
    }

    #[test]
    fn every_category_has_a_header_word() {
        for category in SafeHarborCategory::ALL {
            assert!(HEADER_WORDS.iter().any(|&(_, found)| found == category), "{category:?} has no word");
        }
        assert_eq!(SafeHarborCategory::ALL.len(), 18);
    }
}
