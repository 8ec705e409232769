//! The eighteen categories of identifiers of the HIPAA Safe Harbor method ([HIP], (A)–(R)).

use throng_core::values::shapes::Shape;

/// A category, in the order of the regulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
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

impl Category {
    /// All of them, in order.
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

    /// The category of a value's shape.
    pub fn of_shape(shape: Shape) -> Self {
        match shape {
            Shape::Email => Self::Email,
            Shape::Url => Self::Url,
            Shape::Uuid => Self::OtherCode,
            Shape::MacAddress => Self::Device,
            Shape::IpAddress => Self::IpAddress,
            Shape::NationalId => Self::SocialSecurity,
            Shape::CreditCard => Self::Account,
            Shape::Phone => Self::Telephone,
        }
    }

    /// The category that a header names; none for most headers. Words are told apart by case and by punctuation.
    pub fn of_name(header: &str) -> Option<Self> {
        let words = words(header);
        // Longer expressions first: an IP address is no street, a device serial is no licence.
        WORDS.iter().find(|(said, _)| contains(&words, said)).map(|&(_, category)| category)
    }

    /// What the category is called in a report.
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

/// Expressions of headers, each a run of words; the first that occurs decides.
const WORDS: [(&[&str], Category); 71] = [
    (&["ip", "address"], Category::IpAddress),
    (&["ip"], Category::IpAddress),
    (&["mac", "address"], Category::Device),
    (&["email"], Category::Email),
    (&["e", "mail"], Category::Email),
    (&["mail", "address"], Category::Email),
    (&["fax"], Category::Fax),
    (&["telephone"], Category::Telephone),
    (&["phone"], Category::Telephone),
    (&["mobile", "number"], Category::Telephone),
    (&["ssn"], Category::SocialSecurity),
    (&["social", "security"], Category::SocialSecurity),
    (&["national", "id"], Category::SocialSecurity),
    (&["ahv"], Category::SocialSecurity),
    (&["medical", "record"], Category::MedicalRecord),
    (&["mrn"], Category::MedicalRecord),
    (&["patient", "id"], Category::MedicalRecord),
    (&["patient", "number"], Category::MedicalRecord),
    (&["health", "plan"], Category::HealthPlan),
    (&["insurance", "number"], Category::HealthPlan),
    (&["beneficiary"], Category::HealthPlan),
    (&["policy", "number"], Category::HealthPlan),
    (&["iban"], Category::Account),
    (&["account"], Category::Account),
    (&["credit", "card"], Category::Account),
    (&["card", "number"], Category::Account),
    (&["license", "plate"], Category::Vehicle),
    (&["licence", "plate"], Category::Vehicle),
    (&["number", "plate"], Category::Vehicle),
    (&["vin"], Category::Vehicle),
    (&["vehicle"], Category::Vehicle),
    (&["license"], Category::Licence),
    (&["licence"], Category::Licence),
    (&["certificate"], Category::Licence),
    (&["passport"], Category::Licence),
    (&["serial"], Category::Device),
    (&["imei"], Category::Device),
    (&["udi"], Category::Device),
    (&["device", "id"], Category::Device),
    (&["url"], Category::Url),
    (&["website"], Category::Url),
    (&["homepage"], Category::Url),
    (&["fingerprint"], Category::Biometric),
    (&["voiceprint"], Category::Biometric),
    (&["retina"], Category::Biometric),
    (&["iris", "scan"], Category::Biometric),
    (&["photo"], Category::Photograph),
    (&["photograph"], Category::Photograph),
    (&["portrait"], Category::Photograph),
    (&["first", "name"], Category::Names),
    (&["last", "name"], Category::Names),
    (&["full", "name"], Category::Names),
    (&["family", "name"], Category::Names),
    (&["given", "name"], Category::Names),
    (&["surname"], Category::Names),
    (&["patient", "name"], Category::Names),
    (&["zip"], Category::Geography),
    (&["zipcode"], Category::Geography),
    (&["postcode"], Category::Geography),
    (&["postal"], Category::Geography),
    (&["street"], Category::Geography),
    (&["city"], Category::Geography),
    (&["county"], Category::Geography),
    (&["latitude"], Category::Geography),
    (&["longitude"], Category::Geography),
    (&["birth"], Category::Dates),
    (&["birthday"], Category::Dates),
    (&["dob"], Category::Dates),
    (&["date"], Category::Dates),
    (&["timestamp"], Category::Dates),
    (&["uuid"], Category::OtherCode),
];

/// `patientID`, `patient_id` and `Patient Id` are two words each, in lower case.
pub fn words(header: &str) -> Vec<String> {
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

fn contains(words: &[String], said: &[&str]) -> bool {
    words.windows(said.len()).any(|run| run.iter().zip(said).all(|(a, b)| a == b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_word_by_word() {
        for (header, category) in [
            ("email", Category::Email),
            ("user.eMail", Category::Email),
            ("patientID", Category::MedicalRecord),
            ("Patient Id", Category::MedicalRecord),
            ("first_name", Category::Names),
            ("fax-no", Category::Fax),
            ("phone", Category::Telephone),
            ("SSN", Category::SocialSecurity),
            ("policyNumber", Category::HealthPlan),
            ("iban", Category::Account),
            ("passport_no", Category::Licence),
            ("license_plate", Category::Vehicle),
            ("device.serial", Category::Device),
            ("homepage", Category::Url),
            ("client_ip_address", Category::IpAddress),
            ("fingerprint", Category::Biometric),
            ("photo", Category::Photograph),
            ("zip", Category::Geography),
            ("date_of_birth", Category::Dates),
            ("uuid", Category::OtherCode),
        ] {
            assert_eq!(Category::of_name(header), Some(category), "{header}");
        }
        for header in ["age", "sex", "steps", "trip", "description", "shipping", "citywide", "updated", "", "日本"] {
            assert_eq!(Category::of_name(header), None, "{header}");
        }
    }

    #[test]
    fn every_category_can_be_found() {
        for category in Category::ALL {
            assert!(WORDS.iter().any(|&(_, found)| found == category), "{category:?} has no word");
        }
        assert_eq!(Category::ALL.len(), 18);
    }
}
