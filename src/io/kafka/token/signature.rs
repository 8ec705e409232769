//! Requests that are signed in their address (AWS Signature Version 4), as far as a token of MSK needs it.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Who signs.
pub(super) struct Signer {
    /// The public half of the key.
    pub id: String,
    /// The secret half.
    pub secret: Zeroizing<String>,
    /// Of credentials that end.
    pub session: Option<Zeroizing<String>>,
}

/// What is asked for, and until when.
pub(super) struct Request<'a> {
    pub host: &'a str,
    pub path: &'a str,
    /// Names and values, not escaped yet.
    pub query: Vec<(&'a str, &'a str)>,
    pub region: &'a str,
    pub service: &'a str,
    /// SHA-256 of what follows, in hexadecimal digits, or a word in its place.
    pub body: &'a str,
    /// When it is signed: `20130524T000000Z`.
    pub at: &'a str,
    /// Seconds for which it is good.
    pub expires: u32,
}

/// As it stands in an address: everything but letters, digits and `-._~` by its bytes.
pub(super) fn escaped(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn keyed(key: &[u8], text: &str) -> Zeroizing<Vec<u8>> {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).expect("any length is a key");
    mac.update(text.as_bytes());
    Zeroizing::new(mac.finalize().into_bytes().to_vec())
}

/// The key of one day, region and service.
fn signing_key(secret: &str, day: &str, region: &str, service: &str) -> Zeroizing<Vec<u8>> {
    let first = Zeroizing::new(format!("AWS4{secret}"));
    [region, service, "aws4_request"].iter().fold(keyed(first.as_bytes(), day), |key, part| keyed(&key, part))
}

impl Request<'_> {
    /// The address with its signature, `https` before it.
    pub(super) fn signed(&self, signer: &Signer) -> Zeroizing<String> {
        let day = &self.at[..8];
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let (credential, expires) = (format!("{}/{scope}", signer.id), self.expires.to_string());
        let mut query = self.query.clone();
        query.extend([
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Date", self.at),
            ("X-Amz-Expires", &expires),
            ("X-Amz-SignedHeaders", "host"),
        ]);
        if let Some(session) = &signer.session {
            query.push(("X-Amz-Security-Token", session));
        }
        let mut pairs: Vec<String> =
            query.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
        pairs.sort();
        let query = Zeroizing::new(pairs.join("&"));
        let Self { host, path, body, at, .. } = self;
        let asked = Zeroizing::new(format!("GET\n{path}\n{}\nhost:{host}\n\nhost\n{body}", query.as_str()));
        let told = format!("AWS4-HMAC-SHA256\n{at}\n{scope}\n{}", hexadecimal(&Sha256::digest(asked.as_bytes())));
        let key = signing_key(&signer.secret, day, self.region, self.service);
        let signature = hexadecimal(&keyed(&key, &told));
        Zeroizing::new(format!("https://{host}{path}?{}&X-Amz-Signature={signature}", query.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of AWS's own documents of requests signed in their address.
    #[test]
    fn the_documented_example_has_the_documented_signature() {
        let signer = Signer {
            id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: Zeroizing::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned()),
            session: None,
        };
        let request = Request {
            host: "examplebucket.s3.amazonaws.com",
            path: "/test.txt",
            query: Vec::new(),
            region: "us-east-1",
            service: "s3",
            body: "UNSIGNED-PAYLOAD",
            at: "20130524T000000Z",
            expires: 86400,
        };
        let signed = request.signed(&signer);
        let expected = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        assert!(signed.ends_with(&format!("&X-Amz-Signature={expected}")), "{}", signed.as_str());
        assert!(signed.contains("X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&"));
    }

    /// The example of AWS's documents of how a key is derived.
    #[test]
    fn the_documented_key_is_derived() {
        let key = signing_key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20120215", "us-east-1", "iam");
        assert_eq!(hexadecimal(&key), "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d");
    }

    #[test]
    fn an_address_has_letters_digits_and_escapes() {
        assert_eq!(escaped("kafka-cluster:Connect/é ~"), "kafka-cluster%3AConnect%2F%C3%A9%20~");
    }
}
