//! Signatures and chain, checked by code that is not ours: the example of `docs/certificates.md`, with Python and OpenSSL as they are.

use std::fs;
use std::process::Command;

use crate::scene::Run;

/// The example in the document.
fn example() -> String {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/certificates.md")).expect("the page");
    let (_, rest) = page.split_once("```python\n").expect("an example");
    rest.split_once("```").expect("an end").0.to_owned()
}

#[test]
fn the_example_of_the_page_checks_signatures_and_chain_with_openssl() {
    for tool in ["python3", "openssl"] {
        if Command::new(tool).arg("--help").output().is_err() {
            eprintln!("skipped: no {tool}");
            return;
        }
    }
    let run = Run::new(0);
    run.finish();
    run.write("check.py", &example());
    let check = |file: &str, key: &str| {
        let mut command = Command::new("python3");
        let output = command.current_dir(run.dir.path()).args(["check.py", file, key]).output().expect("it runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), said)
    };
    let (whole, said) = check("certificates.ndjson", "public.pem");
    assert!(whole && said.contains("15 certificates"), "{said}");
    // It can fail.
    let text = run.read("certificates.ndjson");
    let lines: Vec<&str> = text.lines().collect();
    run.write("cut.ndjson", &(lines[..3].join("\n") + "\n" + lines[4] + "\n"));
    assert!(!check("cut.ndjson", "public.pem").0, "a link is missing");
    run.write("swapped.ndjson", &text.replacen("\"sig\":\"", "\"sig\":\"AAAA", 1));
    assert!(!check("swapped.ndjson", "public.pem").0, "a signature is wrong");
    // The keys as the page makes them.
    let keys = "openssl genpkey -algorithm ed25519 -out made.pem && openssl pkey -in made.pem -pubout -out made.pub";
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/certificates.md")).expect("the page");
    keys.split(" && ")
        .for_each(|command| assert!(page.contains(&command.replace("made", "certificates")), "{command}"));
    let made = Command::new("sh").current_dir(run.dir.path()).args(["-c", keys]).output().expect("it runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let run_with = Run::new(0);
    run_with.sign_with(&run.read("made.pem"));
    run_with.write("public.pem", &run.read("made.pub"));
    run_with.finish();
    run_with.check("certificates.ndjson").is_whole();
}
