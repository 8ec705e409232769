//! Random tampering with proposals: each proposal that the slow recount rejects is refused.

use super::*;

#[derive(Clone, Debug)]
enum Tampering {
    Drop(usize, usize),
    Move(usize, usize, usize),
    Swap(usize, usize),
    Merge(usize, usize),
    Retext(usize, usize),
    Exchange(usize, usize, usize),
}

fn tamperings() -> impl Strategy<Value = Vec<(bool, Tampering)>> {
    let n = || 0usize..12;
    let one = prop_oneof![
        (n(), n()).prop_map(|(a, b)| Tampering::Drop(a, b)),
        (n(), n(), n()).prop_map(|(a, b, c)| Tampering::Move(a, b, c)),
        (n(), n()).prop_map(|(a, b)| Tampering::Swap(a, b)),
        (n(), n()).prop_map(|(a, b)| Tampering::Merge(a, b)),
        (n(), n()).prop_map(|(a, b)| Tampering::Retext(a, b)),
        (n(), n(), n()).prop_map(|(a, b, c)| Tampering::Exchange(a, b, c)),
    ];
    prop::collection::vec((any::<bool>(), one), 0..4)
}

fn tamper(runs: &mut Vec<(Vec<u8>, Vec<u32>)>, how: &Tampering) {
    let count = runs.len();
    if count == 0 {
        return;
    }
    match *how {
        Tampering::Drop(run, row) => {
            let rows = &mut runs[run % count].1;
            if !rows.is_empty() {
                rows.remove(row % rows.len());
            }
        }
        Tampering::Move(from, to, row) => {
            let rows = &mut runs[from % count].1;
            if !rows.is_empty() {
                let row = rows.remove(row % rows.len());
                runs[to % count].1.push(row);
            }
        }
        Tampering::Swap(a, b) => runs.swap(a % count, b % count),
        Tampering::Merge(a, b) => {
            let (a, b) = (a % count, b % count);
            if a != b {
                let rows = runs[b].1.clone();
                runs[a].1.extend(rows);
                runs.remove(b);
            }
        }
        // Replaces one cell of a run by the cell of another run.
        Tampering::Retext(a, b) => {
            let (a, b) = (a % count, b % count);
            let cells = |text: &[u8]| -> Vec<String> {
                let mut cells = Vec::new();
                let text = String::from_utf8_lossy(text).into_owned();
                let names: Vec<&str> = if text.contains("age") { vec!["age", "city"] } else { vec!["mood", "illness"] };
                LineFormat::Json.layout(&names).read(text.as_bytes(), &mut cells).expect("a line");
                cells
            };
            let (first, second) = (cells(&runs[a].0), cells(&runs[b].0));
            let names = if runs[a].0.windows(3).any(|w| w == b"age") { ["age", "city"] } else { ["mood", "illness"] };
            let mut text = Vec::new();
            LineFormat::Json.layout(&names).write(&[first[0].as_str(), second[1].as_str()], &mut text);
            runs[a].0 = text;
            runs.sort();
        }
        Tampering::Exchange(a, b, row) => {
            let (a, b) = (a % count, b % count);
            if a != b && !runs[a].1.is_empty() && !runs[b].1.is_empty() {
                let (i, j) = (row % runs[a].1.len(), row % runs[b].1.len());
                let (x, y) = (runs[a].1[i], runs[b].1[j]);
                runs[a].1[i] = y;
                runs[b].1[j] = x;
            }
        }
    }
}

fn records() -> impl Strategy<Value = Vec<(u8, u8, u8, u8, u8)>> {
    prop::collection::vec((0u8..8, 30u8..33, 0u8..2, 0u8..3, 0u8..3), 6..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn tampered_proposal_that_violates_invariant_is_refused(records in records(), tamperings in tamperings()) {
        let bench = Bench::new(&records);
        prop_assert_eq!(bench.violation(bench.proposed.clone()), None, "the treatment is right");
        prop_assert_eq!(bench.recount(&bench.proposed), Ok(()));
        let mut parts: Vec<_> = bench.proposed.iter().map(taken_apart).collect();
        for (second, how) in &tamperings {
            tamper(&mut parts[usize::from(*second)], how);
        }
        let proposed: Vec<_> = parts.iter().map(|runs| put_together(runs)).collect();
        let truth = bench.recount(&proposed);
        if let (Err(broken), Ok(_)) = (&truth, bench.verify(proposed)) {
            return Err(TestCaseError::fail(format!("verification let pass: {broken}")));
        }
    }
}

fn claims() -> impl Strategy<Value = (ModelClaim, usize, Question)> {
    let close = |t, ground, told| (ModelClaim::Closeness { t, ground }, 0, Question::Closeness { t, ground: told });
    prop_oneof![
        (2usize..4).prop_map(|l| (ModelClaim::Distinct { l }, l, Question::Distinct(l))),
        Just((ModelClaim::Entropy { l: 1.9 }, 2, Question::Entropy(1.9))),
        Just((ModelClaim::Recursive { c: 1.5, l: 2 }, 2, Question::Recursive { c: 1.5, l: 2 })),
        Just(close(0.4, Distance::Equal, Ground::Equal)),
        Just(close(0.3, Distance::Ordered, Ground::Ordered)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    /// A proposal that satisfies R(k) passes exactly if the recount finds that every model holds.
    #[test]
    fn tampered_proposal_that_violates_model_is_refused((claim, representatives, asked) in claims(), records in records(), tamperings in tamperings()) {
        let mut bench = Bench::new(&records);
        let mut parts: Vec<_> = bench.proposed.iter().map(taken_apart).collect();
        for (second, how) in &tamperings {
            tamper(&mut parts[usize::from(*second)], how);
        }
        let proposed: Vec<_> = parts.iter().map(|runs| put_together(runs)).collect();
        let passes = bench.verify(proposed.clone()).is_ok();
        bench.protect(vec![claim], representatives);
        let models = Models {
            group: 1,
            quasi: vec!["mood".to_owned()],
            attribute: "illness".to_owned(),
            asked: vec![asked],
        };
        // The bench numbers the illnesses in their order of occurrence.
        let met = |text: &&str| bench.books[ILL].coverage_of(text).is_some();
        let (known, rest): (Vec<&str>, Vec<&str>) = KNOWN.into_iter().partition(|text| met(text));
        let over: Distribution = known.into_iter().chain(rest).map(|text| (Some(text.to_owned()), 1)).collect();
        let truth = bench.lines(&proposed).and_then(|lines| models.check_batch(&lines, 1, &over));
        match (passes, bench.verify(proposed)) {
            (true, Ok(_)) => prop_assert!(truth.is_ok(), "verification let pass: {truth:?}"),
            (true, Err(refusal)) => {
                prop_assert_eq!(refusal.violation, Violation::Model);
                prop_assert!(truth.is_err(), "refused for nothing");
            }
            (false, outcome) => prop_assert!(outcome.is_err(), "a model makes nothing right"),
        }
    }
}

#[test]
fn random_tampering_is_both_accepted_and_refused() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut passed, mut refused) = (0, 0);
    for _ in 0..500 {
        let (records, tamperings) = (records(), tamperings()).new_tree(&mut runner).expect("a tree").current();
        let bench = Bench::new(&records);
        let mut parts: Vec<_> = bench.proposed.iter().map(taken_apart).collect();
        for (second, how) in &tamperings {
            tamper(&mut parts[usize::from(*second)], how);
        }
        let proposed: Vec<_> = parts.iter().map(|runs| put_together(runs)).collect();
        match bench.verify(proposed) {
            Ok(_) => passed += 1,
            Err(_) => refused += 1,
        }
    }
    println!("{refused} of 500 tampered proposals refused");
    assert!(passed > 100 && refused > 100, "{passed} passed, {refused} refused");
}
