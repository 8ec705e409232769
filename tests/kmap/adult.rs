//! ADULT as a stream, with a register made of its own people: what k-map costs, and that it holds in the output.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const K: usize = 20;
/// The columns of the register, as the file has them.
const KNOWN: [&str; 5] = ["sex", "age", "race", "marital-status", "education"];
/// One person in so many is registered.
const EVERY: usize = 10;

/// Runs the daemon over the file; returns its lines and the mean loss that it tells.
fn run(data: &Path, model: &str) -> (String, f64) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shipped = std::fs::read_to_string(root.join("config/adult.toml")).expect("a configuration");
    let config = folder.path().join("adult.toml");
    let text = shipped.replace("[state]", &format!("{model}[state]"));
    std::fs::write(&config, format!("{text}\n[telemetry]\nlisten = \"127.0.0.1:0\"\n")).expect("a file");
    let out = folder.path().join("out.ndjson");
    let output = Command::new(env!("CARGO_BIN_EXE_throng"))
        .current_dir(root)
        .args(["run".as_ref(), "-c".as_ref(), config.as_os_str()])
        .env("THRONG__SOURCE__PATH", data)
        .env("THRONG__SINK__PATH", &out)
        .env("THRONG__STATE__PATH", folder.path().join("state"))
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let loss = said.lines().find_map(|line| line.strip_prefix("mean loss ")).expect("the mean loss");
    let loss = loss.split(' ').next().expect("a number").parse().expect("a number");
    (std::fs::read_to_string(&out).expect("a release"), loss)
}

/// Every raw value of a column with the labels above it, as the files of the established tool have them.
type Above = BTreeMap<String, BTreeSet<String>>;

fn above(data: &Path, column: &str) -> Above {
    let file = data.join(format!("adult/hierarchies/{column}.csv"));
    let text = std::fs::read_to_string(file).expect("a hierarchy");
    let row = |line: &str| {
        let labels: Vec<String> = line.split(';').map(str::to_owned).collect();
        (labels[0].clone(), labels.into_iter().collect())
    };
    text.lines().map(row).collect()
}

/// Whether a printed cell is true of a raw one.
fn covers(printed: &serde_json::Value, raw: &str, above: &Above) -> bool {
    let text = printed.as_str().map_or_else(|| printed.to_string(), str::to_owned);
    if text == "*" {
        return true;
    }
    if let (Ok(raw), Some((from, to))) = (raw.parse::<u32>(), text.split_once('-')) {
        let bound = |text: &str| text.parse::<u32>().expect("a number");
        return (bound(from)..=bound(to)).contains(&raw);
    }
    above[raw].contains(&text)
}

/// The fewest people of the register whom a line could be of.
fn fewest(lines: &str, register: &BTreeMap<Vec<&str>, usize>, above: &[Above]) -> usize {
    let mut classes: BTreeSet<String> = BTreeSet::new();
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line");
        let cells: Vec<&serde_json::Value> = KNOWN.iter().map(|name| &line[name]).collect();
        classes.insert(serde_json::to_string(&cells).expect("a text"));
    }
    let candidates = |class: &String| {
        let cells: Vec<serde_json::Value> = serde_json::from_str(class).expect("cells");
        let could_be = |raw: &&Vec<&str>| {
            cells.iter().zip(raw.iter()).zip(above).all(|((cell, raw), above)| covers(cell, raw, above))
        };
        register.keys().filter(could_be).map(|raw| register[raw]).sum()
    };
    classes.iter().map(candidates).min().expect("some class")
}

#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names"]
fn real_data_every_line_of_adult_could_be_of_twenty() {
    let data = std::env::var_os("THRONG_TEST_DATA").expect("THRONG_TEST_DATA is set");
    let path = Path::new(&data).join("adult/adult.csv");
    let text = std::fs::read_to_string(&path).expect("the data");
    let of_line = |line| str::split(line, ';').take(KNOWN.len()).collect();
    let people: Vec<Vec<&str>> = text.lines().skip(1).step_by(EVERY).map(of_line).collect();
    let above = KNOWN.map(|column| above(Path::new(&data), column));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("people.csv");
    let mut csv = KNOWN.join(";") + "\n";
    people.iter().for_each(|cells| writeln!(csv, "{}", cells.join(";")).expect("a string"));
    std::fs::write(&file, csv).expect("a file");
    let mut register: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    people.into_iter().for_each(|cells| *register.entry(cells).or_default() += 1);

    let (without, loss_without) = run(&path, "");
    let model = format!("[[privacy.model]]\nkind = \"k_map\"\nk = {K}\npopulation = \"{}\"\n\n", file.display());
    let (with, loss_with) = run(&path, &model);
    let told = [(&without, loss_without), (&with, loss_with)];
    for (lines, loss) in told {
        println!(
            "{} lines, loss {loss:.4}, at least {} people",
            lines.lines().count(),
            fewest(lines, &register, &above)
        );
    }
    assert!(fewest(&without, &register, &above) < K && fewest(&with, &register, &above) >= K);
    assert!(with.lines().count() > 30_000 && loss_with < loss_without + 0.02, "{loss_with}");
}
