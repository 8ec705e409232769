//! Normalization of spellings.
//!
//! Merging is generous: two merged subjects reduce a class by one, but a subject counted twice breaks k-anonymity.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, is_nfc_quick, is_nfkc_quick};

/// Unicode normalization of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnicodeForm {
    /// No normalization.
    #[default]
    None,
    /// NFC; white space is unified, and invisible characters are removed.
    Nfc,
    /// [`Nfc`](Self::Nfc) with compatibility forms (NFKC).
    Nfkc,
}

/// Rules for normalized spellings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spelling {
    /// Unicode form.
    pub normalize: UnicodeForm,
    /// Ignores case: `ß`, `ẞ`, `ss` and `SS` are equal.
    pub fold: bool,
    /// Writes numbers in full: `7`, `7.0`, `07`, `+7` and `7e0` are equal.
    pub numbers: bool,
}

impl Spelling {
    /// Default for subjects.
    pub const SUBJECT_DEFAULT: Self = Self { normalize: UnicodeForm::Nfkc, fold: false, numbers: true };

    /// Returns the normalized text, with numbers unchanged.
    pub fn normalized_text(self, text: &str) -> Cow<'_, str> {
        if !self.fold && (self.normalize == UnicodeForm::None || is_plain(text)) {
            return Cow::Borrowed(text);
        }
        let normal = self.unicode_normalized(text);
        if !self.fold {
            return normal;
        }
        let folded = normal.to_lowercase().to_uppercase().to_lowercase();
        // Case folding may decompose letters.
        match self.unicode_normalized(&folded) {
            Cow::Borrowed(_) => Cow::Owned(folded),
            Cow::Owned(normal) => Cow::Owned(normal),
        }
    }

    fn unicode_normalized(self, text: &str) -> Cow<'_, str> {
        let seen = text.chars().filter(|c| !is_invisible(*c));
        let composed: String = match self.normalize {
            UnicodeForm::None => return Cow::Borrowed(text),
            _ if is_plain(text) => return Cow::Borrowed(text),
            UnicodeForm::Nfc if is_nfc_quick(seen.clone()) == unicode_normalization::IsNormalized::Yes => {
                seen.collect()
            }
            UnicodeForm::Nfkc if is_nfkc_quick(seen.clone()) == unicode_normalization::IsNormalized::Yes => {
                seen.collect()
            }
            UnicodeForm::Nfc => seen.nfc().collect(),
            // Some are invisible only as compatibility form.
            UnicodeForm::Nfkc => seen.nfkc().filter(|c| !is_invisible(*c)).collect(),
        };
        let mut out = String::with_capacity(composed.len());
        for word in composed.split_whitespace() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(word);
        }
        Cow::Owned(out)
    }
}

fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let spaced = bytes.first() == Some(&b' ') || bytes.last() == Some(&b' ') || text.contains("  ");
    !spaced && bytes.iter().all(|b| matches!(b, b' '..=b'~'))
}

/// Default_Ignorable_Code_Point, interlinear marks, and control characters except white space.
fn is_invisible(c: char) -> bool {
    match c {
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control() && !c.is_whitespace(),
    }
}

/// Checks for a decimal number, with optional sign, point and exponent.
pub fn spells_a_number(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, exponent) = rest.split_once(['e', 'E']).map_or((rest, None), |(digits, power)| (digits, Some(power)));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let power = |power: &str| {
        let bare = power.strip_prefix(['+', '-']).unwrap_or(power);
        !bare.is_empty() && all(bare)
    };
    (!whole.is_empty() || !fraction.is_empty()) && all(whole) && all(fraction) && exponent.is_none_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NFC: Spelling = Spelling { normalize: UnicodeForm::Nfc, fold: false, numbers: false };
    const NFKC: Spelling = Spelling { normalize: UnicodeForm::Nfkc, fold: false, numbers: false };

    #[test]
    fn texts_that_look_equal_normalize_to_one_text() {
        for text in [
            "José",
            "Jose\u{301}",
            " José ",
            "José\u{a0}",
            "\u{feff}José",
            "Jo\u{200b}sé",
            "José\u{2800}",
            "Jos\u{ad}e\u{301}\u{0}",
        ] {
            assert_eq!(NFC.normalized_text(text), "José", "{text:?}");
            assert_eq!(NFKC.normalized_text(text), "José", "{text:?}");
        }
        assert_eq!(NFC.normalized_text("Ana\t\u{2003} Meier\r\n"), "Ana Meier");
        for (text, plain) in
            [("ｊｏｓｅ", "jose"), ("ﬁn", "fin"), ("７", "7"), ("x²", "x2"), ("①", "1"), ("\u{ffa0}a", "a")]
        {
            assert_eq!(NFKC.normalized_text(text), plain);
        }
        assert_eq!((NFC.normalized_text("７"), NFC.normalized_text("ﬁn")), ("７".into(), "ﬁn".into()));
        // Letters and digits of other scripts remain distinct.
        assert_ne!(NFKC.normalized_text("раm"), NFKC.normalized_text("pam"));
        assert_ne!(NFKC.normalized_text("٧"), NFKC.normalized_text("7"));
        assert_eq!(Spelling::default().normalized_text(" Jose\u{301} "), " Jose\u{301} ");
    }

    #[test]
    fn case_folding_merges_letter_cases() {
        let fold = Spelling { fold: true, ..NFC };
        for (one, other) in
            [("JOSÉ", "jose\u{301}"), ("Straße", "STRASSE"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("I", "i"), ("ẞ", "ss")]
        {
            assert_eq!(fold.normalized_text(one), fold.normalized_text(other));
        }
        assert_ne!(NFC.normalized_text("Ana"), NFC.normalized_text("ana"));
        assert_eq!(Spelling { normalize: UnicodeForm::None, ..fold }.normalized_text(" Ana "), " ana ");
    }

    #[test]
    fn numbers_in_text_are_recognized() {
        for text in ["7", "07", "7.0", "+7", "-0", ".5", "7.", "7e0", "7E-2", "12345678901234567890123"] {
            assert!(spells_a_number(text), "{text}");
        }
        for text in ["", ".", "e5", "7e", "7e+", "+", "0x7", "7 8", "1,000", "1_000", "inf", "NaN", "7a", "٧", "1.2.3"]
        {
            assert!(!spells_a_number(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn normalization_is_idempotent(text in "\\PC{0,12}|[ \\t\\u{301}\\u{200b}\\u{a0}aAßİıſΣς\\u{ffa0}ﬁＡ]{0,8}", fold: bool) {
            for normalize in [UnicodeForm::None, UnicodeForm::Nfc, UnicodeForm::Nfkc] {
                let spelling = Spelling { normalize, fold, numbers: false };
                let once = spelling.normalized_text(&text).into_owned();
                prop_assert_eq!(spelling.normalized_text(&once), once.as_str());
            }
        }

        #[test]
        fn quick_normalization_equals_full_normalization(text in "[ -~]{0,12}|\\PC{0,8}") {
            for spelling in [NFC, NFKC] {
                let long: String = text.chars().filter(|c| !is_invisible(*c)).collect();
                let long: String = if spelling == NFC { long.nfc().collect() } else { long.nfkc().filter(|c| !is_invisible(*c)).collect() };
                prop_assert_eq!(spelling.normalized_text(&text), long.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
    }
}
