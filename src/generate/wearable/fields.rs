//! The 25 attributes, in the order in which they are written.

use crate::generate::layout::Field;

const fn field(section: &'static str, name: &'static str) -> Field {
    Field { name, section }
}

pub const USER_ID: Field = field("user", "user_id");
pub const EMAIL: Field = field("user", "email");
pub const AGE: Field = field("profile", "age");
pub const SEX: Field = field("profile", "sex");
pub const ZIP: Field = field("profile", "zip");
pub const BLOOD_GROUP: Field = field("profile", "blood_group");
pub const HEIGHT_CM: Field = field("profile", "height_cm");
pub const WEIGHT_KG: Field = field("profile", "weight_kg");
pub const DEVICE_SERIAL: Field = field("device", "device_serial");
pub const DEVICE_MODEL: Field = field("device", "device_model");
pub const FIRMWARE: Field = field("device", "firmware");
pub const TIMESTAMP: Field = field("", "timestamp");
pub const ACTIVITY: Field = field("signals", "activity");
pub const HEART_RATE: Field = field("signals", "heart_rate");
pub const RESTING_HR: Field = field("signals", "resting_hr");
pub const HRV_MS: Field = field("signals", "hrv_ms");
pub const SPO2: Field = field("signals", "spo2");
pub const SKIN_TEMP: Field = field("signals", "skin_temp");
pub const STEPS: Field = field("signals", "steps");
pub const CALORIES: Field = field("signals", "calories");
pub const DISTANCE_M: Field = field("signals", "distance_m");
pub const STRESS: Field = field("signals", "stress");
pub const BATTERY: Field = field("signals", "battery");
pub const SLEEP_STAGE: Field = field("signals", "sleep_stage");
pub const POSITION: Field = field("signals", "position");

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
