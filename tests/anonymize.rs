//! Tests `throng anonymize` on the command line.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

const SCHEMA: &str = r#"
name = "people"
[[attribute]]
name = "age"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 99
widths = [10, 50]
[[attribute]]
name = "place"
type = "string"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"north" = ["Aa", "Bb"]
"south" = ["Cc", "Dd"]
[[attribute]]
name = "illness"
type = "string"
role = "sensitive"
[attribute.hierarchy]
kind = "tree"
tree = ["flu", "cold", "gout"]
"#;

const STAR: &str = "\"*\"";

fn folder(models: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("schema.toml", SCHEMA);
    write("config.toml", &format!("[schema]\nfile = \"schema.toml\"\n[privacy]\nk = 3\n{models}"));
    let mut rows = String::from("age,place,illness\n");
    for row in 0..200 {
        let place = ["Aa", "Bb", "Cc", "Dd"][row * row % 4];
        rows += &format!("{},{place},{}\n", (row * 37) % 100, ["flu", "cold", "gout"][row % 3]);
    }
    write("in.csv", &rows);
    folder
}

fn run(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    crate::support::binary::throng()
        .current_dir(folder)
        .args(["anonymize", "in.csv", "-c", "config.toml"])
        .args(args)
        .envs(env.iter().copied())
        .output()
        .expect("it starts")
}

fn report(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("r.json")).expect("a report");
    serde_json::from_str(&text).expect("JSON")
}

fn classes(text: &str) -> BTreeMap<&str, u64> {
    let mut classes = BTreeMap::new();
    for line in text.lines().skip(1) {
        *classes.entry(line.rsplit_once(',').expect("three columns").0).or_default() += 1;
    }
    classes
}

#[test]
fn release_matches_its_report() {
    let folder = folder("");
    for (limit, strategy) in [("0", "bfs"), ("0.05", "ola"), ("0.2", "flash2p")] {
        let env = [("THRONG__ANONYMIZE__SUPPRESSION_LIMIT", limit), ("THRONG__ANONYMIZE__STRATEGY", strategy)];
        let output = run(folder.path(), &["-o", "out.csv", "--report", "r.json"], &env);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report = report(folder.path());
        let text = std::fs::read_to_string(folder.path().join("out.csv")).expect("a release");
        let classes = classes(&text);
        assert!(classes.values().all(|&size| size >= 3), "{classes:?}");
        assert_eq!(report["classes"], classes.len() as u64);
        let released: u64 = classes.values().sum();
        assert_eq!(report["released_records"], released);
        assert_eq!(report["suppressed_records"], 200 - released);
        assert!((200 - released) as f64 <= limit.parse::<f64>().expect("a number") * 200.0);
        assert_eq!(report["optimal"], true);
        assert_eq!(report["strategy"], strategy);
        let mut sorted: Vec<&str> = text.lines().skip(1).collect();
        sorted.sort_unstable();
        assert!(text.lines().skip(1).eq(sorted), "the order of the release says something of the input");
    }
}

#[test]
fn release_in_other_formats_has_the_same_records() {
    let folder = folder("");
    assert!(run(folder.path(), &["-o", "out.csv"], &[]).status.success());
    assert!(run(folder.path(), &["-o", "out.ndjson"], &[]).status.success());
    assert!(run(folder.path(), &["-o", "out.parquet"], &[]).status.success());
    let lines = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a release").lines().count();
    assert_eq!(lines("out.csv"), lines("out.ndjson") + 1);
    assert!(std::fs::read(folder.path().join("out.parquet")).expect("a release").starts_with(b"PAR1"));
}

#[test]
fn output_path_that_is_a_directory_is_refused() {
    let folder = folder("");
    let at = |name: &str| folder.path().join(name);
    for (output, mine) in [("mine", "mine/deep"), ("mine.csv", "mine.csv/deep"), ("mine.parquet", "mine.parquet/all")] {
        std::fs::create_dir_all(at(mine)).expect("a folder");
        std::fs::write(at(mine).join("thesis"), "years").expect("written");
        let refused = run(folder.path(), &["-o", output, "--report", "r.json"], &[]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{output}: {said}");
        assert!(said.contains(output) && said.contains("name a"), "the path and the remedy: {said}");
        assert!(!said.contains("policies"), "before the search: {said}");
        assert_eq!(std::fs::read_to_string(at(mine).join("thesis")).expect("it is there still"), "years");
        assert!(!at("r.json").exists());
    }
    for _ in 0..2 {
        assert!(run(folder.path(), &["-o", "out.parquet"], &[]).status.success());
    }
    assert!(at("out.parquet").is_file() && !at(".out.parquet.unfinished").exists());
}

#[test]
fn output_path_that_is_an_input_is_refused() {
    let folder = folder("");
    let at = |name: &str| folder.path().join(name);
    let tree = SCHEMA.replace(
        "kind = \"tree\"\n[attribute.hierarchy.tree]\n\"north\" = [\"Aa\", \"Bb\"]\n\"south\" = [\"Cc\", \"Dd\"]\n",
        "kind = \"file\"\npath = \"places.csv\"\n",
    );
    assert_ne!(tree, SCHEMA);
    std::fs::write(at("schema.toml"), tree).expect("written");
    std::fs::write(at("places.csv"), "Aa;north;all\nBb;north;all\nCc;south;all\nDd;south;all\n").expect("written");
    throng::config::Secret::create(&at("secret")).expect("written");
    let config = std::fs::read_to_string(at("config.toml")).expect("read")
        + "[state]\npath = \"state\"\nsecret_file = \"secret\"\n[sink]\ndead_letter_path = \"dead.ndjson\"\n";
    std::fs::write(at("config.toml"), config).expect("written");
    std::fs::hard_link(at("schema.toml"), at("also")).expect("a link");
    std::os::unix::fs::symlink("secret", at("link")).expect("a link");
    std::fs::create_dir(at("state")).expect("a folder");
    let precious = ["in.csv", "config.toml", "schema.toml", "places.csv", "secret"];
    let before: Vec<_> = precious.iter().map(|name| std::fs::read(at(name)).expect("read")).collect();
    for (over, named) in [
        ("in.csv", "in.csv"),
        ("config.toml", "config.toml"),
        ("schema.toml", "schema.toml"),
        ("./also", "schema.toml"),
        ("places.csv", "places.csv"),
        ("secret", "secret"),
        ("link", "secret"),
        ("dead.ndjson", "dead.ndjson"),
        ("state/x.csv", "state"),
    ] {
        for args in [&["-o", over][..], &["-o", "out.csv", "--report", over], &["--frontier", "--report", over]] {
            let refused = run(folder.path(), args, &[]);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert_eq!(refused.status.code(), Some(2), "{args:?}: {said}");
            assert!(said.contains(over) && said.contains(named), "{args:?}: both are named: {said}");
        }
    }
    std::fs::create_dir(at("folder")).expect("a folder");
    for (report, code) in [("out.csv", 2), (".out.csv.unfinished", 2), ("state", 2), ("none/r.json", 1), ("folder", 1)]
    {
        let refused = run(folder.path(), &["-o", "out.csv", "--report", report], &[]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{report}: {said}");
        assert!(said.contains(report) && !said.contains("policies"), "before the search: {said}");
    }
    assert!(before.iter().zip(precious).all(|(text, name)| *text == std::fs::read(at(name)).expect("read")));
    assert!(!at("out.csv").exists() && !at("dead.ndjson").exists());
    let output = run(folder.path(), &["-o", "out.csv", "--report", "r.json"], &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A release locks its unfinished file as a daemon does.
#[test]
fn output_locked_by_another_process_is_not_replaced() {
    let folder = folder("");
    let at = |name: &str| folder.path().join(name);
    for (locked, args) in [
        ("out.parquet", &["-o", "out.parquet"][..]),
        ("out.csv", &["-o", "out.csv"]),
        (".late.parquet.unfinished", &["-o", "late.parquet"]),
        (".late.csv.unfinished", &["-o", "late.csv"]),
        ("r.json", &["-o", "other.csv", "--report", "r.json"]),
        (".late.json.unfinished", &["-o", "other.csv", "--report", "late.json"]),
    ] {
        let kept = at(locked);
        std::fs::write(&kept, "theirs").expect("written");
        let held = std::fs::File::open(at(locked)).expect("there");
        held.try_lock().expect("ours");
        let refused = run(folder.path(), args, &[]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{locked}: {said}");
        assert!(said.contains(args[args.len() - 1]) && said.contains("locked by another process"), "{locked}: {said}");
        assert_eq!(std::fs::read_to_string(&kept).expect("it is there still"), "theirs", "{locked}");
    }
}

#[test]
fn output_symlink_writes_to_its_target() {
    let folder = folder("");
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("real.csv", at("link.csv")).expect("a link");
    std::os::unix::fs::symlink("real.json", at("link.json")).expect("a link");
    for _ in 0..2 {
        assert!(run(folder.path(), &["-o", "link.csv", "--report", "link.json"], &[]).status.success());
        for (link, real) in [("link.csv", "real.csv"), ("link.json", "real.json")] {
            assert!(at(link).is_symlink() && at(real).is_file(), "{link}");
        }
    }
}

#[test]
fn open_quote_lines_count_as_lost() {
    let folder = folder("");
    let at = |name: &str| folder.path().join(name);
    let text = std::fs::read_to_string(at("in.csv")).expect("read");
    // An opening quote, and the next one sixty records later.
    let quoted = |(number, line): (usize, &str)| match number {
        50 => line.replace(",flu", ",\"flu").replace(",cold", ",\"cold").replace(",gout", ",\"gout") + "\n",
        110 => format!("{line}\"\n"),
        _ => format!("{line}\n"),
    };
    std::fs::write(at("in.csv"), text.lines().enumerate().map(quoted).collect::<String>()).expect("written");
    let schema = SCHEMA.replace(
        "role = \"sensitive\"\n[attribute.hierarchy]\nkind = \"tree\"\ntree = [\"flu\", \"cold\", \"gout\"]\n",
        "role = \"insensitive\"\n",
    );
    std::fs::write(at("schema.toml"), schema).expect("written");
    let refused = run(folder.path(), &["-o", "out.csv", "--fail-above", "0.2"], &[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("including 60 line(s) inside an unclosed quote"), "{said}");
    assert!(run(folder.path(), &["-o", "out.csv", "--fail-above", "0.8"], &[]).status.success());
}

#[test]
fn frontier_quality_falls_with_k() {
    let folder = folder("");
    let output = run(folder.path(), &["--frontier", "--report", "r.json"], &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = report(folder.path());
    let quality: Vec<f64> = report["frontier"]
        .as_array()
        .expect("points")
        .iter()
        .map(|point| point["quality"].as_f64().unwrap_or(1.0))
        .collect();
    assert!(quality.len() > 3 && quality.windows(2).all(|pair| pair[0] <= pair[1]), "{quality:?}");
}

#[test]
fn impossible_models_are_refused_with_their_key() {
    let model = |text: &str| format!("[[privacy.model]]\n{text}\n");
    let diverse =
        |attribute: &str, l: &str| model(&format!("kind = \"l_diversity\"\nattribute = \"{attribute}\"\nl = {l}"));
    for (config, env, code, words) in [
        (diverse("age", "2.0"), vec![], 2, "cannot be quasi too"),
        (diverse("nothing", "2.0"), vec![], 2, "privacy.model[0].attribute"),
        (diverse("illness", "2.5"), vec![], 2, "privacy.model[0].l"),
        (diverse("illness", "4.0"), vec![], 1, "no policy satisfies"),
        (model("kind = \"t_closeness\"\nattribute = \"illness\"\nt = 1.5"), vec![], 2, "t is out of range"),
        (model("kind = \"t_closeness\""), vec![], 2, "privacy.model[0].attribute"),
        (
            String::new(),
            vec![("THRONG__ANONYMIZE__SUPPRESSION_LIMIT", "1.5")],
            2,
            "THRONG__ANONYMIZE__SUPPRESSION_LIMIT",
        ),
        (String::new(), vec![("THRONG__ANONYMIZE__MEASURE", "beauty")], 2, "THRONG__ANONYMIZE__MEASURE"),
    ] {
        let folder = folder(&config);
        let output = run(folder.path(), &["-o", "out.csv"], &env);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(!folder.path().join("out.csv").exists(), "nothing is written");
    }
}

#[test]
fn hierarchy_without_a_value_is_named_without_the_value() {
    let folder = folder("");
    let text = std::fs::read_to_string(folder.path().join("in.csv")).expect("the input");
    std::fs::write(folder.path().join("in.csv"), text + "5,Canary77,flu\n").expect("written");
    let output = run(folder.path(), &["-o", "out.csv"], &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("place") && said.contains("does not cover") && !said.contains("Canary77"), "{said}");
}

#[test]
fn daemon_refuses_unsupported_models() {
    let folder = folder(
        "[[privacy.model]]\nkind = \"delta_presence\"\nmin = 0.1\nmax = 0.9\n[source]\nkind = \"file\"\npath = \"in.csv\"\n[sink]\nkind = \"none\"\n",
    );
    let output = crate::support::binary::throng()
        .current_dir(folder.path())
        .args(["run", "-c", "config.toml"])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("privacy.model[0].kind") && said.contains("absent"), "{said}");
}

#[test]
fn release_satisfies_diversity_and_closeness_models() {
    let close = |ground: &str| {
        format!("[[privacy.model]]\nkind = \"t_closeness\"\nattribute = \"illness\"\nt = 0.3\nground = \"{ground}\"\n")
    };
    let diverse = |kind: &str| {
        format!(
            "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\ndiversity = \"{kind}\"\nc = 3.0\nl = 2.0\n"
        )
    };
    let models = ["equal", "ordered", "hierarchical"].map(close).concat()
        + &["distinct", "entropy", "recursive"].map(diverse).concat();
    let folder = folder(&models);
    let output = run(folder.path(), &["-o", "out.csv"], &[("THRONG__ANONYMIZE__SUPPRESSION_LIMIT", "0.3")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.path().join("out.csv")).expect("a release");
    let mut classes: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let (class, illness) = line.rsplit_once(',').expect("three columns");
        *classes.entry(class).or_default().entry(illness).or_default() += 1;
    }
    assert!(!classes.is_empty());
    for counts in classes.values() {
        assert!(counts.len() >= 2, "{counts:?}");
        let n: u64 = counts.values().sum();
        let largest = counts.values().max().expect("a value");
        assert!(*largest < 3 * (n - largest), "{counts:?}");
    }
}

/// Rare sensitive values are released as `*` and count for no privacy model.
#[test]
fn rare_values_count_as_suppressed_in_models() {
    let model = "[[privacy.model]]\nkind = \"l_diversity\"\ndiversity = \"distinct\"\nattribute = \"illness\"\nl = 3\n";
    for (aa, bb, hiv) in [
        ("flu flu cold cold hiv", "flu cold gout gout", 1),
        ("flu flu flu flu cold cold cold cold hiv", "flu flu cold cold gout gout gout gout", 1),
    ] {
        let folder = folder(model);
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write(
            "schema.toml",
            &SCHEMA.replace("tree = [\"flu\", \"cold\", \"gout\"]", "tree = [\"flu\", \"cold\", \"gout\", \"hiv\"]"),
        );
        let rows = |place: &str, illnesses: &str| -> String {
            illnesses.split(' ').map(|illness| format!("33,{place},{illness}\n")).collect()
        };
        write("in.csv", &format!("age,place,illness\n{}{}", rows("Aa", aa), rows("Bb", bb)));
        let env = [("THRONG__PRIVACY__K", "2"), ("THRONG_SECRET", "one secret of both releases")];
        let output = run(folder.path(), &["--frontier=2", "--report", "r.json"], &env);
        assert!(output.status.success() && report(folder.path())["frontier"][0]["quality"].is_number());
        let output = run(folder.path(), &["-o", "out.csv"], &env);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(folder.path().join("out.csv")).expect("a release");
        let mut shown: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in text.lines().skip(1) {
            let (class, illness) = line.rsplit_once(',').expect("three columns");
            shown.entry(class).or_default().push(illness);
        }
        assert!(!shown.is_empty());
        for (class, illnesses) in &shown {
            let exact: std::collections::BTreeSet<_> = illnesses.iter().filter(|illness| **illness != STAR).collect();
            let stars = illnesses.iter().filter(|illness| **illness == STAR).count();
            assert!(exact.is_empty() || exact.len() >= 3, "{class}: {illnesses:?}");
            assert!(stars == 0 || stars >= 2 * hiv, "{class}: {illnesses:?}");
        }
        assert!(!text.contains("hiv"));
        // Two releases with one secret disclose no more than one.
        assert!(run(folder.path(), &["-o", "again.csv"], &env).status.success());
        assert_eq!(text, std::fs::read_to_string(folder.path().join("again.csv")).expect("a release"));
    }
}

#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names"]
fn real_data_shipped_configuration_matches_the_reference() {
    let data = std::env::var_os("THRONG_TEST_DATA").expect("THRONG_TEST_DATA is set");
    let folder = tempfile::tempdir().expect("a folder");
    let (out, report_file) = (folder.path().join("out.csv"), folder.path().join("r.json"));
    // The reference implementation has no privacy model for the occupation.
    let shipped = include_str!("../config/adult-anonymize.toml");
    let (before, after) = (shipped.find("[[privacy.model]]"), shipped.find("[state]"));
    let config = format!("{}{}", &shipped[..before.expect("a model")], &shipped[after.expect("a secret")..]);
    let config = config.replace("adult.secret", folder.path().join("secret").to_str().expect("UTF-8"));
    std::fs::write(folder.path().join("config.toml"), config).expect("written");
    let output = crate::support::binary::throng()
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("anonymize")
        .arg(Path::new(&data).join("adult/adult.csv"))
        .arg("-c")
        .arg(folder.path().join("config.toml"))
        .arg("-o")
        .args([out.as_os_str(), "--report".as_ref(), report_file.as_os_str()])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = report(folder.path());
    assert_eq!(report["suppressed_records"], 1346);
    let loss = report["measures"]["loss"].as_f64().expect("a loss");
    assert!((loss - 0.178_338_995_6).abs() <= 1e-9 * loss, "{loss}");
    assert_eq!(report["policy"]["age"], 3);
}
