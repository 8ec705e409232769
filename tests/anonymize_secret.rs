//! Tests the secret for covering cells, and the detection of identifiers by their form.

use std::path::Path;
use std::process::Output;

const SCHEMA: &str = "name = \"t\"\n[[attribute]]\nname = \"zip\"\ntype = \"string\"\n[[attribute]]\nname = \"diagnosis\"\ntype = \"string\"\nrole = \"sensitive\"\n";
const ONE: (&str, &str) = ("THRONG_SECRET", "the first secret of this test");
const OTHER: (&str, &str) = ("THRONG_SECRET", "the second secret of this test");

fn run(folder: &Path, rows: &str, env: &[(&str, &str)]) -> Output {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    write("schema.toml", SCHEMA);
    write("config.toml", "[schema]\nfile = \"schema.toml\"\n[privacy]\nk = 5\n[anonymize]\nsuppression_limit = 0.0\n");
    write("in.csv", &format!("zip,diagnosis\n{rows}"));
    crate::support::binary::throng()
        .current_dir(folder)
        .args(["anonymize", "in.csv", "-c", "config.toml", "-o", "out.csv"])
        .env_remove("THRONG_SECRET")
        .envs(env.iter().copied())
        .output()
        .expect("it starts")
}

fn release(rows: &str, env: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), rows, env);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(folder.path().join("out.csv")).expect("a release")
}

fn rows() -> String {
    let common = ["flu", "asthma", "migraine", "cold"];
    let of = |row: usize| if row == 7 { "hiv" } else { common[row * row / 3 % 4] };
    (0..40).map(|row| format!("80{:02},{}\n", row % 2, of(row))).collect()
}

/// An attacker tries the values of one unknown cell. Four of nineteen subjects cover: two secrets give equal diagnoses
/// with probability 1/35 at most.
#[test]
fn covering_cells_depend_on_the_secret() {
    let rows = rows();
    assert_eq!(release(&rows, &[ONE]), release(&rows, &[ONE]), "one secret, one release");
    let drawn: Vec<String> = (0..8).map(|_| release(&rows, &[])).collect();
    assert!(drawn.iter().any(|release| *release != drawn[0]), "the input decides by itself");
    let by_secret: Vec<String> = [
        ONE,
        OTHER,
        ("THRONG_SECRET", "the third secret of this test"),
        ("THRONG_SECRET", "the fourth secret of this test"),
    ]
    .map(|secret| release(&rows, &[secret]))
    .into();
    assert!(by_secret.iter().any(|release| *release != by_secret[0]), "the secret decides nothing");
}

#[test]
fn identifier_by_form_is_reported_as_identifier() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &format!("{}anna@example.org,flu\n", rows()), &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("e-mail address") && said.contains("\"zip\"") && said.contains("identifier"), "{said}");
    assert!(!said.contains("hierarchy does not cover") && !said.contains("anna"), "{said}");
}
