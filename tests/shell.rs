//! Tests shell completions and manual pages: they cover the command line completely.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn throng(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_throng")).args(arguments).output().expect("the binary starts")
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn commands() -> BTreeSet<String> {
    let help = text(&throng(&["--help"]));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let first = |line: &str| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    listed.filter_map(first).collect()
}

#[test]
fn shell_completions_contain_every_command() {
    let commands = commands();
    assert!(commands.contains("run") && commands.contains("verify-release") && commands.len() > 10, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = throng(&["completions", shell]);
        assert!(done.status.success(), "{shell}");
        let script = text(&done);
        for name in &commands {
            assert!(script.contains(name.as_str()), "{shell} does not know {name}");
        }
        assert!(script.contains("accept-rewind"), "{shell} knows the options of run");
    }
    let refused = throng(&["completions", "tcsh"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("bash"));
}

#[test]
fn bash_completion_script_completes_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("throng.bash");
    fs::write(&script, throng(&["completions", "bash"]).stdout).expect("a file");
    let completes = |words: &str, wanted: &str| {
        let ask = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _throng throng \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let said = Command::new("bash").args(["--norc", "-c", &ask]).output().expect("bash");
        let found = text(&said);
        assert!(found.split_whitespace().any(|word| word == wanted), "{words}: {found} {said:?}");
    };
    completes("throng anon", "anonymize");
    completes("throng run --accept-r", "--accept-rewind");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("man/man1");
    let at = place.to_str().expect("text");
    for _ in 0..2 {
        assert!(throng(&["man", at]).status.success(), "also where the pages are there already");
    }
    let page = |name: &str| fs::read_to_string(Path::new(at).join(format!("{name}.1"))).expect(name);
    let main = page("throng");
    for name in commands().iter().filter(|name| *name != "help") {
        assert!(page(&format!("throng-{name}")).contains(".TH"), "{name}");
        assert!(main.contains(&format!("throng\\-{}(1)", name.replace('-', "\\-"))), "throng(1) leads to {name}");
    }
    assert!(page("throng-run").contains("accept\\-rewind"));
    fs::write(folder.path().join("file"), "").expect("a file");
    let refused = throng(&["man", folder.path().join("file").to_str().expect("text")]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot write the pages"));
}

#[test]
fn broken_pipe_is_not_reported_as_a_bug() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.args(["check", "-c", "config/wearable.toml", "--output-schema"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("THRONG__STATE__SECRET_FILE", "");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let said = command.stdout(writer).stderr(std::process::Stdio::piped()).output().expect("it runs");
    assert_eq!(said.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&said.stderr).lines().find(|line| line.contains("panic") || line.contains("bug")),
        None
    );
}
