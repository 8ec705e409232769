//! The shipped secured configuration is valid if its files exist, and a missing file is named.

use crate::security::certificates::authority;
use crate::security::scene::write_secret;
use std::fs;
use std::path::Path;

fn check(folder: &Path) -> (Option<i32>, String) {
    let mut command = crate::support::binary::throng();
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THRONG_")) {
        command.env_remove(name);
    }
    let out = command.args(["check", "-c", "secured.toml"]).current_dir(folder).output().expect("it runs");
    (out.status.code(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

#[test]
fn shipped_secured_configuration_is_valid_with_its_files() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir(folder.join("schemas")).and_then(|()| fs::create_dir(folder.join("secret"))).expect("folders");
    for (from, to) in [
        ("config/secured.toml", "secured.toml"),
        ("schemas/open-mhealth-heart-rate.toml", "schemas/open-mhealth-heart-rate.toml"),
    ] {
        fs::copy(root.join(from), folder.join(to)).expect("a file that is shipped");
    }
    let secret = folder.join("secret");
    let secrets = [
        ("throng.key", "a secret of the tests, and of nobody else"),
        ("kafka.password", "canary-password-4477"),
        ("pages.token", "canary-token-of-the-tests-4478"),
    ];
    let make = || {
        secrets.iter().for_each(|(name, text)| write_secret(&secret.join(name), text));
        authority(&secret, "ca");
    };
    make();
    let (code, said) = check(folder);
    assert!(code == Some(0) && !said.contains("canary"), "{code:?} {said}");
    assert!(!said.contains("warning"), "an example needs no excuse: {said}");
    for name in ["ca.pem", "throng.key", "kafka.password", "pages.token"] {
        fs::remove_file(secret.join(name)).expect("it is there");
        let (code, said) = check(folder);
        assert!(
            code == Some(2) && said.contains("_file") && !said.contains("canary"),
            "without {name}: {code:?} {said}"
        );
        make();
    }
}
