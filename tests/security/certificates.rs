//! Temporary certificate authorities, certificates and tokens made by `openssl`.

use std::path::{Path, PathBuf};
use std::process::Command;

fn openssl(dir: &Path, arguments: &[&str]) -> Vec<u8> {
    let done = Command::new("openssl").args(arguments).current_dir(dir).output().expect("openssl runs");
    assert!(done.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

pub fn authority(dir: &Path, name: &str) {
    let (key, certificate, subject) = (format!("{name}.key"), format!("{name}.pem"), format!("/CN={name}"));
    let extension =
        ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"];
    let mut arguments = vec!["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", &subject];
    arguments.extend(["-keyout", &key, "-out", &certificate]);
    arguments.extend(extension);
    openssl(dir, &arguments);
}

pub struct Wanted<'a> {
    pub authority: &'a str,
    pub name: &'a str,
    /// Host names as `DNS:…`; empty for a client.
    pub hosts: &'a str,
    /// Validity in days; -1 for an expired certificate.
    pub days: &'a str,
}

/// Creates `NAME.crt`, `NAME.key`, and `NAME.both` for the broker.
pub fn certificate(dir: &Path, wanted: &Wanted) -> PathBuf {
    let Wanted { authority, name, hosts, days } = wanted;
    let file = |ending: &str| format!("{name}.{ending}");
    let (key, request, given, extensions) = (file("key"), file("csr"), file("crt"), file("ext"));
    let subject = format!("/CN={name}");
    openssl(dir, &["req", "-newkey", "rsa:2048", "-nodes", "-subj", &subject, "-keyout", &key, "-out", &request]);
    let names = if hosts.is_empty() { String::new() } else { format!("subjectAltName={hosts}\n") };
    std::fs::write(dir.join(&extensions), format!("{names}basicConstraints=CA:FALSE\n")).expect("a file");
    let (by, its_key) = (format!("{authority}.pem"), format!("{authority}.key"));
    openssl(
        dir,
        &[
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            &by,
            "-CAkey",
            &its_key,
            "-CAcreateserial",
            "-days",
            days,
            "-extfile",
            &extensions,
            "-out",
            &given,
        ],
    );
    let both = dir.join(file("both"));
    let text = [&key, &given].map(|part| std::fs::read_to_string(dir.join(part)).expect("PEM")).concat();
    std::fs::write(&both, text).expect("a file");
    both
}

/// Creates the RSA key `NAME.key` and returns its key set, with key id `k1`.
pub fn key_set(dir: &Path, name: &str) -> String {
    use base64::Engine as _;
    let key = format!("{name}.key");
    openssl(dir, &["genrsa", "-out", &key, "2048"]);
    let text = String::from_utf8(openssl(dir, &["rsa", "-in", &key, "-modulus", "-noout"])).expect("text");
    let digits = text.trim().strip_prefix("Modulus=").expect("a modulus");
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    let modulus: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    let modulus = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(modulus);
    format!(
        "{{\"keys\":[{{\"kty\":\"RSA\",\"kid\":\"k1\",\"use\":\"sig\",\"alg\":\"RS256\",\"n\":\"{modulus}\",\"e\":\"AQAB\"}}]}}"
    )
}

pub fn token(dir: &Path, name: &str, subject: &str, audience: &str, seconds: i64) -> String {
    use base64::Engine as _;
    use std::io::Write;
    use std::process::Stdio;
    let encode = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    let now = i64::try_from(now).expect("this century");
    let number = uuid::Uuid::new_v4();
    let head = encode(b"{\"alg\":\"RS256\",\"kid\":\"k1\",\"typ\":\"JWT\"}");
    let body = format!(
        "{{\"sub\":\"{subject}\",\"aud\":\"{audience}\",\"iss\":\"tests\",\"scope\":\"kafka\",\"iat\":{now},\"exp\":{},\"jti\":\"{number}\"}}",
        now + seconds
    );
    let signed = format!("{head}.{}", encode(body.as_bytes()));
    let mut signer = Command::new("openssl")
        .args(["dgst", "-sha256", "-sign", &format!("{name}.key")])
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl runs");
    signer.stdin.take().expect("a pipe").write_all(signed.as_bytes()).expect("openssl reads");
    let signature = signer.wait_with_output().expect("openssl signs").stdout;
    format!("{signed}.{}", encode(&signature))
}
