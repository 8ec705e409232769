//! k-map with a population in a stream: random small streams through the engine, with restarts, crashes and aborts,
//! against random registers of people. Who of a register a line could be is counted by `register`, which shares no code
//! with the product.

#[path = "../support/mod.rs"]
mod support;

mod adult;
mod refusals;
mod register;
mod threats;

use proptest::prelude::*;
use register::{NAMES, QUASI, Register, raw};
use std::fmt::Write as _;
use support::invariants::{Line, check_once};
use support::schemas::{ILLNESS, PERSON};
use support::stand::{Fault, Stand};
use throng::daemon::engine::Settling;

/// One record: person, age, city, mood.
type Draft = (u8, u8, u8, u8);

#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
struct Scenario {
    names_subjects: bool,
    /// The register names its people as the schema does.
    named: bool,
    two_groups: bool,
    diverse: bool,
    strict: bool,
    k: usize,
    hold: u8,
    window_seconds: u32,
    register: Register,
    batches: Vec<(Vec<Draft>, Fault, i64)>,
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let draft = (0u8..16, any::<u8>(), any::<u8>(), any::<u8>());
    let fault = prop_oneof![
        6 => Just(Fault::Nothing),
        1 => Just(Fault::Restart),
        1 => Just(Fault::Abort),
        1 => Just(Fault::AbortAndDie),
        1 => Just(Fault::LeaveAndDie),
    ];
    let step = prop_oneof![4 => 0i64..1500, 1 => 3000i64..9000, 1 => -5000i64..0];
    let batch = (prop::collection::vec(draft.clone(), 4..36), fault, step);
    let register = (prop::collection::vec(draft, 1..40), prop::sample::subsequence(vec![0, 1, 2], 1..=3), 1usize..=6);
    (
        (any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.3), prop::bool::weighted(0.3)),
        (2usize..=4, prop_oneof![2 => Just(0u8), 1 => Just(2)], prop_oneof![Just(0u32), Just(4), Just(86_400)]),
        register,
        prop::collection::vec(batch, 1..7),
    )
        .prop_map(
            |(
                (names_subjects, named, two_groups, diverse, strict),
                (k, hold, window_seconds),
                (list, known, most),
                batches,
            )| {
                let named = named && names_subjects;
                let record = |&(person, age, city, mood): &Draft| {
                    let person = (person > 0).then(|| format!("p{person}"));
                    (person, vec![raw(0, age), raw(1, city), raw(2, mood)])
                };
                let register = Register { records: list.iter().map(record).collect(), known, k: most };
                Scenario {
                    names_subjects,
                    named,
                    two_groups,
                    diverse,
                    strict,
                    k,
                    hold,
                    window_seconds,
                    register,
                    batches,
                }
            },
        )
}

impl Scenario {
    fn schema(&self) -> String {
        let person = if self.names_subjects { PERSON } else { "" };
        format!("name = \"mapped\"\n{person}{QUASI}{ILLNESS}")
    }

    fn settings(&self, population: Option<&std::path::Path>) -> String {
        let Self { k, hold, window_seconds, .. } = self;
        let recoding = if self.strict { "strict" } else { "ladder" };
        let mut text = format!(
            "[privacy]\nk = {k}\nrecoding = \"{recoding}\"\nmax_hold_batches = {hold}\n\
             support_window = \"{window_seconds}s\"\n[plan]\ninterval = \"2s\"\nwindow_records = 100\n"
        );
        if let Some(path) = population {
            let k = self.register.k;
            write!(text, "[[privacy.model]]\nkind = \"k_map\"\nk = {k}\npopulation = \"{}\"\n", path.display())
                .expect("a string");
        }
        if self.diverse {
            text.push_str("[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\n");
        }
        let groups: &[(&str, &str)] = if self.two_groups {
            &[("a", "\"age\", \"mood\""), ("b", "\"city\", \"illness\"")]
        } else {
            &[("a", "\"age\", \"city\", \"mood\", \"illness\"")]
        };
        for (name, attributes) in groups {
            write!(text, "[[group]]\nname = \"{name}\"\nattributes = [{attributes}]\n").expect("a string");
        }
        text
    }

    /// The quasi attributes of a group.
    fn quasi(&self, group: usize) -> &'static [usize] {
        match (self.two_groups, group) {
            (false, _) => &[0, 1, 2],
            (true, 0) => &[0, 2],
            (true, _) => &[1],
        }
    }

    fn payload(&self, (person, age, city, mood): Draft) -> Option<Vec<u8>> {
        let mut fields = vec![format!("\"illness\":\"i{}\"", person % 3)];
        if self.names_subjects {
            let person = (person > 0).then(|| format!("\"p{}\"", if person > 11 { person - 11 } else { person }));
            fields.push(format!("\"person\":{}", person.unwrap_or("null".to_owned())));
        }
        for (a, choice) in [age, city, mood].into_iter().enumerate() {
            let cell = raw(a, choice);
            if !cell.is_empty() {
                fields.push(format!("\"{}\":{cell}", NAMES[a]));
            }
        }
        Some(format!("{{{}}}", fields.join(",")).into_bytes())
    }

    /// How many people of the register the rarest line could be of, and whether it is enough.
    fn fewest_candidates(&self, lines: &[Line]) -> Result<usize, String> {
        let mut fewest = usize::MAX;
        for line in lines {
            fewest = fewest.min(self.register.candidates(line, self.quasi(line.group), self.named)?);
        }
        Ok(fewest)
    }

    /// Runs the stream, with the register or without; every commit is checked.
    fn run(&self, with_register: bool) -> Result<Stand, TestCaseError> {
        let beside = tempfile::tempdir().expect("a temporary directory");
        let path = beside.path().join("people.ndjson");
        std::fs::write(&path, self.register.file(self.named)).expect("a file");
        let mut stand = Stand::new(&self.schema(), &self.settings(with_register.then_some(path.as_path())));
        let fail = |what: String| TestCaseError::fail(what);
        let mut now = 1_700_000_000_000;
        for number in 0..=self.batches.len() {
            let before = stand.sink.lines.len();
            match self.batches.get(number) {
                Some((drafts, fault, step)) => {
                    now += step;
                    let records: Vec<Option<Vec<u8>>> = drafts.iter().map(|draft| self.payload(*draft)).collect();
                    stand.offer(&records, Settling::No, now, *fault);
                }
                None => stand.settle(Settling::EndOfStream, now),
            }
            stand.promise.check_batch(&stand.sink.lines, stand.sink.committed.0).map_err(fail)?;
            if with_register {
                let fewest = self.fewest_candidates(&stand.sink.lines[before..]).map_err(fail)?;
                prop_assert!(fewest >= self.register.k, "a line could be of {} people only", fewest);
            }
            stand.check_conservation().map_err(fail)?;
        }
        check_once(&stand.sink.lines).map_err(fail)?;
        Ok(stand)
    }
}

fn cases() -> u32 {
    if std::env::var_os("THRONG_LONG").is_some() { 10_000 } else { 300 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 1000, ..ProptestConfig::default() })]
    #[test]
    fn every_line_could_be_of_enough_people_of_the_register(scenario in scenario()) {
        prop_assume!(scenario.register.is_possible(scenario.named));
        scenario.run(true)?;
    }

    /// Of a register in which everybody of the stream stands often enough, nothing is seen in what leaves.
    #[test]
    fn a_register_with_everybody_changes_nothing(scenario in scenario()) {
        let mut scenario = Scenario { named: false, ..scenario };
        let cells = |&(_, age, city, mood): &Draft| (None, vec![raw(0, age), raw(1, city), raw(2, mood)]);
        let everybody: Vec<_> = scenario.batches.iter().flat_map(|(drafts, ..)| drafts).map(cells).collect();
        scenario.register.records = everybody.iter().cycle().take(everybody.len() * scenario.register.k).cloned().collect();
        prop_assume!(scenario.register.is_possible(false));
        let (with, without) = (scenario.run(true)?, scenario.run(false)?);
        prop_assert_eq!(&with.sink.lines, &without.sink.lines);
    }
}

/// The first property means little if nothing leaves, or if nothing would have broken it.
#[test]
fn the_register_matters_and_lets_lines_out() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut runs, mut broken, mut lines, mut fewer) = (0, 0, 0, 0);
    for _ in 0..120 {
        let scenario = scenario().new_tree(&mut runner).expect("a tree").current();
        if !scenario.register.is_possible(scenario.named) {
            continue;
        }
        runs += 1;
        let with = scenario.run(true).expect("enough people");
        let without = scenario.run(false).expect("the promise");
        let fewest = scenario.fewest_candidates(&without.sink.lines).expect("lines");
        broken += usize::from(fewest < scenario.register.k);
        lines += with.sink.lines.len();
        fewer += without.sink.lines.len().saturating_sub(with.sink.lines.len());
    }
    println!("{runs} streams, {broken} would have broken the model; {lines} lines leave, {fewer} fewer than without");
    assert!(runs > 80 && broken > runs / 3 && lines > 2_000, "{runs}, {broken}, {lines}");
}
