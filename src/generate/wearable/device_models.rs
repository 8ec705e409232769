//! Fictitious devices and sensors.

/// Sensors of some devices only.
pub const HRV: u8 = 1;
pub const SPO2: u8 = 2;
pub const SKIN_TEMPERATURE: u8 = 4;
pub const GPS: u8 = 8;
pub const SLEEP: u8 = 16;
const ALL_SENSORS: u8 = 31;

/// Device model.
#[derive(Debug)]
pub struct DeviceModel {
    pub name: &'static str,
    /// Percent of subjects, in the first and shifted cohort.
    pub share: f64,
    pub shifted_share: f64,
    pub sensors: u8,
    /// Lost readings, relative to the average.
    pub losses: f64,
    /// Scatter, relative to the average.
    pub scatter: f64,
    /// Share of lost readings written as null; others have no key.
    pub writes_null: f64,
    pub battery_days: f64,
    /// Versions, newest first, with percentages.
    pub firmware: &'static [(&'static str, f64)],
}

const fn model(
    name: &'static str,
    [share, shifted_share]: [f64; 2],
    sensors: u8,
    [losses, scatter, writes_null, battery_days]: [f64; 4],
    firmware: &'static [(&'static str, f64)],
) -> DeviceModel {
    DeviceModel { name, share, shifted_share, sensors, losses, scatter, writes_null, battery_days, firmware }
}

/// Name, shares, sensors, losses, scatter, null share, battery days, and firmware.
#[rustfmt::skip]
pub const DEVICE_MODELS: [DeviceModel; 9] = [
    model("Pulse 3", [31.0, 12.0], ALL_SENSORS, [1.0, 1.0, 1.0, 5.0],
        &[("4.2.1", 62.0), ("4.2.0", 21.0), ("4.1.3", 12.0), ("4.0.7", 5.0)]),
    model("Aura S", [18.0, 9.0], HRV | SPO2 | SKIN_TEMPERATURE | SLEEP, [0.6, 0.8, 0.5, 6.0],
        &[("2.9.0", 80.0), ("2.8.4", 20.0)]),
    model("Pulse 2", [14.0, 4.0], HRV | GPS | SLEEP, [1.8, 1.4, 0.0, 4.0],
        &[("3.8.9", 71.0), ("3.8.2", 19.0), ("3.6.0", 10.0)]),
    model("Orbit Pro", [12.0, 10.0], ALL_SENSORS, [0.8, 0.7, 1.0, 1.5],
        &[("11.3", 55.0), ("11.2", 30.0), ("10.9", 15.0)]),
    model("Orbit", [9.0, 5.0], HRV | SKIN_TEMPERATURE | GPS | SLEEP, [1.0, 1.0, 1.0, 1.5],
        &[("11.3", 48.0), ("11.2", 33.0), ("10.9", 19.0)]),
    model("Step One", [7.0, 8.0], SLEEP, [2.5, 1.8, 0.0, 10.0],
        &[("1.0.4", 90.0), ("1.0.2", 10.0)]),
    model("Trail 5", [5.0, 7.0], ALL_SENSORS, [0.7, 0.7, 0.8, 14.0],
        &[("20.11", 66.0), ("20.08", 34.0)]),
    model("Aura X", [2.5, 15.0], HRV | SPO2 | SKIN_TEMPERATURE | SLEEP, [0.5, 0.6, 0.5, 7.0],
        &[("3.0.1", 85.0), ("3.0.0", 15.0)]),
    model("Pulse 4", [1.5, 30.0], ALL_SENSORS, [0.7, 0.7, 1.0, 5.0],
        &[("5.0.2", 77.0), ("5.0.1", 23.0)]),
];
