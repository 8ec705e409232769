//! The same people and readings as the platforms keep them: documents in the shapes of Open mHealth, FHIR, the Fitbit web API and
//! RADAR-base. The shapes are theirs, the documents our own.

use super::Wearable;
use super::day::Activity;
use super::signals::Reading;
use crate::generate::layout::{Cell, Layout, date, time};
use crate::generate::{GenerateError, RecordStream, WearableSettings};
use serde_json::{Map, Value, json};

/// How a platform writes readings down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Open mHealth: a data point of a heart rate, header and body.
    OpenMhealth,
    /// FHIR R4: a Bundle of Observations of heart rates.
    FhirBundle,
    /// The Fitbit web API: the heart rates of some minutes of a day, as a series. The person is in the key.
    Fitbit,
    /// RADAR-base: a heart rate, its key beside it.
    Radar,
    /// RADAR-base: what is known of the person, her key beside it; person after person.
    RadarProfile,
}

/// Readings of one document that holds several, a minute apart.
const SERIES: i64 = 4;

/// Documents of one platform, without end.
#[derive(Debug)]
pub struct Documents {
    wearable: Wearable,
    platform: Platform,
    /// Key and value in one: for what has no keys.
    keyed: bool,
}

impl Documents {
    /// Documents for what has keys of its own, or `with_keys` in them. The settings' layout is not looked at.
    ///
    /// # Errors
    /// As [`Wearable::new`].
    pub fn new(settings: &WearableSettings, platform: Platform, with_keys: bool) -> Result<Self, GenerateError> {
        let wearable = Wearable::new(WearableSettings { layout: Layout::Flat, ..settings.clone() })?;
        let has_keys = matches!(platform, Platform::Fitbit | Platform::Radar | Platform::RadarProfile);
        Ok(Self { wearable, platform, keyed: with_keys && has_keys })
    }

    fn user(&self) -> String {
        let mut id = Vec::new();
        self.wearable.append_subject(&mut id);
        String::from_utf8_lossy(&id).into_owned()
    }

    /// Whose the document is; of RADAR-base's heart rates, who observed with what.
    fn key(&self) -> Value {
        let user = self.user();
        match self.platform {
            Platform::Radar => {
                json!({ "projectId": "throng-demo", "userId": user, "sourceId": format!("band-{user}") })
            }
            _ => json!(user),
        }
    }

    fn value(&mut self) -> Value {
        if self.platform == Platform::RadarProfile {
            self.wearable.last = (self.wearable.written % u64::from(self.wearable.settings.subjects)) as usize;
            self.wearable.written += 1;
            return self.profile();
        }
        let seconds = self.wearable.turn();
        match self.platform {
            Platform::OpenMhealth => self.data_point(seconds),
            Platform::FhirBundle => self.bundle(seconds),
            Platform::Fitbit => self.series(seconds),
            Platform::Radar | Platform::RadarProfile => self.heart_rate(seconds),
        }
    }

    fn id(&mut self) -> String {
        uuid::Uuid::from_u64_pair(self.wearable.dice.bits(), self.wearable.dice.bits()).to_string()
    }

    fn readings(&mut self, seconds: i64) -> Vec<(i64, Reading)> {
        (0..SERIES).map(|minute| seconds + 60 * minute).map(|at| (at, self.wearable.reading(at))).collect()
    }

    fn data_point(&mut self, seconds: i64) -> Value {
        let reading = self.wearable.reading(seconds);
        let relation = match reading.activity {
            Activity::Sleep | Activity::Rest | Activity::Vehicle => "at rest",
            _ => "active",
        };
        let mut body = json!({
            "effective_time_frame": { "date_time": moment(seconds) },
            "temporal_relationship_to_physical_activity": relation,
        });
        put(
            &mut body,
            "heart_rate",
            number(reading.heart_rate, |value| json!({ "value": value, "unit": "beats/min" })),
        );
        json!({
            "header": {
                "id": self.id(),
                "user_id": self.user(),
                "creation_date_time": moment(seconds + 1),
                "schema_id": { "namespace": "omh", "name": "heart-rate", "version": "2.0" },
                "acquisition_provenance": { "source_name": "wristband", "modality": "sensed" },
            },
            "body": body,
        })
    }

    fn bundle(&mut self, seconds: i64) -> Value {
        let readings = self.readings(seconds);
        let entries: Vec<Value> = readings
            .into_iter()
            .map(|(at, reading)| {
                let mut observation = json!({
                    "resourceType": "Observation",
                    "id": self.id(),
                    "status": "final",
                    "code": { "coding": [{ "system": "http://loinc.org", "code": "8867-4", "display": "Heart rate" }] },
                    "subject": { "reference": format!("Patient/{}", self.user()) },
                    "effectiveDateTime": moment(at),
                });
                let measured = |rate| json!({ "value": rate, "unit": "beats/minute", "system": "http://unitsofmeasure.org", "code": "/min" });
                put(&mut observation, "valueQuantity", number(reading.heart_rate, measured));
                json!({ "fullUrl": format!("urn:uuid:{}", self.id()), "resource": observation })
            })
            .collect();
        let (id, sent) = (self.id(), moment(seconds + 60 * SERIES));
        json!({ "resourceType": "Bundle", "id": id, "type": "collection", "timestamp": sent, "entry": entries })
    }

    fn series(&mut self, seconds: i64) -> Value {
        let readings = self.readings(seconds);
        let resting = number(readings[0].1.resting_hr, Value::from);
        let mut day =
            json!({ "dateTime": day(seconds), "value": { "customHeartRateZones": [], "heartRateZones": [] } });
        put(&mut day["value"], "restingHeartRate", resting);
        let dataset: Vec<Value> = readings
            .into_iter()
            .map(|(at, reading)| {
                let mut point = json!({ "time": moment(at)[11..19] });
                put(&mut point, "value", number(reading.heart_rate, Value::from));
                point
            })
            .collect();
        json!({
            "activities-heart": [day],
            "activities-heart-intraday": { "dataset": dataset, "datasetInterval": 1, "datasetType": "minute" },
        })
    }

    fn heart_rate(&mut self, seconds: i64) -> Value {
        let reading = self.wearable.reading(seconds);
        let percent = number(reading.battery, |percent| json!(percent as f64 / 100.0));
        json!({
            "time": seconds as f64,
            "timeReceived": seconds as f64 + 1.5,
            "heartRate": number(reading.heart_rate, Value::from),
            "activity": match reading.activity {
                Activity::Sleep | Activity::Rest | Activity::Vehicle => "REST",
                Activity::Walk => "WALK",
                Activity::Run => "RUN",
                Activity::Cycle | Activity::Strength => "UNKNOWN",
            },
            "battery": if percent.is_null() { json!(0.0) } else { percent },
        })
    }

    fn profile(&self) -> Value {
        let mut flat = Vec::new();
        self.wearable.subjects.begin(self.wearable.last, Layout::Flat, &mut flat).close();
        let known: Map<String, Value> = serde_json::from_slice(&flat).expect("we write JSON");
        let age = known.get("age").and_then(Value::as_i64);
        let sex = match known.get("sex").and_then(Value::as_str) {
            Some("female") => "FEMALE",
            Some("male") => "MALE",
            Some(_) => "OTHER",
            None => "UNKNOWN",
        };
        let zip = known.get("zip").cloned().unwrap_or(Value::Null);
        json!({ "birthYear": age.map(|age| self.wearable.year() - age), "sex": sex, "address": { "zip": zip } })
    }
}

impl RecordStream for Documents {
    fn header(&self, _: &mut Vec<u8>) {}

    fn append(&mut self, out: &mut Vec<u8>) {
        let value = self.value();
        let document = if self.keyed { json!({ "key": self.key(), "value": value }) } else { value };
        out.extend_from_slice(document.to_string().as_bytes());
    }

    fn append_subject(&self, out: &mut Vec<u8>) {
        match self.platform {
            Platform::Radar => out.extend_from_slice(self.key().to_string().as_bytes()),
            _ => self.wearable.append_subject(out),
        }
    }
}

/// A measured number as `write` puts it; null where there is none.
fn number(cell: Cell<i64>, write: impl FnOnce(i64) -> Value) -> Value {
    match cell {
        Cell::Value(value) => write(value),
        Cell::Null | Cell::Absent => Value::Null,
    }
}

/// Adds a member that is there.
fn put(object: &mut Value, name: &str, value: Value) {
    if let (Some(object), false) = (object.as_object_mut(), value.is_null()) {
        object.insert(name.to_owned(), value);
    }
}

fn moment(seconds: i64) -> String {
    let mut text = Vec::new();
    time(&mut text, seconds);
    String::from_utf8_lossy(&text).into_owned()
}

fn day(seconds: i64) -> String {
    let mut text = Vec::new();
    date(&mut text, seconds.div_euclid(86_400));
    String::from_utf8_lossy(&text).into_owned()
}
