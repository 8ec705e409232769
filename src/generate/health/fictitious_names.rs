//! Fictitious names: only numbers of distinct values are published.

/// Returns a unique word per number: digits in base 70 as syllables.
#[must_use]
pub fn word(number: usize) -> String {
    const CONSONANTS: &[u8; 14] = b"bdfghklmnprstv";
    const VOWELS: &[u8; 5] = b"aeiou";
    let mut rest = number + 70;
    let mut syllables = Vec::new();
    while rest > 0 {
        let digit = rest % 70;
        syllables.push([CONSONANTS[digit / 5], VOWELS[digit % 5]]);
        rest /= 70;
    }
    syllables.iter().rev().flatten().map(|&b| char::from(b)).collect()
}

/// Returns the word with a capital.
#[must_use]
pub fn name(number: usize) -> String {
    let mut word = word(number);
    word[..1].make_ascii_uppercase();
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn words_are_unique_per_number() {
        let words: BTreeSet<String> = (0..40_000).map(word).collect();
        assert_eq!(words.len(), 40_000);
        assert!(words.iter().all(|w| w.len() >= 4 && w.bytes().all(|b| b.is_ascii_lowercase())));
    }
}
