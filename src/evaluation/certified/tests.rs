//! Chains that no run makes.

use super::*;
use crate::certificates::envelope::sign;
use crate::certificates::head::Head;
use crate::certificates::key::SigningKey;
use crate::certificates::output::Framing;
use crate::certificates::statement::*;

const INSTANCE: &str = "4f1c2d3e-0000-4000-8000-000000000001";

fn key() -> SigningKey {
    SigningKey::parse("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb".as_bytes()).expect("a key")
}

/// A statement of batch `sequence`, `number` in its chain, behind `before`.
fn statement(number: u64, sequence: u64, before: Option<Head>) -> Statement {
    let sha256 = || Sha256Hex { sha256: "00".repeat(32) };
    Statement {
        kind: STATEMENT.into(),
        subject: vec![Subject { name: "all".into(), digest: sha256() }],
        predicate_type: PREDICATE.into(),
        predicate: Predicate {
            chain: Chain { instance: INSTANCE.into(), number, sequence, previous: before.map(|head| head.hex()) },
            clock_ms: 0,
            program: Program { name: "throng".into(), version: "0".into(), build: "debug".into() },
            policy: sha256(),
            input: vec![Range { topic: None, partition: 0, from: sequence as i64, to: sequence as i64 + 1 }],
            counts: Counts { consumed: 1, released: 1, ..Counts::default() },
            outputs: vec![Output {
                name: "all".into(),
                topic: None,
                lines: 1,
                bytes: 1,
                first_line: None,
                framing: Framing::Newline,
            }],
            crowds: Crowds { asked: 3, asked_in_batch: 3, smallest: 3, smallest_in_batch: 5 },
            risk: Risk { highest: 1.0 / 3.0, lines_below_k: 0 },
            verification: Verification { result: PASSED.into(), lines: 1 },
            untruthful: None,
        },
    }
}

/// The lines of statements, each changed by `how` and linked to the one before it.
fn lines(steps: &[(u64, u64, bool)], how: impl Fn(usize, &mut Statement)) -> Vec<Vec<u8>> {
    let mut before = None;
    let step = |(at, (number, sequence, linked)): (usize, &(u64, u64, bool))| {
        let mut statement = statement(*number, *sequence, before.filter(|_| *linked));
        how(at, &mut statement);
        let signed = sign(&statement, &key());
        before = Some(Head { number: *number, sequence: *sequence, digest: signed.digest });
        signed.line
    };
    steps.iter().enumerate().map(step).collect()
}

fn checked(lines: Vec<Vec<u8>>, trust: &Trust<'_>) -> Certificates {
    check(lines.into_iter().map(|line| Ok(Some(line))), trust, None).expect("no file is read")
}

fn promises(steps: &[(u64, u64, bool)]) -> Vec<&'static str> {
    let found = checked(lines(steps, |_, _| {}), &Trust::default());
    found.broken.iter().map(|broken| broken.promise).collect()
}

#[test]
fn a_chain_may_leave_batches_out_and_say_so_and_may_begin_anew_where_it_leaves_none() {
    assert!(promises(&[(1, 1, false), (2, 2, true), (3, 3, true)]).is_empty());
    let found = checked(lines(&[(1, 1, false), (2, 5, true)], |_, _| {}), &Trust::default());
    assert!(found.kept && found.chains[0].batches_without == 3, "{found:?}");
    let found = checked(lines(&[(1, 1, false), (1, 2, false)], |_, _| {}), &Trust::default());
    assert!(found.kept && found.chains.len() == 2 && found.chains[1].anew, "{found:?}");
    assert_eq!(promises(&[(1, 1, false), (1, 5, false)]), ["a chain that is started anew leaves out no batch"]);
    assert_eq!(promises(&[(1, 4, false), (2, 3, true)])[0], "batches stand in their order, each once");
    assert_eq!(promises(&[(2, 2, false)]), ["a chain is there from its first certificate on"]);
}

#[test]
fn heads_and_crowds_are_held_against_what_is_asked() {
    let steps = [(1, 1, false), (2, 2, true)];
    let good = lines(&steps, |_, _| {});
    let head = checked(good.clone(), &Trust::default()).chains[0].head.clone();
    let of = |head: &str| Trust { head: Head::parse(head), ..Trust::default() };
    assert!(checked(good.clone(), &of(&head)).kept);
    assert!(!checked(good[..1].to_vec(), &of(&head)).kept, "the end was cut off");
    let small = lines(&steps, |at, statement| statement.predicate.crowds.smallest_in_batch -= 3 * at as u64);
    let found = checked(small, &Trust::default());
    assert_eq!((found.broken[0].batch, found.broken[0].found, found.broken[0].asked), (Some(2), Some(2), Some(3)));
    let lost = lines(&steps, |at, statement| statement.predicate.counts.consumed += at as u64);
    assert_eq!(
        checked(lost, &Trust::default()).broken[0].promise,
        "records are conserved: what came has gone or is held"
    );
}

/// Numbers that are beyond any release, and identities that are none, are findings and no panic.
#[test]
fn absurd_numbers_and_names_are_findings() {
    let found = checked(
        lines(&[(1, 1, false), (2, 2, true)], |at, statement| {
            statement.predicate.counts.held = u64::MAX;
            statement.predicate.counts.consumed = u64::MAX;
            statement.predicate.outputs[0].lines = u64::MAX;
            statement.predicate.outputs[0].first_line = Some(u64::MAX);
            statement.predicate.input[0].from = if at == 0 { i64::MAX } else { i64::MIN };
        }),
        &Trust::default(),
    );
    assert!(!found.kept);
    let numbers = lines(&[(u64::MAX, u64::MAX, false), (1, u64::MAX, true), (u64::MAX, 1, true)], |_, _| {});
    assert!(!checked(numbers, &Trust::default()).kept);
    for name in ["", "\u{1b}[31m", "../../etc", &"a".repeat(37)] {
        let found = checked(
            lines(&[(1, 1, false)], |_, statement| statement.predicate.chain.instance = name.to_owned()),
            &Trust::default(),
        );
        assert_eq!((found.broken[0].promise, found.chains.len()), ("a payload is the statement of a certificate", 0));
    }
    let long = CertificateLines::new(std::io::Cursor::new(vec![b'x'; 3 << 20]), "long".into());
    let found = check(long, &Trust::default(), None).expect("it is read");
    assert_eq!(
        found.broken_in_all, 2,
        "a line that is too long ends the reading, and there is no certificate: {found:?}"
    );
}
