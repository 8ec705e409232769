//! (wing: telemetry)
