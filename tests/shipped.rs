//! Tests the shipped configurations: `check` accepts each of them without a warning, and those over files run without
//! one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use throng::config::Secret;

fn copied() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["config", "schemas"] {
        fs::create_dir(home.path().join(folder)).expect("a folder");
        for entry in fs::read_dir(root.join(folder)).expect("a shipped folder") {
            let entry = entry.expect("an entry");
            if entry.path().is_file() {
                fs::copy(entry.path(), home.path().join(folder).join(entry.file_name())).expect("a copy");
            }
        }
    }
    home
}

fn throng(home: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THRONG_")) {
        command.env_remove(name);
    }
    command.args(arguments).envs(env.iter().copied()).current_dir(home).output().expect("it runs")
}

fn assert_without_warning(name: &str, output: &Output) {
    let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{name}: {said}");
    assert!(!said.contains("warning") && !said.contains("WARN"), "{name}: {said}");
}

fn shipped(home: &Path) -> Vec<String> {
    let names = fs::read_dir(home.join("config")).expect("the configurations");
    let mut names: Vec<String> =
        names.map(|entry| format!("config/{}", entry.expect("an entry").file_name().display())).collect();
    names.sort();
    assert!(names.len() >= 7, "{names:?}");
    names
}

#[test]
fn shipped_configurations_pass_check_without_a_warning() {
    let copy = copied();
    let home = copy.path();
    fs::create_dir(home.join("secret")).expect("a folder");
    for name in ["throng.key", "kafka.password", "pages.token"] {
        Secret::create(&home.join("secret").join(name)).expect("a secret");
    }
    let openssl =
        ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem"];
    let made = Command::new("openssl").args(openssl).current_dir(home.join("secret")).output().expect("openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for name in shipped(home) {
        let text = fs::read_to_string(home.join(&name)).expect("a configuration");
        assert!(text.contains("\nsecret_file = "), "{name} names no secret");
        assert_without_warning(&name, &throng(home, &["check", "-c", &name], &[]));
    }
}

#[test]
fn shipped_wearable_configuration_runs_over_files() {
    let copy = copied();
    let generate = ["generate", "wearable", "--records", "20000", "--seed", "1", "--output", "in.ndjson"];
    assert!(throng(copy.path(), &generate, &[]).status.success());
    fs::create_dir(copy.path().join("secret")).expect("a folder");
    let env = [
        ("THRONG__SOURCE__KIND", "file"),
        ("THRONG__SOURCE__PATH", "in.ndjson"),
        ("THRONG__SINK__KIND", "file"),
        ("THRONG__SINK__PATH", "out.ndjson"),
        ("THRONG__SINK__TOPIC", ""),
        ("THRONG__SINK__DEAD_LETTER_TOPIC", ""),
        ("THRONG__BATCH__MAX_RECORDS", "5000"),
    ];
    let output = throng(copy.path(), &["run", "-c", "config/wearable.toml"], &env);
    assert_without_warning("config/wearable.toml", &output);
}

/// Runs each configuration that names a sample in its comment with this sample.
#[test]
fn shipped_file_configurations_publish_all_signals_of_their_samples() {
    let copy = copied();
    let home = copy.path();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/samples");
    let mut ran = 0;
    for name in shipped(home) {
        let text = fs::read_to_string(home.join(&name)).expect("a configuration");
        let Some((_, sample)) = text.split_once("THRONG__SOURCE__PATH=schemas/samples/") else { continue };
        let sample = samples.join(sample.split(' ').next().expect("a name")).display().to_string();
        let out = format!("{}.ndjson", name.trim_start_matches("config/"));
        let env = [("THRONG__SOURCE__PATH", sample.as_str()), ("THRONG__SINK__PATH", out.as_str())];
        let output = throng(home, &["run", "-c", &name], &env);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.contains("dead-lettered 0"), "{name}: {said}");
        let rows = [out.replace(".ndjson", ".daily.ndjson"), out];
        let rows = rows.iter().find_map(|path| fs::read_to_string(home.join(path)).ok()).expect("rows");
        let (_, signals) = text.split_once("signals = [").expect("signals");
        for signal in signals.split(']').next().expect("a list").split(", ") {
            assert!(rows.contains(&format!("\"signal\":{signal},")), "{name} has no row of {signal}: {said}");
        }
        ran += 1;
    }
    assert!(ran >= 13, "{ran}");
}

#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names"]
fn real_data_shipped_file_configurations_run_without_a_warning() {
    let data = std::env::var_os("THRONG_TEST_DATA").expect("THRONG_TEST_DATA is set");
    let copy = copied();
    for (name, file) in [("adult", "adult/adult.csv"), ("lifesnaps", "lifesnaps/daily.csv")] {
        let path = Path::new(&data).join(file).display().to_string();
        let name = format!("config/{name}.toml");
        let output = throng(copy.path(), &["run", "-c", &name], &[("THRONG__SOURCE__PATH", path.as_str())]);
        assert_without_warning(&name, &output);
    }
}

const SMALL: &str = "name = \"small\"\nsubject = \"record\"\n[[attribute]]\nname = \"zip\"\ntype = \"string\"\n\
                     [[attribute]]\nname = \"illness\"\ntype = \"string\"\nrole = \"sensitive\"\n";

fn small_job() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(home.path().join(name), text).expect("written");
    write("schema.toml", SMALL);
    let rows: String = (0..60).map(|n| format!("80{:02},{}\n", n % 2, ["flu", "cold", "gout"][n % 3])).collect();
    write("in.csv", &format!("zip,illness\n{rows}"));
    write(
        "job.toml",
        "[source]\nkind = \"file\"\npath = \"in.csv\"\n[sink]\nkind = \"file\"\npath = \"out.csv\"\n\
         [schema]\nfile = \"schema.toml\"\n[privacy]\nk = 5\n[state]\nsecret_file = \"job.secret\"\n",
    );
    home
}

#[test]
fn file_job_creates_a_missing_secret_once() {
    let commands: [&[&str]; 2] =
        [&["run", "-c", "job.toml"], &["anonymize", "in.csv", "-c", "job.toml", "-o", "out.csv"]];
    for command in commands {
        let home = small_job();
        let path = home.path().join("job.secret");
        let checked = throng(home.path(), &["check", "-c", "job.toml"], &[]);
        assert!(checked.status.success() && !path.exists(), "{}", String::from_utf8_lossy(&checked.stderr));
        let first = throng(home.path(), command, &[]);
        let said = String::from_utf8_lossy(&first.stderr).into_owned();
        assert!(first.status.success() && said.contains("created job.secret"), "{command:?}: {said}");
        assert_eq!(fs::metadata(&path).expect("a secret").permissions().mode() & 0o777, 0o600);
        let (secret, release) =
            (fs::read(&path).expect("a secret"), fs::read(home.path().join("out.csv")).expect("lines"));
        let second = throng(home.path(), command, &[]);
        assert!(second.status.success() && !String::from_utf8_lossy(&second.stderr).contains("created"));
        assert_eq!(fs::read(&path).expect("a secret"), secret);
        assert_eq!(fs::read(home.path().join("out.csv")).expect("lines"), release, "one secret, one release");
    }
}

#[test]
fn refused_job_and_stream_create_no_secret() {
    let home = small_job();
    let broken = throng(home.path(), &["run", "-c", "job.toml"], &[("THRONG__PRIVACY__K", "1")]);
    assert_eq!(broken.status.code(), Some(2));
    let stream = throng(home.path(), &["run", "-c", "job.toml"], &[("THRONG__SOURCE__PATH", "-")]);
    let said = String::from_utf8_lossy(&stream.stderr).into_owned();
    assert!(stream.status.code() == Some(2) && said.contains("state.secret_file"), "{said}");
    assert!(!home.path().join("job.secret").exists());
}

/// Temperatures outside the range of the hierarchy are read from the records again.
#[test]
fn series_are_equal_in_all_units() {
    let copy = copied();
    let home = copy.path();
    let schema = home.join("schemas/fhir-observation.toml");
    let wider = fs::read_to_string(&schema).expect("the schema").replace("max = 45", "max = 100");
    fs::write(schema, wider).expect("a file");
    let rows = |unit: &str, of_celsius: &dyn Fn(u32) -> u32| {
        let observation = |number: u32| {
            let (person, day) = (number % 200, number / 200 + 1);
            // Multiples of 5 °C are whole degrees Fahrenheit.
            let celsius = if person % 2 == 0 { 35 } else { 20 + 5 * (person / 2 % 2) };
            let value = of_celsius(celsius);
            format!(
                r#"{{"code":{{"coding":[{{"code":"8310-5"}}]}},"status":"final","id":"{number}","device":{{"reference":"d"}},"subject":{{"reference":"P/{person}"}},"effectiveDateTime":"2026-03-{day:02}T10:00:00Z","valueQuantity":{{"value":{value},"code":"{unit}"}}}}"#
            ) + "\n"
        };
        let input = format!("{}.ndjson", unit.trim_matches(['[', ']']));
        fs::write(home.join(&input), (0..1400).map(observation).collect::<String>()).expect("a file");
        let env = [("THRONG__SOURCE__PATH", input.as_str()), ("THRONG__SINK__PATH", "out.ndjson")];
        let output = throng(home, &["run", "-c", "config/fhir-observation.toml"], &env);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(home.join("out.daily.ndjson")).expect("rows")
    };
    let celsius = rows("Cel", &|celsius| celsius);
    assert!(celsius.contains("\"signal\":\"temperature\""), "{celsius}");
    assert_eq!(rows("[degF]", &|celsius| celsius * 9 / 5 + 32), celsius);
}
