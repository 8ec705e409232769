//! The files that say who we are to the brokers: each is there, holds something, and is nobody else's to read.

use super::access::{AccessError, guarded};
use super::{Config, Problem, Security};

/// What is wrong with the files of one table, by their keys.
fn of_table(security: &Security) -> Vec<(&'static str, AccessError, &'static str)> {
    let secret = "write it there, and `chmod 0640` or 0600 the file";
    let readable = |key: &str| {
        let path = security.files().find(|(named, _)| *named == key).map(|(_, path)| path);
        path.map_or(Ok(()), |path| std::fs::File::open(path).map(drop).map_err(|e| AccessError::Unreadable(e.kind())))
    };
    let pem = "name a PEM file that this process may read";
    let checked = [
        ("ca_file", readable("ca_file"), pem),
        ("certificate_file", readable("certificate_file"), pem),
        ("key_file", security.key_file.as_deref().map_or(Ok(()), guarded), secret),
        ("password_file", security.password().map(drop), secret),
        ("oauth.client_secret_file", security.oauth.client_secret().map(drop), secret),
        ("oauth.ca_file", readable("oauth.ca_file"), pem),
    ];
    checked.into_iter().filter_map(|(key, checked, remedy)| Some((key, checked.err()?, remedy))).collect()
}

/// What is wrong with the files of `[source.security]`. A token of somebody else's may come later, and is not looked for.
pub(super) fn problems(config: &Config, file: &str) -> Vec<Problem> {
    let wrong = of_table(&config.source.security).into_iter();
    wrong
        .map(|(key, error, remedy)| Problem::new(file, format!("source.security.{key}"), error.to_string(), remedy))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_password_that_others_may_read_is_refused_without_quoting_it() {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("password");
        for (text, mode, said) in [
            ("canary-71\n", 0o644, "0644"),
            ("\n", 0o600, "empty"),
            ("canary-71\n", 0o640, ""),
            ("canary-71", 0o600, ""),
        ] {
            std::fs::write(&path, text).expect("a file");
            set_permissions(&path, Permissions::from_mode(mode)).expect("our own file");
            let security = Security { password_file: Some(path.clone()), ..Security::default() };
            let found = of_table(&security);
            assert_eq!(found.is_empty(), said.is_empty(), "{found:?}");
            for (key, error, _) in found {
                assert!(key == "password_file" && error.to_string().contains(said), "{error}");
                assert!(!format!("{error:?}").contains("canary"));
            }
            if said.is_empty() {
                assert_eq!(security.password().expect("readable").expect("given").as_str(), "canary-71");
            }
        }
    }
}
