//! Units of measurement: from the one in which a device reports to the one in which values leave.

/// Multiplied, then added to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conversion {
    /// What a raw number is multiplied by; finite and not 0.
    pub scale: f64,
    /// What is then added; finite.
    pub offset: f64,
}

impl Conversion {
    /// The converted number; none where it is no finite number any more.
    pub fn convert(self, value: f64) -> Option<f64> {
        let converted = value.mul_add(self.scale, self.offset);
        converted.is_finite().then_some(converted)
    }

    /// From the unit `from` to the unit `to`; none where one of them is not known, or they measure different things.
    pub fn between(from: &str, to: &str) -> Option<Self> {
        let (from, to) = (unit(from)?, unit(to)?);
        if from.0 != to.0 {
            return None;
        }
        // Through the base of what they measure: base = value · scale + offset.
        Some(Self { scale: from.1 / to.1, offset: (from.2 - to.2) / to.1 })
    }
}

/// What a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Temperature,
    Length,
    Mass,
    Time,
    Speed,
    Energy,
    Pressure,
    Share,
}

/// What is measured, and how a value becomes one of the base: kelvin, metre, kilogram, second, metre a second, joule, pascal, one.
fn unit(name: &str) -> Option<(Measure, f64, f64)> {
    Some(match name {
        "K" => (Measure::Temperature, 1.0, 0.0),
        "°C" | "C" | "degC" | "Cel" => (Measure::Temperature, 1.0, 273.15),
        "°F" | "F" | "degF" | "[degF]" => (Measure::Temperature, 5.0 / 9.0, 459.67 * 5.0 / 9.0),
        "m" => (Measure::Length, 1.0, 0.0),
        "km" => (Measure::Length, 1_000.0, 0.0),
        "cm" => (Measure::Length, 0.01, 0.0),
        "mm" => (Measure::Length, 0.001, 0.0),
        "mi" | "[mi_i]" => (Measure::Length, 1_609.344, 0.0),
        "yd" | "[yd_i]" => (Measure::Length, 0.9144, 0.0),
        "ft" | "[ft_i]" => (Measure::Length, 0.3048, 0.0),
        "in" | "[in_i]" => (Measure::Length, 0.0254, 0.0),
        "kg" => (Measure::Mass, 1.0, 0.0),
        "g" => (Measure::Mass, 0.001, 0.0),
        "lb" | "[lb_av]" => (Measure::Mass, 0.453_592_37, 0.0),
        "oz" | "[oz_av]" => (Measure::Mass, 0.453_592_37 / 16.0, 0.0),
        "st" | "[stone_av]" => (Measure::Mass, 0.453_592_37 * 14.0, 0.0),
        "s" => (Measure::Time, 1.0, 0.0),
        "ms" => (Measure::Time, 0.001, 0.0),
        "min" => (Measure::Time, 60.0, 0.0),
        "h" => (Measure::Time, 3_600.0, 0.0),
        "d" => (Measure::Time, 86_400.0, 0.0),
        "m/s" => (Measure::Speed, 1.0, 0.0),
        "km/h" => (Measure::Speed, 1.0 / 3.6, 0.0),
        "mph" | "mi/h" | "[mi_i]/h" => (Measure::Speed, 0.447_04, 0.0),
        "J" => (Measure::Energy, 1.0, 0.0),
        "kJ" => (Measure::Energy, 1_000.0, 0.0),
        "cal" => (Measure::Energy, 4.184, 0.0),
        "kcal" => (Measure::Energy, 4_184.0, 0.0),
        "Pa" => (Measure::Pressure, 1.0, 0.0),
        "kPa" => (Measure::Pressure, 1_000.0, 0.0),
        "hPa" | "mbar" => (Measure::Pressure, 100.0, 0.0),
        "mmHg" | "mm[Hg]" => (Measure::Pressure, 133.322_387_415, 0.0),
        "1" => (Measure::Share, 1.0, 0.0),
        "%" => (Measure::Share, 0.01, 0.0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_know_of_units() {
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
}
