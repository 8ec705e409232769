//! OAuth tokens: requested, renewed during a stream, read from a file, and refused with a reason.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::security::certificates::token;
use crate::security::provider::{Provider, SECRET};
use crate::security::running::keeps_quiet;
use crate::security::scene::{Scene, TOTAL, refused, write_secret};
use crate::support::daemon::{finished, records};
use crate::support::kafka::unique;

/// Seconds. A stream takes longer than several lifetimes.
const LIFE: i64 = 4;

fn table(scene: &Scene, more: &str) -> String {
    let ca = scene.file("ca.pem");
    format!("protocol = \"sasl_tls\"\nca_file = \"{ca}\"\nmechanism = \"oauthbearer\"\n{more}")
}

fn asking(scene: &Scene, provider: &Provider, client: &str) -> String {
    let secret = scene.dir.join("client-secret");
    write_secret(&secret, SECRET);
    table(
        scene,
        &format!(
            "oauth.token_endpoint = \"{}\"\noauth.client_id = \"{client}\"\noauth.client_secret_file = \"{}\"\noauth.scope = \"kafka\"",
            provider.address,
            secret.display()
        ),
    )
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !holds() {
        assert!(Instant::now() < deadline, "it did not come to pass that {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn expiring_tokens_are_renewed_during_batches() {
    let Some(scene) = Scene::shared() else { return };
    let client = unique("client");
    let provider = Provider::start(scene.dir.clone(), client.clone(), LIFE);
    let stage = scene.stage("OAUTH", &client, &asking(scene, &provider, &client));
    let mut daemon = stage.start("only", None);
    let mut written = TOTAL;
    // Each part of the stream waits for the next token.
    for renewed in 2..8 {
        stage.wait_consumed(written, &mut [&mut daemon]);
        until("a token is renewed", || provider.manners.given.load(Ordering::SeqCst) >= renewed);
        scene.broker.produce_records(&stage.raw, &records(3, written, written + TOTAL, 1));
        written += TOTAL;
    }
    stage.wait_consumed(written, &mut [&mut daemon]);
    assert!(!daemon.said().contains("aborted"), "{}", daemon.said());
    finished(&stage, &mut daemon, written);
    keeps_quiet(&stage, &[SECRET, "eyJhbGciOi"]);
}

#[test]
fn unavailable_identity_provider_is_awaited_at_start_and_runtime() {
    let Some(scene) = Scene::shared() else { return };
    let client = unique("client");
    let provider = Provider::start(scene.dir.clone(), client.clone(), LIFE);
    let stage = scene.stage("OAUTH", &client, &asking(scene, &provider, &client));
    provider.manners.down.store(true, Ordering::SeqCst);
    let mut daemon = stage.start("only", None);
    let waits = "no token received from the identity provider";
    until("the start waits", || daemon.said().contains(waits));
    assert!(daemon.ended().is_none());
    provider.manners.down.store(false, Ordering::SeqCst);
    stage.wait_consumed(TOTAL, &mut [&mut daemon]);
    let said = daemon.said().matches(waits).count();
    provider.manners.down.store(true, Ordering::SeqCst);
    until("the running daemon says it", || daemon.said().matches(waits).count() > said);
    scene.broker.produce_records(&stage.raw, &records(3, TOTAL, 2 * TOTAL, 1));
    std::thread::sleep(Duration::from_secs(u64::try_from(LIFE).expect("few")));
    provider.manners.down.store(false, Ordering::SeqCst);
    stage.wait_consumed(2 * TOTAL, &mut [&mut daemon]);
    finished(&stage, &mut daemon, 2 * TOTAL);
}

#[test]
fn externally_renewed_token_file_is_read_again() {
    let Some(scene) = Scene::shared() else { return };
    let client = unique("pod");
    let path = scene.dir.join(unique("token"));
    let renew = || write_secret(&path, &token(&scene.dir, "idp", &client, "kafka", LIFE));
    renew();
    let stage = scene.stage("OAUTH", &client, &table(scene, &format!("oauth.token_file = \"{}\"", path.display())));
    let mut daemon = stage.start("only", None);
    let mut written = TOTAL;
    for _ in 0..4 {
        let deadline = Instant::now() + Duration::from_secs(90);
        while stage.consumed() < written as i64 {
            renew();
            assert!(daemon.ended().is_none() && Instant::now() < deadline, "{}", daemon.said());
            std::thread::sleep(Duration::from_secs(1));
        }
        for _ in 0..3 {
            renew();
            std::thread::sleep(Duration::from_secs(1));
        }
        scene.broker.produce_records(&stage.raw, &records(3, written, written + TOTAL, 1));
        written += TOTAL;
    }
    let deadline = Instant::now() + Duration::from_secs(90);
    while stage.consumed() < written as i64 {
        renew();
        assert!(daemon.ended().is_none() && Instant::now() < deadline, "{}", daemon.said());
        std::thread::sleep(Duration::from_secs(1));
    }
    renew();
    finished(&stage, &mut daemon, written);
    keeps_quiet(&stage, &["eyJhbGciOi"]);
}

#[test]
fn token_errors_are_reported_with_cause() {
    let Some(scene) = Scene::shared() else { return };
    let client = unique("client");
    let provider = Provider::start(scene.dir.clone(), client.clone(), 60);
    let sound = asking(scene, &provider, &client);
    let wrong = sound.replace("client-secret", "wrong");
    for (security, astray, expected) in [
        (wrong, false, "the identity provider refuses a token: correct source.security.oauth.client_id"),
        (sound.clone(), true, "the broker rejects the token: correct source.security.oauth.scope"),
    ] {
        provider.manners.astray.store(astray, Ordering::SeqCst);
        let (code, said) = refused(&scene.stage("OAUTH", &client, &security));
        assert!(said.contains(expected) && code == Some(2), "{security}\nended with {code:?}: {said}");
    }
}
