//! Invalid security setups: the start ends with the cause and the key to correct, instead of waiting forever.

use crate::security::scene::{Scene, refused};
use crate::support::kafka::unique;

#[test]
fn invalid_security_setup_ends_start_with_cause() {
    let Some(scene) = Scene::shared() else { return };
    let user = scene.user("wrong");
    let file = |name: &str| scene.file(name);
    let tls = |ca: &str, more: &str| format!("protocol = \"tls\"\nca_file = \"{}\"\n{more}", file(ca));
    let with = |certificate: &str| format!("certificate_file = \"{}.crt\"\nkey_file = \"{0}.key\"", file(certificate));
    let login = scene.as_user("scram-sha-512", &user);
    let wrong = login.replace(&file("password"), &file("wrong"));
    let plain_only = login.replace("scram-sha-512", "plain");
    let mut wrongly = Vec::new();
    for (listener, security, expected) in [
        ("MUTUAL", tls("stranger.pem", &with("client")), "the broker's certificate is not signed by a known authority"),
        ("EXPIRED", tls("ca.pem", ""), "the broker's certificate has expired"),
        ("OTHER", tls("ca.pem", ""), "the broker's certificate is for another host name"),
        ("MUTUAL", tls("ca.pem", ""), "set source.security.certificate_file"),
        ("MUTUAL", tls("ca.pem", &with("late")), "the broker rejects our certificate"),
        ("MUTUAL", tls("ca.pem", &with("unknown")), "the broker rejects our certificate"),
        ("BARE", login.clone(), "set source.security.protocol"),
        ("SASL", wrong, "correct source.security.username and source.security.password_file"),
        ("SASL", login.replace(&user, "nobody"), "correct source.security.username"),
        ("OAUTH", login.clone(), "set source.security.mechanism"),
        ("SASL", plain_only, "correct source.security.username"),
        ("SASL", String::new(), "set source.security.protocol"),
        ("SASL", login.replace("ca.pem", "ca.key"), "correct source.security.ca_file"),
        ("MUTUAL", tls("ca.pem", &with("client").replace("client.key", "late.key")), "which do not match"),
    ] {
        let stage = scene.stage(listener, &user, &security);
        let (code, said) = refused(&stage);
        if !said.contains(expected) || code != Some(2) {
            wrongly.push(format!("{listener} {security}\nended with {code:?} instead of {expected:?}: {said}"));
        }
    }
    assert!(wrongly.is_empty(), "{}", wrongly.join("\n"));
}

#[test]
fn check_validates_security_settings_without_broker() {
    let Some(scene) = Scene::shared() else { return };
    let user = unique("checked");
    let sound = scene.as_user("scram-sha-512", &user);
    let key = format!("certificate_file = \"{}\"\nkey_file = \"{}\"", scene.file("late.crt"), scene.file("client.key"));
    let odd = "[source.librdkafka]\n\"socket.keepalive.enabel\" = \"canary-1\"";
    for (security, property, expected) in [
        (sound.clone(), "", None),
        (format!("{sound}\n{key}"), "", Some("which do not match")),
        (sound.clone(), odd, Some("socket.keepalive.enabel")),
        (sound.replace("username", "usrname"), "", Some("did you mean `username`")),
    ] {
        let mut stage = crate::support::daemon::Stage::new(&scene.broker, 1).reached_by("localhost:9".to_owned());
        stage.security = format!("[source.security]\n{security}\n");
        if !property.is_empty() {
            stage.properties = "\"socket.keepalive.enabel\" = \"canary-1\"".to_owned();
        }
        let file = stage.configure("only", 0, 40, "1h");
        let done = crate::support::binary::throng().args(["check", "-c"]).arg(file).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let expected_code = if expected.is_some() { 2 } else { 0 };
        assert_eq!(done.status.code(), Some(expected_code), "{security}: {said}");
        assert!(expected.is_none_or(|expected| said.contains(expected)) && !said.contains("canary"), "{said}");
    }
}
