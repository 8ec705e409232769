//! End-to-end streams with each kind of security configuration.

use std::fs;

use crate::security::admin::set_password;
use crate::security::scene::{BATCH, PASSWORD, Scene, TOTAL, write_secret};
use crate::support::binary::get;
use crate::support::daemon::{Stage, finish, finished, records};
use crate::support::kafka::unique;
use crate::support::ports::free_port;

pub fn keeps_quiet(stage: &Stage, secrets: &[&str]) {
    fn walk(path: &std::path::Path, look: &mut dyn FnMut(&std::path::Path)) {
        for entry in fs::read_dir(path).expect("a folder").flatten() {
            if entry.path().is_dir() { walk(&entry.path(), look) } else { look(&entry.path()) }
        }
    }
    let mut looked = 0;
    walk(stage.dir.path(), &mut |path| {
        let bytes = fs::read(path).unwrap_or_default();
        looked += 1;
        for secret in secrets {
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "a secret stands in {}", path.display());
        }
    });
    assert!(looked > 5, "{looked} files");
}

#[test]
fn client_certificate_is_sufficient() {
    let Some(scene) = Scene::shared() else { return };
    let security = format!(
        "protocol = \"tls\"\nca_file = \"{}\"\ncertificate_file = \"{}\"\nkey_file = \"{}\"\n",
        scene.file("ca.pem"),
        scene.file("client.crt"),
        scene.file("client.key")
    );
    let stage = scene.stage("MUTUAL", "client", &security);
    finish(&stage, TOTAL);
}

#[test]
fn every_password_mechanism_authenticates() {
    let Some(scene) = Scene::shared() else { return };
    for mechanism in ["scram-sha-256", "scram-sha-512", "plain"] {
        // The only PLAIN user is in the broker's configuration.
        let user = if mechanism == "plain" { "plain".to_owned() } else { scene.user("user") };
        let stage = scene.stage("SASL", &user, &scene.as_user(mechanism, &user));
        finish(&stage, TOTAL);
        keeps_quiet(&stage, &[PASSWORD]);
    }
    // SCRAM does not reveal the password, so it is permitted without TLS.
    let user = scene.user("bare");
    let security = scene.as_user("scram-sha-512", &user).replace("sasl_tls", "sasl_plaintext");
    let security: Vec<&str> = security.lines().filter(|line| !line.starts_with("ca_file")).collect();
    finish(&scene.stage("BARE", &user, &security.join("\n")), TOTAL);
}

#[test]
fn documented_permissions_suffice_also_after_kill() {
    let Some(scene) = Scene::shared() else { return };
    let user = scene.user("least");
    let stage = scene.stage("SASL", &user, &scene.as_user("scram-sha-512", &user));
    stage.configure("only", 0, BATCH, "1h");
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(3 * BATCH, &mut [&mut daemon]);
    daemon.kill();
    let seen = finish(&stage, TOTAL);
    let lines: usize = seen.released.values().map(Vec::len).sum();
    assert!(lines > TOTAL / 2, "{lines} lines of {TOTAL} records");
}

#[test]
fn changed_password_file_is_read_at_runtime() {
    let Some(scene) = Scene::shared() else { return };
    let user = scene.user("changing");
    let file = scene.dir.join(unique("password"));
    write_secret(&file, PASSWORD);
    let security = scene.as_user("scram-sha-512", &user).replace(&scene.file("password"), &file.display().to_string());
    let stage = scene.stage("SASL", &user, &security);
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(TOTAL, &mut [&mut daemon]);
    let changed = "canary-password-9926";
    set_password(&scene.broker.bootstrap(), &user, changed);
    write_secret(&file, changed);
    // All connections are new and must use the new password.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !daemon.said().contains("broker password changed") {
        assert!(std::time::Instant::now() < deadline, "{}", daemon.said());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    scene.broker.produce_records(&stage.raw, &records(3, TOTAL, 2 * TOTAL, 1));
    stage.wait_consumed(2 * TOTAL, &mut [&mut daemon]);
    finished(&stage, &mut daemon, 2 * TOTAL);
    keeps_quiet(&stage, &[PASSWORD, changed]);
}

/// The broker restarts meanwhile, so all clients must authenticate again.
#[test]
fn daemon_with_refused_credentials_reports_waits_and_recovers() {
    if std::env::var_os("THRONG_LONG").is_none() {
        eprintln!("SKIPPED: it waits for minutes (./dev test --long)");
        return;
    }
    let Some(scene) = Scene::of_its_own() else { return };
    let user = scene.user("refused");
    let file = scene.dir.join(unique("password"));
    write_secret(&file, PASSWORD);
    let security = scene.as_user("scram-sha-512", &user).replace(&scene.file("password"), &file.display().to_string());
    let stage = scene.stage("SASL", &user, &security);
    let port = free_port();
    let path = stage.configure("only", 0, BATCH, "1h");
    let text =
        fs::read_to_string(&path).expect("the configuration").replace("127.0.0.1:0", &format!("127.0.0.1:{port}"));
    fs::write(&path, text.replace("[telemetry]", "[telemetry]\nlog_level = \"trace\"")).expect("our file");
    let page = |name: &str| get(port, name).map_or(String::new(), |(_, body)| body);
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
        while !holds() {
            assert!(std::time::Instant::now() < deadline, "it did not come to pass that {what}: {}", page("/readyz"));
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(TOTAL, &mut [&mut daemon]);
    until("it is ready", &|| page("/readyz") == "ready\n");
    let changed = "canary-password-6615";
    set_password(&scene.broker.bootstrap(), &user, changed);
    scene.broker.restart();
    until("it says why", &|| page("/readyz").contains("the brokers reject our credentials"));
    assert!(page("/metrics").contains("throng_source_refusals_total{reason=\"authentication\"} 1"));
    assert!(daemon.ended().is_none() && daemon.said().contains("correct source.security.username"));
    let told: String = ["/", "/metrics", "/status.json", "/readyz", "/plan"].iter().map(|name| page(name)).collect();
    assert!(told.len() > 1000 && !told.contains("canary"), "a secret is on a page");
    write_secret(&file, changed);
    scene.broker.produce_records(&stage.raw, &records(3, TOTAL, 2 * TOTAL, 1));
    stage.wait_consumed(2 * TOTAL, &mut [&mut daemon]);
    until("it is ready again", &|| page("/readyz") == "ready\n");
    finished(&stage, &mut daemon, 2 * TOTAL);
    keeps_quiet(&stage, &[PASSWORD, changed]);
}
