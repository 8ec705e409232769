//! Values exchanged between records: the output says that it is not true, and is as safe as any other.
#![cfg(feature = "failpoints")]

mod support;

use std::fs;
use std::path::PathBuf;

use support::daemon::{Daemon, configure, scratch, sound};

const BATCH: usize = 60;
const LINES: usize = 20 * BATCH;

/// Whoever is in the tent is 41: nine of ten others are in wards that tell nothing.
fn line(number: usize) -> String {
    let (age, ward) = match number % 10 {
        0..4 => (41, "tent"),
        n => (30 + n % 3, ["north", "east"][number / 10 % 2]),
    };
    format!("{{\"person\":\"p{number}\",\"lot\":\"L{}\",\"age\":{age},\"ward\":\"{ward}\"}}\n", number / 10)
}

fn run(dampening: &str) -> (tempfile::TempDir, Vec<String>, PathBuf) {
    let (dir, file) = place(dampening, line);
    let mut daemon = Daemon::start(&file, &[], None);
    assert!(daemon.wait().success(), "{}", daemon.said());
    let released = fs::read_to_string(dir.path().join("out.visit.ndjson")).expect("the fragments");
    let mark = dir.path().join("out.ndjson.untruthful");
    (dir, released.lines().map(str::to_owned).collect(), mark)
}

/// The configuration of a run over a file of `line`s.
fn place(dampening: &str, line: fn(usize) -> String) -> (tempfile::TempDir, PathBuf) {
    let dir = scratch();
    fs::write(dir.path().join("in.ndjson"), (0..LINES).map(line).collect::<String>()).expect("the input");
    let ends = "[source]\nkind = \"file\"\npath = \"@/in.ndjson\"\n[sink]\nkind = \"file\"\npath = \"@/out.ndjson\"\n";
    let file = configure(dir.path(), "only", &ends.replace('@', &dir.path().to_string_lossy()), 0, BATCH, "1h");
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, format!("{text}{dampening}")).expect("the configuration");
    (dir, file)
}

/// Share of the fragments of the tent that name the age of the tent.
fn told(lines: &[String]) -> f64 {
    let of_tent: Vec<&String> = lines.iter().filter(|line| line.contains("\"tent\"")).collect();
    let told = of_tent.iter().filter(|line| line.contains("\"age\":41") || line.contains("\"age\":\"41\"")).count();
    told as f64 / of_tent.len().max(1) as f64
}

#[test]
fn a_dampened_output_is_marked_tells_less_and_is_the_same_every_time() {
    let (_plain_dir, plain, mark) = run("");
    assert!(!mark.exists(), "a true output is not marked");
    assert!(told(&plain) > 0.99, "{}", told(&plain));
    let on = "[treatment]\ndampening = true\ndampening_most_altered = 0.5\n";
    let (_dir, dampened, mark) = run(on);
    assert!(fs::read_to_string(mark).expect("the mark").contains("values exchanged between records"));
    assert!(told(&dampened) < 0.8, "{}", told(&dampened));
    assert!(sound(dampened.iter()) > LINES / 2);
    let (_again_dir, again, _) = run(on);
    assert!(again == dampened, "the same stream and secret have given something else");
}

/// Everybody's age tells the ward with the same certainty, and the other way round: none is the stronger inference. After a
/// restart values are met in another order.
#[test]
fn a_batch_that_is_repeated_is_dampened_alike() {
    let line = |number: usize| {
        let n = (number * 7 + number / 60) % 20;
        format!("{{\"person\":\"p{number}\",\"lot\":\"L{}\",\"age\":{},\"ward\":\"w{}\"}}\n", number / 10, 20 + n, n)
    };
    let on = "[treatment]\ndampening = true\ndampening_above = 0.3\ndampening_most_altered = 0.2\n";
    for passages in [4, 9, 15] {
        let (dir, file) = place(on, line);
        let text = fs::read_to_string(&file).expect("the configuration");
        let small = text.replace("[plan]\n", "[plan]\nwindow_records = 300\nsample_records = 50\n");
        fs::write(&file, small).expect("the configuration");
        Daemon::start(&file, &[], Some(&format!("file-synced={passages}*off->return"))).crashes("file-synced");
        let seen = fs::read_to_string(dir.path().join("out.visit.ndjson")).expect("the fragments");
        let mut daemon = Daemon::start(&file, &[], None);
        assert!(daemon.wait().success(), "{}", daemon.said());
        let all = fs::read_to_string(dir.path().join("out.visit.ndjson")).expect("the fragments");
        let parts = seen.lines().zip(all.lines()).position(|(before, after)| before != after);
        assert_eq!(parts, None, "a line that had been seen came again as another one");
        assert!(seen.lines().count() > passages * BATCH / 2, "too little had been seen");
    }
}
