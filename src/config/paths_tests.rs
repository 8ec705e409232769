use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;
use crate::config::{GroupConfig, TreatmentPreset};

#[test]
fn links_and_spellings_identify_same_file() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("file"), "x").unwrap();
    fs::write(at("other"), "x").unwrap();
    fs::hard_link(at("file"), at("hard")).unwrap();
    symlink("file", at("soft")).unwrap();
    symlink("folder", at("way")).unwrap();
    // The target is missing; opening the link for writing would create it.
    symlink("way/new", at("dangling")).unwrap();
    symlink("dangling", at("twice")).unwrap();
    for name in ["file", "./file", "folder/../file", "hard", "soft", "way/../file"] {
        assert!(is_same_file(&at(name), &at("file")), "{name}");
        assert!(!is_same_file(&at(name), &at("other")), "{name}");
        assert!(!is_same_file(&at(name), &at("folder/new")), "{name}");
    }
    for name in ["folder/new", "folder/./new", "way/new", "dangling", "twice", "none/../folder/new"] {
        assert!(is_same_file(&at(name), &at("folder/new")), "{name}");
        assert!(!is_same_file(&at(name), &at("new")), "{name}");
    }
    symlink("round", at("round")).unwrap();
    assert!(!is_same_file(&at("round"), &at("file")), "a circle of links ends");
}

fn config(root: &Path, dead: Option<&str>, groups: &[&str]) -> Config {
    let mut config = Config::default();
    config.source.kind = SourceKind::File;
    config.source.path = root.join("in.ndjson");
    config.sink.kind = SinkKind::File;
    config.sink.path = root.join("out");
    config.sink.dead_letter_path = dead.map(|name| root.join(name));
    config.group = groups.iter().map(|name| GroupConfig { name: (*name).into(), ..GroupConfig::default() }).collect();
    config
}

fn keys(config: &Config) -> Vec<String> {
    clashes(config).into_iter().map(|c| c.key).collect()
}

#[test]
fn conflict_of_any_two_files_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let of = |dead, groups: &[&str]| config(root.path(), dead, groups);
    assert!(keys(&of(Some("dead"), &["a", "b"])).is_empty());
    assert_eq!(keys(&of(Some("out"), &[])), ["sink.dead_letter_path"]);
    assert!(keys(&of(Some("out"), &["a", "b"])).is_empty(), "the groups are beside it");
    assert_eq!(keys(&of(Some("out.b"), &["a", "b"])), ["sink.dead_letter_path"]);
    assert_eq!(keys(&of(Some("in.ndjson"), &[])), ["sink.dead_letter_path"]);
    let mut marked = of(Some("out.b.untruthful"), &["a", "b"]);
    assert!(keys(&marked).is_empty());
    marked.treatment.preset = TreatmentPreset::Coverage;
    assert_eq!(keys(&marked), ["sink.dead_letter_path"], "the mark would overwrite dead letters");
    let mut beside = of(None, &[]);
    for (path, clash) in [("*.ndjson", false), ("o*", true), ("out.[a-z]", false), ("", true), ("x", false)] {
        beside.source.path = root.path().join(path);
        assert_eq!(!keys(&beside).is_empty(), clash, "{path:?} would be read again with what is written");
    }
    let mut over = of(None, &[]);
    over.sink.path = root.path().join("x/../in.ndjson");
    assert_eq!(keys(&over), ["sink.path"]);
    symlink(root.path().join("out.a"), root.path().join("out.b")).unwrap();
    assert_eq!(keys(&of(None, &["a", "b"])), ["sink.path"], "two groups in one file");
}

#[test]
fn output_over_configured_input_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let mut read = config(root.path(), None, &[]);
    read.schema.file = at("schema.toml");
    read.state.secret_file = Some(at("secret"));
    read.plan.prime = Some(at("in.ndjson"));
    read.telemetry.token_file = Some(at("token"));
    let others = [vec![UsedFile::file("the configuration", &at("throng.toml"))], read.files_read()].concat();
    let key = |config: &Config| config.output_problem("throng.toml", &others).map(|problem| problem.key);
    assert_eq!(key(&read), None, "the source may be the sample too");
    for name in ["schema.toml", "secret", "token", "./secret", "throng.toml"] {
        let mut over = read.clone();
        over.sink.path = at(name);
        assert_eq!(key(&over).as_deref(), Some("sink.path"), "{name}");
        let mut over = read.clone();
        over.sink.dead_letter_path = Some(at(name));
        assert_eq!(key(&over).as_deref(), Some("sink.dead_letter_path"), "{name}");
    }
}

#[test]
fn lineage_over_configured_file_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut config = config(root.path(), Some("dead"), &["a", "b"]);
    config.schema.file = root.path().join("schema.toml");
    config.state.secret_file = Some(root.path().join("secret"));
    let others =
        [vec![UsedFile::file("the configuration", &root.path().join("throng.toml"))], config.files_read()].concat();
    let problem = |name: &str| config.lineage_problem(&root.path().join(name), &others);
    assert_eq!(problem("lineage"), None);
    for (name, key) in [
        ("out.a", "sink.path"),
        ("./out.b", "sink.path"),
        ("dead", "sink.dead_letter_path"),
        ("in.ndjson", "source.path"),
        ("schema.toml", "schema.file"),
        ("secret", "state.secret_file"),
        ("throng.toml", "the configuration"),
    ] {
        let problem = problem(name).expect(name);
        assert_eq!(problem.key, "--lineage");
        assert!(problem.message.contains(key), "{problem}");
    }
}

proptest! {
    /// Compares `resolve_links` with a step-by-step walk through existing folders.
    #[test]
    fn resolved_path_matches_step_by_step_walk(steps in prop::collection::vec(0..4_usize, 0..8), name in "[a-c]") {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("p/p/p/p/p/p/p/p")).unwrap();
        let (mut path, mut depth) = (root.path().to_owned(), 0_usize);
        for step in steps {
            match step {
                0 => path.push("."),
                1 if depth > 0 => {
                    path.push("..");
                    depth -= 1;
                }
                _ => {
                    path.push("p");
                    depth += 1;
                }
            }
        }
        let mut walked = root.path().canonicalize().unwrap();
        walked.extend(std::iter::repeat_n("p", depth));
        prop_assert_eq!(resolve_links(&path.join(&name)), walked.join(&name));
        prop_assert!(is_same_file(&path.join(&name), &walked.join(&name)));
        fs::write(walked.join(&name), "x").unwrap();
        prop_assert!(is_same_file(&path.join(&name), &walked.join(&name)));
    }
}
