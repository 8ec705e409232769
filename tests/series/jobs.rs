//! File jobs that share a state directory.

use super::{SERIES, configuration, days, refused, rows, run, write_csv};
use crate::support;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use support::daemon::scratch;

/// Erasing a person retires the whole cohort of that person.
#[test]
fn series_jobs_with_state_keep_cohorts_and_erase_subjects() {
    let dir = scratch();
    let all = days(40, 40, 6);
    let (first, second) = all.split_at(all.iter().position(|(_, day, ..)| day == "2026-01-21").expect("the day"));
    let with_state = |name: &str, sink: &str| {
        let state = format!("path = \"{}/state\"\n", dir.path().display());
        run(dir.path(), name, sink, &format!("{state}{SERIES}"))
    };
    write_csv(&dir.path().join("in.csv"), first);
    with_state("one", "one.ndjson");
    let config = dir.path().join("one.toml");
    let forget = |person: &str| {
        let output = crate::support::binary::throng().args(["forget", "-c"]).arg(&config).arg(person).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    let said = forget("p004");
    // Counts the person without open buckets, and one place in a cohort.
    assert!(said.contains("2  people, open buckets and cohort memberships of series"), "{said}");
    assert!(forget("p004").contains("0  people, open buckets"), "erased twice");
    write_csv(&dir.path().join("in.csv"), second);
    let said = with_state("two", "two.ndjson");
    let left = rows(&dir.path().join("two.ndjson")).len();
    assert!(said.contains(&format!("in {left} rows")), "rows of the first job are no rows of this one: {said}");
    let tokens = |name: &str| -> BTreeMap<String, (String, u64)> {
        let rows = rows(&dir.path().join(name));
        let cohorts = rows.iter().filter_map(|row| Some((row["cohort"].as_str()?.to_owned(), row)));
        cohorts
            .map(|(token, row)| (token, (row["stratum"]["sex"].to_string(), row["n"].as_u64().unwrap_or(0))))
            .collect()
    };
    let (before, after) = (tokens("one.ndjson"), tokens("two.ndjson"));
    let gone: Vec<_> = before.iter().filter(|(token, _)| !after.contains_key(*token)).collect();
    assert_eq!(gone.len(), 1, "{before:?} {after:?}");
    assert_eq!(gone[0].1.0, "\"female\"", "p004 is female");
    let kept = before.len() - 1;
    assert_eq!(after.len(), kept, "nobody of the retired cohort is new, so none is formed: {after:?}");
    let days: Vec<String> = rows(&dir.path().join("two.ndjson")).iter().map(|row| row["bucket"].to_string()).collect();
    assert!(days.iter().all(|day| day.as_str() > "\"2026-01-20\""), "a bucket left twice");
    // A third job would overwrite rows that are never published again.
    write_csv(&dir.path().join("in.csv"), &all);
    let before = fs::read(dir.path().join("two.ndjson")).expect("rows");
    let state = format!("path = \"{}/state\"\n", dir.path().display());
    let said = refused(dir.path(), "three", "two.ndjson", &format!("{state}{SERIES}"));
    assert!(said.contains("two.ndjson is not empty") && said.contains("sink.path"), "{said}");
    assert_eq!(fs::read(dir.path().join("two.ndjson")).expect("rows"), before);
    fs::write(dir.path().join("lineage"), "of the second job").expect("a lineage");
    let lineage = dir.path().join("lineage");
    let config = dir.path().join("four.toml");
    fs::write(&config, configuration(dir.path(), "four.ndjson", &format!("{state}{SERIES}"))).expect("a configuration");
    let command = [OsStr::new("run"), "-c".as_ref(), config.as_os_str(), "--lineage".as_ref(), lineage.as_os_str()];
    let output = support::binary::throng().args(command).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("lineage is not empty"), "{said}");
    assert_eq!(fs::read_to_string(&lineage).expect("the lineage"), "of the second job");
    for key in ["dead_letter_path", "audit_file"] {
        let over = format!("four.ndjson\"\n{key} = \"{}/two.ndjson", dir.path().display());
        let said = refused(dir.path(), "five", &over, &format!("{state}{SERIES}"));
        assert!(said.contains("two.ndjson is not empty") && said.contains(key), "{said}");
        assert_eq!(fs::read(dir.path().join("two.ndjson")).expect("rows"), before);
    }
    run(dir.path(), "alone", "one.ndjson", SERIES);
}

/// A state stores histories by position.
#[test]
fn state_of_other_series_is_refused() {
    let dir = scratch();
    write_csv(&dir.path().join("in.csv"), &days(20, 10, 21));
    let state = format!("path = \"{}/state\"\n", dir.path().display());
    run(dir.path(), "one", "one.ndjson", &format!("{state}{SERIES}"));
    let unstratified = SERIES.replace("[cohort]\nstrata = [\"sex\"]\n", "");
    let others = [
        unstratified,
        SERIES.replace("\"daily\"", "\"other\""),
        format!("{SERIES}every = \"1w\"\n"),
        format!("{SERIES}pooled = true\n"),
    ];
    for (at, series) in others.into_iter().enumerate() {
        let said = refused(dir.path(), "two", &format!("two{at}.ndjson"), &format!("{state}{series}"));
        assert!(said.contains("cohorts of other series") && !said.contains("damaged"), "{series}: {said}");
    }
}

#[test]
fn single_later_date_does_not_close_series_buckets() {
    let all = days(30, 20, 22);
    let (first, second) = all.split_at(all.iter().position(|(_, day, ..)| day == "2026-01-11").expect("the day"));
    for date in ["2026-01-11", "2026-01-19", "2026-11-20", "9999-12-30"] {
        let dir = scratch();
        let state = format!("path = \"{}/state\"\n{SERIES}", dir.path().display());
        let mut spoiled = first.to_vec();
        spoiled.push(("p001".into(), date.into(), 5_000, "male"));
        write_csv(&dir.path().join("in.csv"), &spoiled);
        run(dir.path(), "one", "one.ndjson", &state);
        write_csv(&dir.path().join("in.csv"), second);
        run(dir.path(), "two", "two.ndjson", &state);
        let buckets: std::collections::BTreeSet<String> =
            rows(&dir.path().join("two.ndjson")).iter().map(|row| row["bucket"].to_string()).collect();
        assert_eq!(buckets.len(), 10, "{date}: {buckets:?}");
    }
}
