//! Checks that all Kafka clients of the daemon are created in one module.

use std::fs;
use std::path::Path;

/// The connection module of the daemon, and the record generator.
const DOORS: [&str; 2] = ["crates/throng-kafka/src/connection.rs", "src/generate/record_publisher.rs"];

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if let Ok(text) = fs::read_to_string(&path) {
            found.push((path.display().to_string(), text));
        }
    }
}

#[test]
fn kafka_clients_are_created_in_connection_module_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    sources(&root.join("src"), &mut found);
    sources(&root.join("crates"), &mut found);
    let mut doors = 0;
    for (name, text) in &found {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let makes = code.contains("create_with_context")
            || code.contains("rdkafka::ClientConfig")
            || code.contains("config::ClientConfig");
        if DOORS.iter().any(|door| name.ends_with(door)) {
            doors += usize::from(makes);
        } else {
            assert!(!makes, "{name} makes a Kafka client of its own: ask Cluster for one");
        }
    }
    assert_eq!(doors, DOORS.len());
}
