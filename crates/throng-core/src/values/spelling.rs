//! One text for the ways in which people and programs spell the same name.
//!
//! Who is a person is decided here: every spelling that stays apart counts as somebody of his own, and five spellings of
//! one person are a crowd of five. So subjects are merged generously. To merge two people costs a crowd one member; to
//! count one person twice breaks the promise.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, is_nfc_quick, is_nfkc_quick};

/// Which spellings of a text are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// Every text is itself.
    #[default]
    None,
    /// Composed and decomposed letters are one (Unicode's NFC). White space around a text is nothing, any run of it
    /// inside is one space, and characters that nobody sees are nothing.
    Nfc,
    /// As [`Nfc`](Self::Nfc), and letters of another width, ligatures, circled or raised digits and the like are the
    /// plain ones (NFKC).
    Nfkc,
}

/// How a text becomes its one spelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spelling {
    /// Which Unicode spellings are one.
    pub normalize: Normalize,
    /// Upper and lower case are one: Unicode's lower case, of its upper case, of its lower case, so that `ß`, `ẞ`, `ss` and
    /// `SS` are one.
    pub fold: bool,
    /// Texts that spell a number are its digits in full: `7`, `7.0`, `07`, `+7` and `7e0` are one.
    pub numbers: bool,
}

impl Spelling {
    /// Subjects, unless the schema asks for something else.
    pub const OF_SUBJECTS: Self = Self { normalize: Normalize::Nfkc, fold: false, numbers: true };

    /// The one spelling of `text`, numbers left as they are.
    pub fn of(self, text: &str) -> Cow<'_, str> {
        if !self.fold && (self.normalize == Normalize::None || is_plain(text)) {
            return Cow::Borrowed(text);
        }
        let normal = self.normalized(text);
        if !self.fold {
            return normal;
        }
        let folded = normal.to_lowercase().to_uppercase().to_lowercase();
        // Folding may take letters apart.
        match self.normalized(&folded) {
            Cow::Borrowed(_) => Cow::Owned(folded),
            Cow::Owned(normal) => Cow::Owned(normal),
        }
    }

    fn normalized(self, text: &str) -> Cow<'_, str> {
        let seen = text.chars().filter(|c| !is_unseen(*c));
        let composed: String = match self.normalize {
            Normalize::None => return Cow::Borrowed(text),
            _ if is_plain(text) => return Cow::Borrowed(text),
            Normalize::Nfc if is_nfc_quick(seen.clone()) == unicode_normalization::IsNormalized::Yes => seen.collect(),
            Normalize::Nfkc if is_nfkc_quick(seen.clone()) == unicode_normalization::IsNormalized::Yes => {
                seen.collect()
            }
            Normalize::Nfc => seen.nfc().collect(),
            // A few characters are unseen in their compatible form alone.
            Normalize::Nfkc => seen.nfkc().filter(|c| !is_unseen(*c)).collect(),
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

/// Whether every normal form of `text` is itself: printable ASCII, single spaces, none of them around it.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let spaced = bytes.first() == Some(&b' ') || bytes.last() == Some(&b' ') || text.contains("  ");
    !spaced && bytes.iter().all(|b| matches!(b, b' '..=b'~'))
}

/// Characters that are nothing to who reads: Unicode's Default_Ignorable_Code_Point, interlinear marks and control
/// characters that are no white space.
fn is_unseen(c: char) -> bool {
    match c {
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control() && !c.is_whitespace(),
    }
}

/// Whether `text` spells a decimal number: a sign, digits, a point, an exponent, of which only digits must be there.
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

    const NFC: Spelling = Spelling { normalize: Normalize::Nfc, fold: false, numbers: false };
    const NFKC: Spelling = Spelling { normalize: Normalize::Nfkc, fold: false, numbers: false };

    #[test]
    fn what_looks_the_same_is_the_same() {
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
            assert_eq!(NFC.of(text), "José", "{text:?}");
            assert_eq!(NFKC.of(text), "José", "{text:?}");
        }
        assert_eq!(NFC.of("Ana\t\u{2003} Meier\r\n"), "Ana Meier");
        for (text, plain) in
            [("ｊｏｓｅ", "jose"), ("ﬁn", "fin"), ("７", "7"), ("x²", "x2"), ("①", "1"), ("\u{ffa0}a", "a")]
        {
            assert_eq!(NFKC.of(text), plain);
        }
        assert_eq!((NFC.of("７"), NFC.of("ﬁn")), ("７".into(), "ﬁn".into()));
        // Letters of other alphabets that look alike are others; so are digits of other scripts.
        assert_ne!(NFKC.of("раm"), NFKC.of("pam"));
        assert_ne!(NFKC.of("٧"), NFKC.of("7"));
        assert_eq!(Spelling::default().of(" Jose\u{301} "), " Jose\u{301} ");
    }

    #[test]
    fn folding_joins_the_cases() {
        let fold = Spelling { fold: true, ..NFC };
        for (one, other) in
            [("JOSÉ", "jose\u{301}"), ("Straße", "STRASSE"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("I", "i"), ("ẞ", "ss")]
        {
            assert_eq!(fold.of(one), fold.of(other));
        }
        assert_ne!(NFC.of("Ana"), NFC.of("ana"));
        assert_eq!(Spelling { normalize: Normalize::None, ..fold }.of(" Ana "), " ana ");
    }

    #[test]
    fn numbers_are_told_from_texts() {
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
        fn a_spelling_is_its_own(text in "\\PC{0,12}|[ \\t\\u{301}\\u{200b}\\u{a0}aAßİıſΣς\\u{ffa0}ﬁＡ]{0,8}", fold: bool) {
            for normalize in [Normalize::None, Normalize::Nfc, Normalize::Nfkc] {
                let spelling = Spelling { normalize, fold, numbers: false };
                let once = spelling.of(&text).into_owned();
                prop_assert_eq!(spelling.of(&once), once.as_str());
            }
        }

        #[test]
        fn the_short_way_is_the_long_way(text in "[ -~]{0,12}|\\PC{0,8}") {
            for spelling in [NFC, NFKC] {
                let long: String = text.chars().filter(|c| !is_unseen(*c)).collect();
                let long: String = if spelling == NFC { long.nfc().collect() } else { long.nfkc().filter(|c| !is_unseen(*c)).collect() };
                prop_assert_eq!(spelling.of(&text), long.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
    }
}
