//! Numbers in as few bytes as they need: seven bits a byte, the lowest first, the highest bit set while more follow.

pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The next number; `None` where the bytes end, or spell a number in more bytes than it needs or more than 64 bits.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_taken(numbers in proptest::collection::vec(any::<u64>().prop_map(|n| n >> (n % 64)), 0..20)) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|n| put(&mut bytes, *n));
            let mut rest = bytes.as_slice();
            let back: Vec<u64> = std::iter::from_fn(|| take(&mut rest)).collect();
            prop_assert_eq!(back, numbers);
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn one_number_has_one_spelling() {
        assert_eq!(take(&mut [0x80, 0x00].as_slice()), None);
        assert_eq!(take(&mut [0x80].as_slice()), None);
        assert_eq!(take(&mut [0xff; 10].as_slice()), None);
        assert_eq!(take(&mut [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01].as_slice()), Some(u64::MAX));
    }
}
