//! Exact decimals as integer ticks of 10⁻ᵈ: no rounding of interval bounds.

/// Maximum number of decimals.
pub const MAX_DECIMALS: u32 = 9;

/// Number rounded down to whole ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlooredTicks {
    /// Number of ticks.
    pub ticks: i128,
    /// True without rounding.
    pub exact: bool,
}

/// Returns the decimals of the shortest spelling (1 for 0.5).
pub fn decimals_of(x: f64) -> u32 {
    let text = format!("{x}");
    text.split_once('.').map_or(0, |(_, fraction)| u32::try_from(fraction.len()).unwrap_or(u32::MAX))
}

/// Returns `x` in ticks of 10⁻ᵈ, if whole.
pub fn exact_ticks(x: f64, decimals: u32) -> Option<i128> {
    exact(&format!("{x}"), decimals)
}

/// Returns a decimal number in ticks of 10⁻ᵈ, if whole.
pub fn exact(text: &str, decimals: u32) -> Option<i128> {
    let floor = floor_ticks(text, decimals)?;
    floor.exact.then_some(floor.ticks)
}

/// Rounds a decimal number down to ticks of 10⁻ᵈ; none if invalid or too large.
pub fn floor_ticks(text: &str, decimals: u32) -> Option<FlooredTicks> {
    if text.contains(['e', 'E']) {
        let x: f64 = text.parse().ok()?;
        // Display writes no exponent, so this recursion ends.
        return if x.is_finite() { floor_ticks(&format!("{x}"), decimals) } else { None };
    }
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut ticks: i128 = 0;
    let mut exact = true;
    let kept = fraction.bytes().chain(std::iter::repeat(b'0')).take(decimals as usize);
    for digit in whole.bytes().chain(kept) {
        if !digit.is_ascii_digit() {
            return None;
        }
        ticks = ticks.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    for digit in fraction.bytes().skip(decimals as usize) {
        if !digit.is_ascii_digit() {
            return None;
        }
        exact &= digit == b'0';
    }
    if negative {
        ticks = -ticks - i128::from(!exact);
    }
    Some(FlooredTicks { ticks, exact })
}

/// Appends `ticks`·10⁻ᵈ with the fewest digits.
pub fn push_ticks(out: &mut String, ticks: i128, decimals: u32) {
    if ticks < 0 {
        out.push('-');
    }
    let (mut rest, mut decimals) = (ticks.unsigned_abs(), decimals as usize);
    while decimals > 0 && rest.is_multiple_of(10) {
        rest /= 10;
        decimals -= 1;
    }
    let mut buffer = [b'0'; 48];
    let mut at = buffer.len();
    let mut written = 0;
    while rest > 0 || written <= decimals {
        if decimals > 0 && written == decimals {
            at -= 1;
            buffer[at] = b'.';
        }
        at -= 1;
        let digit = (rest % 10) as u8;
        buffer[at] = b'0' + digit;
        rest /= 10;
        written += 1;
    }
    out.extend(buffer[at..].iter().map(|&b| char::from(b)));
}

const MAX_PLAIN_DIGITS: i64 = 64;

/// Appends the canonical JSON number: all digits, or `12e99` if long. None if the exponent exceeds 64 bits.
pub fn push_plain(out: &mut String, number: &str) -> Option<()> {
    let (negative, rest) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (digits, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = [whole, fraction].concat();
    let significant = all.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        out.push('0');
        return Some(());
    }
    let cut = (all.len() - all.trim_end_matches('0').len()) as i64 - fraction.len() as i64;
    // Power of ten of the last significant digit.
    let power = exponent.parse::<i64>().ok()?.checked_add(cut)?;
    if negative {
        out.push('-');
    }
    let length = significant.len() as i64;
    match power {
        0.. if length.saturating_add(power) <= MAX_PLAIN_DIGITS => {
            out.push_str(significant);
            out.extend(std::iter::repeat_n('0', power as usize));
        }
        ..0 if length.max(power.saturating_neg()) <= MAX_PLAIN_DIGITS => {
            let behind = power.unsigned_abs() as usize;
            if behind >= significant.len() {
                out.push_str("0.");
                out.extend(std::iter::repeat_n('0', behind - significant.len()));
                out.push_str(significant);
            } else {
                let (before, after) = significant.split_at(significant.len() - behind);
                out.extend([before, ".", after]);
            }
        }
        _ => out.extend([significant, "e", &power.to_string()]),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spelled(ticks: i128, decimals: u32) -> String {
        let mut out = String::new();
        push_ticks(&mut out, ticks, decimals);
        out
    }

    #[test]
    fn ticks_are_written_with_fewest_digits() {
        assert_eq!(spelled(0, 3), "0");
        assert_eq!(spelled(-5, 1), "-0.5");
        assert_eq!(spelled(120, 2), "1.2");
        assert_eq!(spelled(7, 3), "0.007");
        assert_eq!(spelled(-1200, 2), "-12");
        assert_eq!(spelled(i128::from(i64::MIN), 0), i64::MIN.to_string());
    }

    #[test]
    fn negative_numbers_floor_toward_minus_infinity() {
        assert_eq!(floor_ticks("0.3", 1), Some(FlooredTicks { ticks: 3, exact: true }));
        assert_eq!(floor_ticks("-0.35", 1), Some(FlooredTicks { ticks: -4, exact: false }));
        assert_eq!(floor_ticks("-0.30", 1), Some(FlooredTicks { ticks: -3, exact: true }));
        assert_eq!(floor_ticks("1e-3", 3), Some(FlooredTicks { ticks: 1, exact: true }));
        assert_eq!(floor_ticks("", 3), None);
        assert_eq!(floor_ticks("-", 3), None);
        assert_eq!(floor_ticks("1x", 3), None);
        assert_eq!(floor_ticks("1e300", 9), None);
    }

    fn plain(number: &str) -> String {
        let mut out = String::new();
        push_plain(&mut out, number).expect("within reckoning");
        out
    }

    #[test]
    fn equal_numbers_have_one_plain_text() {
        for seven in ["7", "7.0", "7.00", "70e-1", "0.7e1", "0.7E+1", "7e0", "700e-2", "0.0007e4"] {
            assert_eq!(plain(seven), "7");
        }
        for nothing in ["0", "-0", "0.0", "0e99", "-0.00E-5"] {
            assert_eq!(plain(nothing), "0");
        }
        assert_eq!(plain("-12.340e2"), "-1234");
        assert_eq!(plain("1.5"), "1.5");
        assert_eq!(plain("15e-4"), "0.0015");
        assert_eq!(plain("120"), "120");
        assert_eq!(plain("123456789012345678901234567890"), "123456789012345678901234567890");
        assert_ne!(plain("12345678901234567890"), plain("12345678901234567891"), "no double tells them apart");
        assert_eq!(plain("1e300"), "1e300");
        assert_eq!(plain("10e299"), "1e300");
        assert_eq!(plain("1e-300"), "1e-300");
        assert!(plain("1e9223372036854775807").len() < 30);
        for beyond in ["1e99999999999999999999", "10e9223372036854775807", "0.1e-9223372036854775808"] {
            assert_eq!(push_plain(&mut String::new(), beyond), None);
        }
    }

    proptest! {
        /// Point and exponent moved, zeros before and after.
        #[test]
        fn all_number_spellings_give_one_plain_text(
            ticks in -1_000_000_i64..1_000_000,
            power in -80_i32..80,
            moved in 0_usize..30,
            zeros in 0_usize..30,
            other in -1_000_000_i64..1_000_000,
        ) {
            let sign = if ticks < 0 { "-" } else { "" };
            let digits = format!("{:031}{}", ticks.unsigned_abs(), "0".repeat(zeros));
            let at = digits.len() - moved;
            let power_of = power - zeros as i32 + moved as i32;
            let spelled = format!("{sign}{}.{}0e{power_of}", &digits[..at], &digits[at..]);
            prop_assert_eq!(plain(&spelled), plain(&format!("{ticks}e{power}")), "{}", spelled);
            prop_assert_eq!(ticks == other, plain(&format!("{ticks}e{power}")) == plain(&format!("{other}e{power}")));
            let read: f64 = plain(&spelled).parse().unwrap();
            prop_assert_eq!(read, format!("{ticks}e{power}").parse::<f64>().unwrap());
        }

        #[test]
        fn written_ticks_parse_to_the_same_ticks(ticks in -1_000_000_000_000_i128..1_000_000_000_000, decimals in 0_u32..=9) {
            let floor = floor_ticks(&spelled(ticks, decimals), decimals);
            prop_assert_eq!(floor, Some(FlooredTicks { ticks, exact: true }));
        }

        #[test]
        fn floor_is_at_most_one_tick_below_the_number(x in -1e9_f64..1e9, decimals in 0_u32..=4) {
            let floor = floor_ticks(&format!("{x}"), decimals).unwrap();
            let tick = 10_f64.powi(-i32::try_from(decimals).unwrap());
            let low = floor.ticks as f64 * tick;
            prop_assert!(low <= x + 1e-6 && x < low + tick + 1e-6);
            prop_assert_eq!(floor_ticks(&format!("{x:e}"), decimals), Some(floor));
        }
    }
}
