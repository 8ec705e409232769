//! What strict recoding remembers survives a restart: the bytes that leave are those of an undisturbed run.

use crate::copies;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const BATCH: usize = 100;

/// Skewed values, so that there are always some whose neighbours have support and they have not.
fn rows(number: usize) -> Vec<String> {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut skewed = |n: f64| {
        let draw: f64 = random.random();
        (draw * draw * draw * n) as u32
    };
    (0..number).map(|_| format!("{};{}\n", skewed(60.0), skewed(60.0))).collect()
}

/// Runs the daemon over what `folder` holds, until the end of its file.
fn run(folder: &Path) {
    let attribute = |name: &str| {
        format!(
            "[[attribute]]\nname = \"{name}\"\ntype = \"integer\"\nhierarchy = {{ kind = \"intervals\", min = 0, max = 59, origin = 0, widths = [3, 6, 12] }}\n"
        )
    };
    let schema = format!("name = \"two\"\n{}{}", attribute("a"), attribute("b"));
    std::fs::write(folder.join("schema.toml"), schema).unwrap();
    let mut config = String::new();
    let place = |name: &str| folder.join(name).display().to_string();
    writeln!(config, "[source]\nkind = \"file\"\npath = {:?}\nseparator = \";\"", place("in.csv")).unwrap();
    writeln!(config, "[sink]\nkind = \"file\"\npath = {:?}", place("out.ndjson")).unwrap();
    writeln!(config, "[batch]\nmax_records = {BATCH}\n[schema]\nfile = {:?}", place("schema.toml")).unwrap();
    writeln!(config, "[privacy]\nk = 4\nbatch_crowd = 0\nrecoding = \"strict\"\n[state]\npath = {:?}", place("state"))
        .unwrap();
    writeln!(config, "[telemetry]\nlisten = \"127.0.0.1:0\"").unwrap();
    std::fs::write(folder.join("config.toml"), config).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_throng"))
        .args(["run", "-c", &place("config.toml")])
        .output()
        .expect("the daemon starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs over the first part of the rows, does `between`, runs over all of them; what has left in the end.
fn run_in_two(parts: &[&[String]], between: impl Fn(&Path)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "a;b\n".to_owned();
    for (number, part) in parts.iter().enumerate() {
        text.push_str(&part.concat());
        std::fs::write(folder.path().join("in.csv"), &text).unwrap();
        if number > 0 {
            between(folder.path());
        }
        run(folder.path());
    }
    std::fs::read(folder.path().join("out.ndjson")).unwrap()
}

/// Takes the witnesses out of a state; returns how many values they were.
fn forget_witnesses(folder: &Path) -> usize {
    copies::change(&folder.join("state/db"), |db| {
        let tree = db.open_tree("throng").unwrap();
        let keys: Vec<sled::IVec> = ["raw/", "witness/", "witness-shard/"]
            .iter()
            .flat_map(|p| tree.scan_prefix(p).keys())
            .map(Result::unwrap)
            .collect();
        for key in &keys {
            tree.remove(key).unwrap();
        }
        keys.len()
    })
}

#[test]
fn a_restart_changes_no_byte_and_lost_witnesses_only_cost() {
    let rows = rows(40 * BATCH);
    let (first, second) = rows.split_at(20 * BATCH);
    let undisturbed = run_in_two(&[&rows], |_| ());
    let restarted = run_in_two(&[first, second], |_| ());
    assert!(undisturbed == restarted, "the same bytes");
    let without = run_in_two(&[first, second], |folder| assert!(forget_witnesses(folder) > 100));
    assert!(without != undisturbed, "the witnesses were of use");
    let exact =
        |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().filter(|l| !l.contains('[') && !l.contains('*')).count();
    println!("exact records: {} with witnesses, {} after they were lost", exact(&undisturbed), exact(&without));
}
