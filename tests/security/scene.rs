//! Real broker with a temporary certificate authority, a listener of every kind, and an authorizer that denies by
//! default.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::admin::{May, Right, With, grant};
use super::certificates::{Wanted, authority, certificate, key_set};
use crate::support::daemon::{Stage, TestDaemon, records};
use crate::support::kafka::{TestCluster, unique};
use crate::support::ports::free_port;

pub const PASSWORD: &str = "canary-password-7718";

pub const BATCH: usize = 40;
pub const TOTAL: usize = 10 * BATCH;

pub struct Scene {
    pub broker: TestCluster,
    pub dir: PathBuf,
    ports: [(&'static str, u16); 6],
    _home: tempfile::TempDir,
}

const LISTENERS: [(&str, &str); 6] = [
    ("MUTUAL", "SSL"),
    ("SASL", "SASL_SSL"),
    ("OAUTH", "SASL_SSL"),
    ("EXPIRED", "SSL"),
    ("OTHER", "SSL"),
    ("BARE", "SASL_PLAINTEXT"),
];

impl Scene {
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Scene>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    pub fn of_its_own() -> Option<Self> {
        Self::start()
    }

    fn start() -> Option<Self> {
        let home = tempfile::tempdir().expect("a folder");
        let dir = home.path().to_owned();
        for name in ["ca", "stranger"] {
            authority(&dir, name);
        }
        for (name, hosts, days) in [
            ("broker", "DNS:localhost", "2"),
            ("expired", "DNS:localhost", "-1"),
            ("other", "DNS:elsewhere.example", "2"),
            ("client", "", "2"),
            ("late", "", "-1"),
        ] {
            certificate(&dir, &Wanted { authority: "ca", name, hosts, days });
        }
        certificate(&dir, &Wanted { authority: "stranger", name: "unknown", hosts: "", days: "2" });
        fs::write(dir.join("jwks.json"), key_set(&dir, "idp")).expect("a file");
        for (name, secret) in [("password", PASSWORD), ("wrong", "canary-wrong-1120")] {
            write_secret(&dir.join(name), secret);
        }
        for entry in fs::read_dir(&dir).expect("our folder").flatten() {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o600)).expect("our file");
        }
        let ports = LISTENERS.map(|(name, _)| (name, free_port()));
        let broker = TestCluster::start_with(&|port, controller| properties(&dir, &ports, port, controller))?;
        Some(Self { broker, dir, ports, _home: home })
    }

    pub fn at(&self, name: &str) -> String {
        let (_, port) = self.ports.iter().find(|(known, _)| *known == name).expect("a listener");
        format!("localhost:{port}")
    }

    pub fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// The user gets every permission that throng needs.
    pub fn stage(&self, listener: &str, user: &str, security: &str) -> Stage<'_> {
        let mut stage = Stage::new(&self.broker, 1).with_static_membership().reached_by(self.at(listener));
        stage.security = format!("[source.security]\n{security}\n");
        self.broker.produce_records(&stage.raw, &records(3, 0, TOTAL, 1));
        grant(&self.broker.bootstrap(), user, &rights(&stage));
        stage.configure("only", 0, BATCH, "1h");
        stage
    }

    pub fn as_user(&self, mechanism: &str, user: &str) -> String {
        format!(
            "protocol = \"sasl_tls\"\nca_file = \"{}\"\nmechanism = \"{mechanism}\"\nusername = \"{user}\"\npassword_file = \"{}\"",
            self.file("ca.pem"),
            self.file("password")
        )
    }

    pub fn user(&self, stem: &str) -> String {
        let user = unique(stem);
        super::admin::set_password(&self.broker.bootstrap(), &user, PASSWORD);
        user
    }
}

pub fn write_secret(path: &Path, secret: &str) {
    fs::write(path, format!("{secret}\n")).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("our file");
}

/// Returns exactly the permissions listed in docs/deploy.md.
pub fn rights(stage: &Stage) -> Vec<Right> {
    let topic = |name: &String| With::Topic(name.clone());
    let transactions = With::Transactions(format!("{}/", stage.group));
    vec![
        (May::Read, topic(&stage.raw)),
        (May::Read, With::Group(stage.group.clone())),
        (May::Write, topic(&stage.out)),
        (May::Write, topic(&stage.letters)),
        (May::Read, topic(&stage.changelog)),
        (May::Write, topic(&stage.changelog)),
        (May::Write, transactions),
    ]
}

/// Longer than any refused start takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn refused(stage: &Stage) -> (Option<i32>, String) {
    let mut daemon: TestDaemon = stage.start("only", None);
    let deadline = Instant::now() + PATIENCE;
    let ended = loop {
        match daemon.ended() {
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            ended => break ended,
        }
    };
    let said = daemon.said();
    for secret in [PASSWORD, super::provider::SECRET, "canary-"] {
        assert!(!said.contains(secret), "a secret is told: {said}");
    }
    (ended.and_then(|status| status.code()), said)
}

fn properties(dir: &Path, ports: &[(&str, u16); 6], port: u16, controller: u16) -> String {
    let place = dir.display();
    let listed = |of: &dyn Fn(&str, &str, u16) -> String| -> String {
        let all = LISTENERS.iter().zip(ports);
        all.map(|((name, protocol), (_, port))| format!(",{}", of(name, protocol, *port))).collect()
    };
    let listeners = listed(&|name, _, port| format!("{name}://127.0.0.1:{port}"));
    let advertised = listed(&|name, _, port| format!("{name}://localhost:{port}"));
    let map = listed(&|name, protocol, _| format!("{name}:{protocol}"));
    let mut text = format!(
        "\nlisteners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{listeners}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{port}{advertised}\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT{map}\n\
         inter.broker.listener.name=PLAINTEXT\n\
         authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n\
         super.users=User:ANONYMOUS\n\
         ssl.keystore.type=PEM\nssl.truststore.type=PEM\nssl.truststore.location={place}/ca.pem\n\
         ssl.principal.mapping.rules=RULE:^CN=([^,]*).*$/$1/\n\
         listener.name.mutual.ssl.client.auth=required\n"
    );
    for (name, keys) in
        [("mutual", "broker"), ("sasl", "broker"), ("oauth", "broker"), ("expired", "expired"), ("other", "other")]
    {
        text += &format!("listener.name.{name}.ssl.keystore.location={place}/{keys}.both\n");
    }
    let security = "org.apache.kafka.common.security";
    for name in ["sasl", "bare"] {
        text += &format!(
            "listener.name.{name}.sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512{}\n\
             listener.name.{name}.scram-sha-256.sasl.jaas.config={security}.scram.ScramLoginModule required;\n\
             listener.name.{name}.scram-sha-512.sasl.jaas.config={security}.scram.ScramLoginModule required;\n",
            if name == "sasl" { ",PLAIN" } else { "" }
        );
    }
    text += &format!(
        "listener.name.sasl.plain.sasl.jaas.config={security}.plain.PlainLoginModule required user_plain=\"{PASSWORD}\";\n\
         listener.name.oauth.sasl.enabled.mechanisms=OAUTHBEARER\n\
         listener.name.oauth.oauthbearer.sasl.jaas.config={security}.oauthbearer.OAuthBearerLoginModule required;\n\
         listener.name.oauth.oauthbearer.sasl.server.callback.handler.class={security}.oauthbearer.OAuthBearerValidatorCallbackHandler\n\
         listener.name.oauth.oauthbearer.connections.max.reauth.ms=3600000\n\
         listener.name.oauth.sasl.oauthbearer.jwks.endpoint.url=file://{place}/jwks.json\n\
         listener.name.oauth.sasl.oauthbearer.expected.audience=kafka\n\
         listener.name.oauth.sasl.oauthbearer.jwt.validator.class={security}.oauthbearer.BrokerJwtValidator\n\
         sasl.oauthbearer.jwks.endpoint.url=file://{place}/jwks.json\n\
         sasl.oauthbearer.expected.audience=kafka\n"
    );
    text
}
