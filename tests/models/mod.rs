//! Privacy models in random small streams with restarts, crashes and aborts, recounted by `support::models`.

use crate::support;

mod refusals;
mod threats;

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use support::invariants::{Line, check_once};
use support::models::{Distribution, Ground, Models, Question};
use support::schemas::PERSON;
use support::stand::{Fault, Stand};
use throng::daemon::state::records::Flush;

const QUASI: &str = "[[attribute]]\nname = \"age\"\ntype = \"integer\"\n[attribute.hierarchy]\nkind = \"intervals\"\n\
    min = 0\nmax = 100\nwidths = [5, 20]\n\
    [[attribute]]\nname = \"city\"\ntype = \"string\"\n[attribute.hierarchy]\nkind = \"tree\"\n[attribute.hierarchy.tree]\n\
    \"CH\" = [\"Zug\", \"Bern\"]\n\"FR\" = [\"Paris\", \"Lyon\"]\n";
const ILLNESS: &str = "[[attribute]]\nname = \"illness\"\ntype = \"string\"\nrole = \"sensitive\"\n[attribute.hierarchy]\n\
    kind = \"tree\"\n[attribute.hierarchy.tree]\n\"mild\" = [\"flu\", \"cold\"]\n\"grave\" = [\"hiv\", \"ebola\"]\n";
const PULSE: &str = "[[attribute]]\nname = \"pulse\"\ntype = \"integer\"\nrole = \"sensitive\"\n";

const ILLNESSES: [&str; 9] =
    ["\"flu\"", "\"flu\"", "\"flu\"", "\"cold\"", "\"cold\"", "\"hiv\"", "\"ebola\"", "null", "\"unheard of\""];
const PULSES: [&str; 6] = ["60", "60", "70", "80", "9", ""];

/// Person, age, city, illness, pulse.
type Draft = (u8, u8, u8, u8, u8);

#[derive(Clone, Debug)]
struct Scenario {
    names_subjects: bool,
    two_groups: bool,
    k: usize,
    hold: u8,
    illness: Vec<u8>,
    pulse: Vec<u8>,
    batches: Vec<(Vec<Draft>, Fault, i64)>,
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let draft = (0u8..16, 0u8..24, 0u8..6, any::<u8>(), any::<u8>());
    let fault = prop_oneof![
        5 => Just(Fault::Nothing),
        1 => Just(Fault::Restart),
        1 => Just(Fault::Abort),
        1 => Just(Fault::AbortAndDie),
        1 => Just(Fault::LeaveAndDie),
    ];
    let batch = (
        prop::collection::vec(draft, 4..36),
        fault,
        prop_oneof![4 => 0i64..1500, 1 => 3000i64..9000, 1 => -5000i64..0],
    );
    let models = |least| prop::collection::vec(0u8..7, least..3);
    (
        (prop::bool::weighted(0.8), any::<bool>(), 2usize..=4, prop_oneof![2 => Just(0u8), 1 => Just(2)]),
        (models(1), models(0)),
        prop::collection::vec(batch, 1..8),
    )
        .prop_map(|((names_subjects, two_groups, k, hold), (illness, pulse), batches)| Scenario {
            names_subjects,
            two_groups,
            k,
            hold,
            illness,
            pulse,
            batches,
        })
}

fn model(number: u8, attribute: &str) -> (String, Question) {
    let tree = |above: &[(&str, &str)]| {
        let root = |node: &str| vec![node.to_owned(), "*".to_owned()];
        Ground::Tree(above.iter().map(|(text, node)| ((*text).to_owned(), root(node))).collect())
    };
    let illnesses =
        [("\"flu\"", "mild"), ("\"cold\"", "mild"), ("\"hiv\"", "grave"), ("\"ebola\"", "grave"), ("null", "null")];
    // Without a hierarchy the tree has only a root.
    let flat = || Ground::Tree(PULSES.iter().map(|text| ((*text).to_owned(), vec!["*".to_owned()])).collect());
    let (toml, asked) = match number {
        0 => ("kind = \"l_diversity\"\nl = 2\n", Question::Distinct(2)),
        1 => ("kind = \"l_diversity\"\nl = 3\n", Question::Distinct(3)),
        2 => ("kind = \"l_diversity\"\ndiversity = \"entropy\"\nl = 1.8\n", Question::Entropy(1.8)),
        3 => (
            "kind = \"l_diversity\"\ndiversity = \"recursive\"\nc = 1.5\nl = 2\n",
            Question::Recursive { c: 1.5, l: 2 },
        ),
        4 => ("kind = \"t_closeness\"\nt = 0.35\n", Question::Closeness { t: 0.35, ground: Ground::Equal }),
        5 => (
            "kind = \"t_closeness\"\nt = 0.25\nground = \"ordered\"\n",
            Question::Closeness { t: 0.25, ground: Ground::Ordered },
        ),
        _ => (
            "kind = \"t_closeness\"\nt = 0.3\nground = \"hierarchical\"\n",
            Question::Closeness { t: 0.3, ground: if attribute == "illness" { tree(&illnesses) } else { flat() } },
        ),
    };
    (format!("[[privacy.model]]\nattribute = \"{attribute}\"\n{toml}"), asked)
}

impl Scenario {
    fn schema(&self) -> String {
        let person = if self.names_subjects { PERSON } else { "" };
        format!("name = \"models\"\n{person}{QUASI}{ILLNESS}{PULSE}")
    }

    fn settings(&self) -> String {
        let Self { k, hold, .. } = self;
        let mut text = format!(
            "[privacy]\nk = {k}\nmax_hold_batches = {hold}\n\
             [plan]\ninterval = \"2s\"\nwindow_records = 100\n[batch]\nmax_records = 36\n"
        );
        let groups: &[(&str, &str)] = if self.two_groups {
            &[("a", "\"age\", \"illness\""), ("b", "\"city\", \"pulse\"")]
        } else {
            &[("a", "\"age\", \"city\", \"illness\", \"pulse\"")]
        };
        for (name, attributes) in groups {
            write!(text, "[[group]]\nname = \"{name}\"\nattributes = [{attributes}]\n").expect("a string");
        }
        for (numbers, attribute) in [(&self.illness, "illness"), (&self.pulse, "pulse")] {
            numbers.iter().for_each(|number| text.push_str(&model(*number, attribute).0));
        }
        text
    }

    fn promises(&self) -> Vec<Models> {
        let of = |numbers: &[u8], attribute: &str| Models {
            group: usize::from(self.two_groups && attribute == "pulse"),
            quasi: match (self.two_groups, attribute) {
                (false, _) => vec!["age".to_owned(), "city".to_owned()],
                (true, "pulse") => vec!["city".to_owned()],
                (true, _) => vec!["age".to_owned()],
            },
            attribute: attribute.to_owned(),
            asked: numbers.iter().map(|number| model(*number, attribute).1).collect(),
        };
        let all = [of(&self.illness, "illness"), of(&self.pulse, "pulse")];
        all.into_iter().filter(|models| !models.asked.is_empty()).collect()
    }

    fn payload(&self, draft: Draft, offset: i64) -> (Option<Vec<u8>>, Option<String>) {
        let (person, age, city, illness, pulse) = draft;
        // A few people send many records; one in sixteen records has no person.
        let person = (person > 0).then(|| format!("p{}", if person > 11 { person - 11 } else { person }));
        let truth = if self.names_subjects { person.clone() } else { Some(format!("record {offset}")) };
        let mut fields = Vec::new();
        if self.names_subjects {
            fields.push(format!("\"person\":{}", person.map_or("null".to_owned(), |p| format!("\"{p}\""))));
        }
        fields.push(format!("\"age\":{}", 30 + u32::from(age) / 2));
        fields.push(format!("\"city\":\"{}\"", ["Zug", "Zug", "Zug", "Bern", "Paris", "Lyon"][usize::from(city)]));
        fields.push(format!("\"illness\":{}", ILLNESSES[usize::from(illness) % ILLNESSES.len()]));
        let pulse = PULSES[usize::from(pulse) % PULSES.len()];
        if !pulse.is_empty() {
            fields.push(format!("\"pulse\":{pulse}"));
        }
        (Some(format!("{{{}}}", fields.join(",")).into_bytes()), truth)
    }
}

/// Missing values, then numbers by size or texts alphabetically.
fn distribution(stand: &mut Stand, attribute: &str) -> Distribution {
    let position = stand.position(attribute);
    let counts = stand.engine().references().iter().find(|r| r.attribute == position).cloned().unwrap_or_default();
    let texts = counts.subjects.into_iter().map(|(text, n)| ((!text.is_empty()).then_some(text), n));
    let mut texts: Distribution = texts.collect();
    texts.sort_by_key(|(text, _)| match text {
        None => (0, 0, String::new()),
        Some(text) if text == "null" => (1, 0, String::new()),
        Some(text) => (2, text.parse::<i64>().unwrap_or(0), text.clone()),
    });
    texts
}

fn with_truth(lines: &[Line], truth: &[Option<String>]) -> Vec<Line> {
    let subject = |line: &Line| truth[usize::try_from(line.source.2).expect("an offset")].clone();
    lines.iter().map(|line| Line { subject: subject(line), ..line.clone() }).collect()
}

fn run(scenario: &Scenario) -> Result<(Stand, BTreeMap<String, usize>), TestCaseError> {
    let mut stand = Stand::new(&scenario.schema(), &scenario.settings());
    let (mut truth, mut shown) = (Vec::new(), BTreeMap::new());
    let mut now = 1_700_000_000_000;
    let fail = |what: String| TestCaseError::fail(what);
    let promises = scenario.promises();
    let settle = scenario.batches.len();
    for number in 0..=settle {
        match scenario.batches.get(number) {
            Some((drafts, fault, step)) => {
                now += step;
                let (mut records, from) = (Vec::new(), stand.offered);
                for (offset, draft) in (from..).zip(drafts) {
                    let (payload, person) = scenario.payload(*draft, offset);
                    records.push(payload);
                    truth.push(person);
                }
                stand.offer(&records, Flush::No, now, *fault);
            }
            None => stand.settle(Flush::EndOfStream, now),
        }
        let lines = with_truth(&stand.sink.lines, &truth);
        let batch = stand.sink.committed.0;
        stand.promise.check_batch(&lines, batch).map_err(fail)?;
        for models in &promises {
            let over = distribution(&mut stand, &models.attribute);
            let cells = models.check_batch(&lines, batch, &over).map_err(fail)?;
            *shown.entry(models.attribute.clone()).or_default() += if number < settle { cells } else { 0 };
        }
        stand.check_conservation().map_err(fail)?;
        let generalized = lines.iter().find(|l| l.text.contains("\"mild\"") || l.text.contains("\"grave\""));
        prop_assert!(generalized.is_none(), "a protected value leaves exactly or not at all: {:?}", generalized);
    }
    let lines = with_truth(&stand.sink.lines, &truth);
    stand.promise.check_all(&lines).map_err(fail)?;
    check_once(&lines).map_err(fail)?;
    Ok((stand, shown))
}

fn cases() -> u32 {
    if std::env::var_os("THRONG_LONG").is_some() { 10_000 } else { 300 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 1000, ..ProptestConfig::default() })]
    #[test]
    fn random_streams_satisfy_models_at_every_commit(scenario in scenario()) {
        run(&scenario)?;
    }
}

/// Every model shows and withholds values. Each gets as many scenarios as it needs.
#[test]
fn random_streams_show_and_withhold_values() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut shown, mut withheld) = ([0usize; 7], 0);
    for round in 0..700 {
        let mut scenario = scenario().new_tree(&mut runner).expect("a tree").current();
        let fewest = (0u8..7).min_by_key(|number| shown[usize::from(*number)]).expect("seven");
        if round >= 70 && shown[usize::from(fewest)] > 30 {
            break;
        }
        let number = if round < 70 { (round % 7) as u8 } else { fewest };
        scenario.illness = vec![number];
        let (stand, cells) = run(&scenario).expect("the models");
        shown[usize::from(number)] += cells["illness"];
        withheld += stand.telemetry.status().last.map_or(0, |last| last.withheld_cells);
    }
    println!("cells shown by model {shown:?}, withheld in the last batches {withheld}");
    assert!(shown.iter().all(|shown| *shown > 30) && withheld > 100, "{shown:?}, {withheld}");
}

const NOW: i64 = 1_700_000_000_000;

fn thirty(number: usize) -> Vec<Option<Vec<u8>>> {
    let one = |i: usize| {
        let (person, age) = ((number * 7 + i * 3) % 97, 30 + (i * 5 + number) % 12);
        let city = ["Zug", "Bern", "Paris", "Lyon"][(i + number) % 4];
        let illness = ["flu", "cold", "hiv", "ebola"][(i * i + number + i / 7) % 4];
        support::stand::record(format!(r#"{{"person":"p{person}","age":{age},"city":"{city}","illness":"{illness}"}}"#))
    };
    (0..30).map(one).collect()
}

const ENTROPY: &str =
    "[[privacy.model]]\nkind = \"l_diversity\"\ndiversity = \"entropy\"\nattribute = \"illness\"\nl = 1.9\n";
const DISTINCT: &str = "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\n";
const CLOSE: &str =
    "[[privacy.model]]\nkind = \"t_closeness\"\nattribute = \"illness\"\nt = 0.4\n[plan]\ninterval = \"5s\"\n";

#[test]
fn restarts_do_not_change_released_lines() {
    for model in [ENTROPY, DISTINCT, CLOSE] {
        let leave = |fault: fn(usize) -> Fault| {
            let schema = format!("name = \"restarts\"\n{PERSON}{QUASI}{ILLNESS}");
            let mut stand = Stand::new(&schema, &format!("[privacy]\nk = 3\n[batch]\nmax_records = 30\n{model}"));
            for number in 0..40 {
                let now = NOW + 700 * i64::try_from(number).expect("small");
                stand.offer(&thirty(number), Flush::No, now, fault(number));
            }
            stand.sink.lines.iter().map(|l| (l.batch, l.text.clone())).collect::<Vec<_>>()
        };
        let undisturbed = leave(|_| Fault::Nothing);
        let shown = undisturbed.iter().filter(|(_, text)| !text.contains("\"illness\":\"*\"")).count();
        assert!(shown > 100, "{shown} of {} lines show something", undisturbed.len());
        assert_eq!(leave(|number| if number % 3 == 0 { Fault::Restart } else { Fault::Nothing }), undisturbed);
        assert_eq!(leave(|number| if number % 2 == 0 { Fault::LeaveAndDie } else { Fault::AbortAndDie }), undisturbed);
    }
}
