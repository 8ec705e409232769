//! The 25 attributes, in the order in which they are written.

use crate::generate::layout::Field;

const fn field(name: &'static str) -> Field {
    Field { name }
}

/// Who wears the device.
pub const USER_ID: Field = field("user_id");
/// Electronic mail address.
pub const EMAIL: Field = field("email");
/// Years.
pub const AGE: Field = field("age");
/// Sex.
pub const SEX: Field = field("sex");
/// Postal code.
pub const ZIP: Field = field("zip");
/// Blood group.
pub const BLOOD_GROUP: Field = field("blood_group");
/// Height in cm.
pub const HEIGHT_CM: Field = field("height_cm");
/// Weight in kg.
pub const WEIGHT_KG: Field = field("weight_kg");
/// Serial number of the device.
pub const DEVICE_SERIAL: Field = field("device_serial");
/// Model of the device.
pub const DEVICE_MODEL: Field = field("device_model");
/// Version of its firmware.
pub const FIRMWARE: Field = field("firmware");
/// When it was measured.
pub const TIMESTAMP: Field = field("timestamp");
/// What the person does.
pub const ACTIVITY: Field = field("activity");
/// Beats a minute.
pub const HEART_RATE: Field = field("heart_rate");
/// Beats a minute at rest.
pub const RESTING_HR: Field = field("resting_hr");
/// Heart rate variability in ms.
pub const HRV_MS: Field = field("hrv_ms");
/// Oxygen saturation in %.
pub const SPO2: Field = field("spo2");
/// Temperature of the skin in °C.
pub const SKIN_TEMP: Field = field("skin_temp");
/// Steps of the minute.
pub const STEPS: Field = field("steps");
/// Energy in kcal.
pub const CALORIES: Field = field("calories");
/// Distance in m.
pub const DISTANCE_M: Field = field("distance_m");
/// Stress score.
pub const STRESS: Field = field("stress");
/// Charge in %.
pub const BATTERY: Field = field("battery");
/// Stage of sleep.
pub const SLEEP_STAGE: Field = field("sleep_stage");
/// Where it was measured.
pub const POSITION: Field = field("position");

/// All of them.
pub const FIELDS: [Field; 25] = [
    USER_ID,
    EMAIL,
    AGE,
    SEX,
    ZIP,
    BLOOD_GROUP,
    HEIGHT_CM,
    WEIGHT_KG,
    DEVICE_SERIAL,
    DEVICE_MODEL,
    FIRMWARE,
    TIMESTAMP,
    ACTIVITY,
    HEART_RATE,
    RESTING_HR,
    HRV_MS,
    SPO2,
    SKIN_TEMP,
    STEPS,
    CALORIES,
    DISTANCE_M,
    STRESS,
    BATTERY,
    SLEEP_STAGE,
    POSITION,
];
