//! The device models on this invented market, and what each can measure.

/// Sensors that not every device has.
pub const HRV: u8 = 1;
pub const SPO2: u8 = 2;
pub const SKIN: u8 = 4;
pub const GPS: u8 = 8;
pub const SLEEP: u8 = 16;
const ALL: u8 = 31;

/// A device model.
#[derive(Debug)]
pub struct Model {
    pub name: &'static str,
    /// Share of subjects who wear it, in percent, and the share in the shifted cohort.
    pub share: f64,
    pub shifted_share: f64,
    pub sensors: u8,
    /// How often it loses a reading, relative to the average device.
    pub losses: f64,
    /// How far its readings scatter, relative to the average device.
    pub scatter: f64,
    /// Share of lost readings that it writes as null; it leaves out the others.
    pub writes_null: f64,
    pub battery_days: f64,
    /// Versions in use, newest first, with their shares in percent.
    pub firmware: &'static [(&'static str, f64)],
}

pub const MODELS: [Model; 9] = [
    Model {
        name: "Pulse 3",
        share: 31.0,
        shifted_share: 12.0,
        sensors: ALL,
        losses: 1.0,
        scatter: 1.0,
        writes_null: 1.0,
        battery_days: 5.0,
        firmware: &[("4.2.1", 62.0), ("4.2.0", 21.0), ("4.1.3", 12.0), ("4.0.7", 5.0)],
    },
    Model {
        name: "Aura S",
        share: 18.0,
        shifted_share: 9.0,
        sensors: HRV | SPO2 | SKIN | SLEEP,
        losses: 0.6,
        scatter: 0.8,
        writes_null: 0.5,
        battery_days: 6.0,
        firmware: &[("2.9.0", 80.0), ("2.8.4", 20.0)],
    },
    Model {
        name: "Pulse 2",
        share: 14.0,
        shifted_share: 4.0,
        sensors: HRV | GPS | SLEEP,
        losses: 1.8,
        scatter: 1.4,
        writes_null: 0.0,
        battery_days: 4.0,
        firmware: &[("3.8.9", 71.0), ("3.8.2", 19.0), ("3.6.0", 10.0)],
    },
    Model {
        name: "Orbit Pro",
        share: 12.0,
        shifted_share: 10.0,
        sensors: ALL,
        losses: 0.8,
        scatter: 0.7,
        writes_null: 1.0,
        battery_days: 1.5,
        firmware: &[("11.3", 55.0), ("11.2", 30.0), ("10.9", 15.0)],
    },
    Model {
        name: "Orbit",
        share: 9.0,
        shifted_share: 5.0,
        sensors: HRV | SKIN | GPS | SLEEP,
        losses: 1.0,
        scatter: 1.0,
        writes_null: 1.0,
        battery_days: 1.5,
        firmware: &[("11.3", 48.0), ("11.2", 33.0), ("10.9", 19.0)],
    },
    Model {
        name: "Step One",
        share: 7.0,
        shifted_share: 8.0,
        sensors: SLEEP,
        losses: 2.5,
        scatter: 1.8,
        writes_null: 0.0,
        battery_days: 10.0,
        firmware: &[("1.0.4", 90.0), ("1.0.2", 10.0)],
    },
    Model {
        name: "Trail 5",
        share: 5.0,
        shifted_share: 7.0,
        sensors: ALL,
        losses: 0.7,
        scatter: 0.7,
        writes_null: 0.8,
        battery_days: 14.0,
        firmware: &[("20.11", 66.0), ("20.08", 34.0)],
    },
    Model {
        name: "Aura X",
        share: 2.5,
        shifted_share: 15.0,
        sensors: HRV | SPO2 | SKIN | SLEEP,
        losses: 0.5,
        scatter: 0.6,
        writes_null: 0.5,
        battery_days: 7.0,
        firmware: &[("3.0.1", 85.0), ("3.0.0", 15.0)],
    },
    Model {
        name: "Pulse 4",
        share: 1.5,
        shifted_share: 30.0,
        sensors: ALL,
        losses: 0.7,
        scatter: 0.7,
        writes_null: 1.0,
        battery_days: 5.0,
        firmware: &[("5.0.2", 77.0), ("5.0.1", 23.0)],
    },
];
