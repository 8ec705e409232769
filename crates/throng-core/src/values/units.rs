//! Units of measurement.

use super::decimal::{MAX_DECIMALS, decimals_of, exact_ticks, push_ticks};

/// Linear conversion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conversion {
    /// Finite factor, not 0.
    pub scale: f64,
    /// Finite number added to the product.
    pub offset: f64,
}

impl Conversion {
    /// Leaves numbers as they are.
    pub const IDENTITY: Self = Self { scale: 1.0, offset: 0.0 };

    /// Returns the converted number, if finite.
    pub fn convert(self, value: f64) -> Option<f64> {
        let converted = self.in_decimals(value).unwrap_or(value * self.scale + self.offset);
        converted.is_finite().then_some(converted)
    }

    /// Exact in decimals: 401 · 0.1 − 40 is 0.1. None above [`MAX_DECIMALS`].
    fn in_decimals(self, value: f64) -> Option<f64> {
        let places = [value, self.scale, self.offset].map(decimals_of);
        if places.iter().any(|places| *places > MAX_DECIMALS) {
            return None;
        }
        let [of_value, of_scale, of_offset] = places;
        let decimals = (of_value + of_scale).max(of_offset);
        let product = exact_ticks(value, of_value)?.checked_mul(exact_ticks(self.scale, of_scale)?)?;
        let product = product.checked_mul(10_i128.checked_pow(decimals - of_value - of_scale)?)?;
        let mut text = String::new();
        push_ticks(&mut text, product.checked_add(exact_ticks(self.offset, decimals)?)?, decimals);
        text.parse().ok()
    }

    /// Returns the conversion between units of one quantity.
    pub fn between(from: &str, to: &str) -> Option<Self> {
        let (from, to) = (unit(from)?, unit(to)?);
        if from.0 != to.0 {
            return None;
        }
        // Through the base unit: base = value · scale + offset.
        Some(Self { scale: from.1 / to.1, offset: (from.2 - to.2) / to.1 })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PhysicalQuantity {
    Temperature,
    Length,
    Mass,
    Time,
    Speed,
    Energy,
    Pressure,
    Rate,
    Share,
}

/// Returns quantity, scale and offset to kelvin, metre, kilogram, second, metre per second, joule, pascal, one per second or one.
fn unit(name: &str) -> Option<(PhysicalQuantity, f64, f64)> {
    Some(match name {
        "K" => (PhysicalQuantity::Temperature, 1.0, 0.0),
        "°C" | "C" | "degC" | "Cel" => (PhysicalQuantity::Temperature, 1.0, 273.15),
        "°F" | "F" | "degF" | "[degF]" => (PhysicalQuantity::Temperature, 5.0 / 9.0, 459.67 * 5.0 / 9.0),
        "m" => (PhysicalQuantity::Length, 1.0, 0.0),
        "km" => (PhysicalQuantity::Length, 1_000.0, 0.0),
        "cm" => (PhysicalQuantity::Length, 0.01, 0.0),
        "mm" => (PhysicalQuantity::Length, 0.001, 0.0),
        "mi" | "[mi_i]" => (PhysicalQuantity::Length, 1_609.344, 0.0),
        "yd" | "[yd_i]" => (PhysicalQuantity::Length, 0.9144, 0.0),
        "ft" | "[ft_i]" => (PhysicalQuantity::Length, 0.3048, 0.0),
        "in" | "[in_i]" => (PhysicalQuantity::Length, 0.0254, 0.0),
        "kg" => (PhysicalQuantity::Mass, 1.0, 0.0),
        "g" => (PhysicalQuantity::Mass, 0.001, 0.0),
        "lb" | "[lb_av]" => (PhysicalQuantity::Mass, 0.453_592_37, 0.0),
        "oz" | "[oz_av]" => (PhysicalQuantity::Mass, 0.453_592_37 / 16.0, 0.0),
        "st" | "[stone_av]" => (PhysicalQuantity::Mass, 0.453_592_37 * 14.0, 0.0),
        "s" => (PhysicalQuantity::Time, 1.0, 0.0),
        "ms" => (PhysicalQuantity::Time, 0.001, 0.0),
        "min" => (PhysicalQuantity::Time, 60.0, 0.0),
        "h" => (PhysicalQuantity::Time, 3_600.0, 0.0),
        "d" => (PhysicalQuantity::Time, 86_400.0, 0.0),
        "m/s" => (PhysicalQuantity::Speed, 1.0, 0.0),
        "km/h" => (PhysicalQuantity::Speed, 1.0 / 3.6, 0.0),
        "mph" | "mi/h" | "[mi_i]/h" => (PhysicalQuantity::Speed, 0.447_04, 0.0),
        "J" => (PhysicalQuantity::Energy, 1.0, 0.0),
        "kJ" => (PhysicalQuantity::Energy, 1_000.0, 0.0),
        "cal" => (PhysicalQuantity::Energy, 4.184, 0.0),
        "kcal" => (PhysicalQuantity::Energy, 4_184.0, 0.0),
        "Pa" => (PhysicalQuantity::Pressure, 1.0, 0.0),
        "kPa" => (PhysicalQuantity::Pressure, 1_000.0, 0.0),
        "hPa" | "mbar" => (PhysicalQuantity::Pressure, 100.0, 0.0),
        "mmHg" | "mm[Hg]" => (PhysicalQuantity::Pressure, 133.322_387_415, 0.0),
        "bpm" | "/min" | "1/min" | "count/min" | "beats/min" | "{beats}/min" | "{Beats}/min" | "breaths/min"
        | "{breaths}/min" => (PhysicalQuantity::Rate, 1.0 / 60.0, 0.0),
        "/s" | "1/s" | "count/s" => (PhysicalQuantity::Rate, 1.0, 0.0),
        "1" => (PhysicalQuantity::Share, 1.0, 0.0),
        "%" => (PhysicalQuantity::Share, 0.01, 0.0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_units_convert_correctly() {
        for (from, value, to, wanted) in [
            ("°F", 98.6, "°C", 37.0),
            ("°C", -40.0, "°F", -40.0),
            ("°C", 0.0, "K", 273.15),
            ("mi", 26.218_757, "km", 42.195),
            ("lb", 150.0, "kg", 68.038_855_5),
            ("kcal", 1.0, "kJ", 4.184),
            ("mph", 60.0, "km/h", 96.560_64),
            ("mmHg", 120.0, "kPa", 15.998_686_489_8),
            ("min", 90.0, "h", 1.5),
            ("%", 97.5, "1", 0.975),
        ] {
            let converted = Conversion::between(from, to).and_then(|c| c.convert(value)).expect("known units");
            assert!((converted - wanted).abs() < 1e-6 * wanted.abs().max(1.0), "{value} {from} = {converted} {to}");
        }
        assert_eq!(Conversion::between("kg", "km"), None);
        assert_eq!(Conversion::between("bpm", "Hz"), None);
        assert_eq!(Conversion { scale: 1e300, offset: 0.0 }.convert(1e300), None);
    }

    #[test]
    fn decimal_conversion_is_exact() {
        for (scale, offset, value, wanted) in [
            (0.1, -40.0, 500.0, 10.0),
            (0.1, -40.0, 400.0, 0.0),
            (0.1, -40.0, 401.0, 0.1),
            (0.1, -40.0, 655.0, 25.5),
            (0.1, 0.0, 3.0, 0.3),
            (1.1, 0.2, 0.1, 0.31),
            (-0.001, 0.007, 7.0, 0.0),
            (1e-12, 0.0, 5.0, 5e-12),
        ] {
            let converted = Conversion { scale, offset }.convert(value).expect("a finite number");
            assert!(converted.to_bits() == f64::to_bits(wanted), "{value} · {scale} + {offset} = {converted}");
        }
    }
}
