//! A data set in a file and in memory gives equal bytes and reports.

use crate::config::{self, Config};
use crate::dataset::{
    AnonymizationReport, AnonymizationStep, AnonymizeError, DatasetSource, RunCallbacks, StepCallback, anonymize,
};
use proptest::prelude::*;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use throng_core::lattice::recoding_passes::RecodingPass;

const SCHEMA: &str = r#"
name = "people"
[[attribute]]
name = "illness"
type = "string"
role = "sensitive"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"common" = ["flu", "cold"]
"other" = ["gout", "mumps", "rabies", "plague"]
[[attribute]]
name = "age"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 99
widths = [10, 50]
[[attribute]]
name = "mood"
type = "string"
role = "sensitive"
[[attribute]]
name = "place"
type = "string"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"north" = ["Aa", "Bb"]
"south" = ["Cc", "Dd"]
[[attribute]]
name = "remark"
type = "string"
role = "insensitive"
[[attribute]]
name = "leaves"
type = "string"
role = "insensitive"
[[attribute]]
name = "person"
type = "string"
"#;

const ILLNESSES: [&str; 7] = ["flu", "cold", "gout", "mumps", "rabies", "plague", ""];

/// Age, place, illness, mood, remark, release mark, person.
type CaseRow = (u32, usize, usize, u32, u32, bool, u32);

#[derive(Clone, Debug)]
struct DatasetCase {
    rows: Vec<CaseRow>,
    named: bool,
    marked: bool,
    k: usize,
    limit: f64,
    models: &'static str,
    measure: &'static str,
    format: &'static str,
}

const MODELS: [&str; 6] = [
    "",
    "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\ndiversity = \"distinct\"\n",
    "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"mood\"\nl = 1.5\ndiversity = \"entropy\"\n",
    "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\nc = 3.0\ndiversity = \"recursive\"\n",
    "[[privacy.model]]\nkind = \"t_closeness\"\nattribute = \"illness\"\nt = 0.4\nground = \"equal\"\n",
    "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\ndiversity = \"distinct\"\n\
     [[privacy.model]]\nkind = \"t_closeness\"\nattribute = \"mood\"\nt = 0.5\nground = \"ordered\"\n",
];

fn cases() -> impl Strategy<Value = DatasetCase> {
    // Common and rare values.
    let few = |of: u32| prop_oneof![3 => 0..of.div_ceil(3), 1 => 0..of];
    let row = (
        few(99),
        0usize..4,
        prop_oneof![6 => 0usize..2, 2 => 2usize..4, 1 => 4usize..7],
        few(7),
        0u32..3,
        prop::bool::weighted(0.8),
        few(40),
    );
    let shape =
        (any::<bool>(), prop::bool::weighted(0.25), 2usize..5, prop_oneof![Just(0.0), Just(0.1), Just(0.5), Just(1.0)]);
    let terms = (prop::sample::select(&MODELS[..]), prop::sample::select(&["loss", "aecs", "discernibility"][..]));
    let formats = prop::sample::select(&["csv", "ndjson"][..]);
    (prop::collection::vec(row, 1..140), shape, terms, formats).prop_map(
        |(rows, (named, marked, k, limit), (models, measure), format)| DatasetCase {
            rows,
            named,
            marked,
            k,
            limit,
            models,
            measure,
            format,
        },
    )
}

impl DatasetCase {
    fn write(&self, folder: &Path) {
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
        let role = if self.named { "role = \"subject\"\n" } else { "role = \"identifier\"\n" };
        write("schema.toml", &format!("{SCHEMA}{role}"));
        let (k, limit, measure) = (self.k, self.limit, self.measure);
        let marked = if self.marked { "released = \"leaves\"\n" } else { "" };
        let settings = format!(
            "[schema]\nfile = \"schema.toml\"\n[anonymize]\nsuppression_limit = {limit:?}\nmeasure = \"{measure}\"\n{marked}"
        );
        write("config.toml", &format!("{settings}[privacy]\nk = {k}\n{}", self.models));
        let mut text = String::from("illness,age,mood,place,remark,leaves,person\n");
        for &(age, place, illness, mood, remark, leaves, person) in &self.rows {
            let (illness, place) = (ILLNESSES[illness], ["Aa", "Bb", "Cc", "Dd"][place]);
            // Some records have no subject.
            let person = if person == 1 { String::new() } else { format!("p{person}") };
            writeln!(text, "{illness},{age},m{mood},{place},r{remark},{},{person}", if leaves { "yes" } else { "no" })
                .expect("a text");
        }
        write("in.csv", &text);
    }

    fn config(&self, folder: &Path, output: &str) -> Config {
        let at = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
        let output = at(&format!("{output}.{}", self.format));
        let variables = [
            ("SOURCE__KIND", "file".to_owned()),
            ("SINK__KIND", "file".to_owned()),
            ("SOURCE__PATH", at("in.csv")),
            ("SINK__PATH", output),
            ("SCHEMA__FILE", at("schema.toml")),
        ];
        let variables = variables.into_iter().map(|(key, value)| (format!("THRONG__{key}"), value));
        let variables = variables.chain([("THRONG_SECRET".to_owned(), "a secret of the tests".to_owned())]);
        config::load(&folder.join("config.toml"), variables).expect("a sound configuration")
    }

    fn run(
        &self,
        folder: &Path,
        output: &str,
        source: &DatasetSource<'_>,
    ) -> (Result<AnonymizationReport, AnonymizeError>, Option<Vec<u8>>) {
        self.run_attended(folder, output, source, &|_| Ok(()))
    }

    fn run_attended(
        &self,
        folder: &Path,
        output: &str,
        source: &DatasetSource<'_>,
        step: StepCallback<'_>,
    ) -> (Result<AnonymizationReport, AnonymizeError>, Option<Vec<u8>>) {
        let config = self.config(folder, output);
        let attended = RunCallbacks { watch: &|_| {}, stop: &AtomicBool::new(false), note: &|_| {}, step };
        let done = anonymize(&config, "config.toml", source, attended);
        (done, std::fs::read(&config.sink.path).ok())
    }
}

/// Without times, threads and mean risk, which [`check_both_storages`] compares up to rounding.
fn comparable_report(done: &AnonymizationReport) -> String {
    let pass = |p: &RecodingPass| {
        format!("{:?} {} {} {} {} {:?}", p.policy, p.records, p.released, p.refused, p.classes, p.quality)
    };
    let passes: Vec<String> = done.recoded.passes.iter().map(pass).collect();
    let account = &done.recoded.overall_figures;
    format!(
        "{} {} {} {passes:?} {} {} {} {:?} {} {:?} {:?} {:?} {} {} {:?} {} {:?}",
        done.rows,
        done.to_release,
        done.swallowed,
        account.suppressed,
        account.classes,
        account.smallest,
        account.policy_quality,
        done.recoded.limit,
        done.recoded.raw_quality,
        done.risk_before,
        done.risk.highest,
        done.risk.lines,
        done.rare_sensitive_cells,
        done.people,
        done.lattice,
        done.labels,
    )
}

/// Parts of one class and of several.
fn check_both_storages(case: &DatasetCase) -> Result<bool, TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    case.write(folder.path());
    let (held, bytes) = case.run(folder.path(), "held", &DatasetSource::in_memory());
    for part in [None, Some(1), Some(30)] {
        let source = DatasetSource { temp: Some(folder.path()), part, ..DatasetSource::in_memory() };
        let (spilled, of_file) = case.run(folder.path(), "spilled", &source);
        match (&held, &spilled) {
            (Ok(held), Ok(spilled)) => {
                prop_assert_eq!(comparable_report(held), comparable_report(spilled));
                // The order of the sum differs.
                let (held, spilled) = (held.risk.average(), spilled.risk.average());
                prop_assert!((held - spilled).abs() < 1e-9, "mean risk {held} in memory, {spilled} in a file");
            }
            (Err(held), Err(spilled)) => prop_assert_eq!(held.to_string(), spilled.to_string()),
            (held, spilled) => prop_assert!(false, "{held:?} in memory, {spilled:?} in a file"),
        }
        prop_assert!(bytes == of_file, "other bytes in parts of {:?}", part);
    }
    Ok(held.is_ok_and(|held| held.rare_sensitive_cells > 0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn dataset_in_file_and_memory_release_equal_bytes(case in cases()) {
        check_both_storages(&case)?;
    }
}

/// Hidden values, classes that cannot hide them, and several parts.
#[test]
fn rare_values_in_file_and_memory_are_hidden_equally() {
    let mut hid = 0;
    for seed in 0..40u32 {
        let row = |at: u32| {
            let mixed = throng_core::values::digest::mix(u64::from(seed) << 32 | u64::from(at)) as u32;
            let illness = if mixed.is_multiple_of(11) { 4 + at as usize % 3 } else { mixed as usize % 3 };
            let mood = if mixed.is_multiple_of(17) { at } else { mixed / 7 % 3 };
            (mixed / 3 % 99, mixed as usize / 5 % 4, illness, mood, 0, true, mixed / 11 % 90)
        };
        let case = DatasetCase {
            rows: (0..160).map(row).collect(),
            named: seed % 2 == 0,
            marked: false,
            k: 3,
            limit: 0.3,
            models: MODELS[seed as usize % MODELS.len()],
            measure: "loss",
            format: "csv",
        };
        hid += usize::from(check_both_storages(&case).expect("the same"));
    }
    assert!(hid > 10, "only {hid} of 40 hid anything");
}

#[test]
fn job_ended_at_any_step_keeps_previous_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = (0..5000).map(|at: u32| (at % 90, at as usize % 4, 0, at % 3, 0, true, at + 2)).collect();
    let case =
        DatasetCase { rows, named: true, marked: false, k: 3, limit: 0.3, models: "", measure: "loss", format: "csv" };
    case.write(folder.path());
    let steps = std::cell::RefCell::new(Vec::new());
    let note = |step| {
        steps.borrow_mut().push(step);
        Ok(())
    };
    let (done, released) = case.run_attended(folder.path(), "out", &DatasetSource::in_memory(), &note);
    done.expect("a release");
    let released = released.expect("an output");
    let steps = steps.into_inner();
    let is_late = |step: &AnonymizationStep| {
        matches!(
            step,
            AnonymizationStep::Dividing { .. }
                | AnonymizationStep::Verifying { .. }
                | AnonymizationStep::Writing { .. }
        )
    };
    assert!(steps.iter().filter(|step| is_late(step)).count() >= 4, "a step in the middle of writing: {steps:?}");
    let files = || std::fs::read_dir(folder.path()).expect("a folder").count();
    let before = files();
    for end in steps.into_iter().filter(is_late) {
        let ended = |step| if step == end { Err(AnonymizeError::StoppedAfter) } else { Ok(()) };
        let (done, kept) = case.run_attended(folder.path(), "out", &DatasetSource::in_memory(), &ended);
        assert!(matches!(done, Err(AnonymizeError::StoppedAfter)), "{end:?}");
        assert!(kept.as_ref() == Some(&released) && files() == before, "{end:?}");
    }
}
