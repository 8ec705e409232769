//! Signatures, links, and what a certificate says of itself.

use super::finding::{ChainFound, Found};
use crate::certificates::envelope::{BadEnvelope, Read};
use crate::certificates::head::Head;
use crate::certificates::key::PublicKey;
use crate::certificates::statement::{Chain, Output, PASSED, Predicate, Statement, Subject};
use std::collections::BTreeMap;

/// What an auditor relies on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trust<'a> {
    /// Whose signatures count; without any, signatures are not checked.
    pub keys: &'a [PublicKey],
    /// Digest of the policy that the batches are promised under; none where nobody says.
    pub policy: Option<&'a str>,
    /// SHA-256 of the statement in which a chain is known to end.
    pub head: Option<[u8; 32]>,
}

/// What a certificate says of the outputs of its batch.
pub(super) struct Placed {
    /// Its line.
    pub line: u64,
    /// The batch.
    pub batch: u64,
    /// The number of its chain's state.
    pub instance: usize,
    pub subjects: Vec<Subject>,
    pub outputs: Vec<Output>,
}

/// The end of a chain, as far as it has been read.
struct End {
    number: u64,
    sequence: u64,
    digest: String,
    /// Its chain among those that were found.
    chain: usize,
    held: Option<u64>,
    /// By output, the line that the next batch begins with.
    next_lines: Vec<Option<u64>>,
    /// By topic and partition, where the input was consumed to.
    consumed: BTreeMap<(Option<String>, i32), i64>,
}

/// How a certificate stands to the one before it.
#[derive(Clone, Copy)]
enum Step {
    /// It is the first, and says so.
    Begins,
    /// It is the first that is there, and not the first of its chain.
    Late,
    /// It begins a chain behind another of its state; batches are left out between them where it `skips`.
    Anew { skips: bool },
    /// It names the one before it; batches `without` a certificate lie between them, as both have signed.
    Follows { without: u64 },
    /// It comes again, or too late.
    Repeated,
    /// Some are missing before it.
    Apart,
    /// It has the next number, and names another one before it.
    Unlinked,
    /// It names the one before it, and a batch that is not behind it.
    Backward,
}

impl Step {
    fn of(chain: &Chain, end: Option<&End>) -> Self {
        let begins = chain.number == 1 && chain.previous.is_none();
        let Some(end) = end else { return if begins { Self::Begins } else { Self::Late } };
        if begins && chain.sequence > end.sequence {
            return Self::Anew { skips: chain.sequence - end.sequence > 1 };
        }
        match chain.number.checked_sub(end.number) {
            None | Some(0) => Self::Repeated,
            Some(1) if chain.previous.as_ref() != Some(&end.digest) => Self::Unlinked,
            Some(1) => match chain.sequence.checked_sub(end.sequence) {
                None | Some(0) => Self::Backward,
                Some(ahead) => Self::Follows { without: ahead - 1 },
            },
            Some(_) => Self::Apart,
        }
    }

    /// The promise that it breaks.
    fn broken(self) -> Option<&'static str> {
        match self {
            Self::Begins | Self::Follows { .. } | Self::Anew { skips: false } => None,
            Self::Late => Some("a chain is there from its first certificate on"),
            Self::Anew { skips: true } => Some("a chain that is started anew leaves out no batch"),
            Self::Repeated => Some("certificates stand in their order, each once"),
            Self::Apart => Some("no certificate is missing before this one"),
            Self::Unlinked => Some("a certificate names the one before it"),
            Self::Backward => Some("batches stand in their order, each once"),
        }
    }
}

/// The chains of some certificates, as they are read.
pub(super) struct Chains<'a> {
    trust: &'a Trust<'a>,
    found: Found,
    placed: Vec<Placed>,
    /// By instance, numbered by first sight.
    ends: BTreeMap<String, (usize, End)>,
}

/// Whether a text is spelled like the identity of a state: others are nothing to print.
fn is_instance(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

impl<'a> Chains<'a> {
    pub fn new(trust: &'a Trust<'a>) -> Self {
        Self { trust, found: Found::default(), placed: Vec::new(), ends: BTreeMap::new() }
    }

    /// Takes the next line; none is one that is too long.
    pub fn take(&mut self, line: u64, text: Option<&[u8]>) {
        let read = text.ok_or(BadEnvelope::Envelope).and_then(Read::parse);
        let named = |read: &Read| is_instance(&read.statement.predicate.chain.instance);
        let read = read.and_then(|read| if named(&read) { Ok(read) } else { Err(BadEnvelope::Statement) });
        let read = match read {
            Ok(read) => read,
            Err(BadEnvelope::Envelope) => {
                return self.found.note("a line is a signed envelope", Some(line), None);
            }
            Err(BadEnvelope::Statement) => {
                return self.found.note("a payload is the statement of a certificate", Some(line), None);
            }
        };
        let batch = read.statement.predicate.chain.sequence;
        if !self.trust.keys.is_empty() && !read.is_signed_by(self.trust.keys) {
            self.found.note("a certificate is signed by a key that is given", Some(line), Some(batch));
        }
        self.judge(line, &read.statement);
        let instance = self.link(line, &read);
        self.found.certificates += 1;
        self.found.lines = self.found.lines.saturating_add(read.statement.predicate.verification.lines);
        let Statement { subject, predicate, .. } = read.statement;
        self.placed.push(Placed { line, batch, instance, subjects: subject, outputs: predicate.outputs });
    }

    /// What a certificate says, held against itself and the policy.
    fn judge(&mut self, line: u64, statement: &Statement) {
        let Statement { subject, predicate, .. } = statement;
        let Predicate { chain, policy, crowds, risk, verification, outputs, .. } = predicate;
        let (found, at) = (&mut self.found, (line, chain.sequence));
        let mut promise = |kept: bool, promise| {
            if !kept {
                found.note(promise, Some(at.0), Some(at.1));
            }
        };
        promise(verification.result == PASSED && risk.lines_below_k == 0, "a batch has passed verification");
        let same = subject.len() == outputs.len() && subject.iter().zip(outputs).all(|(s, o)| s.name == o.name);
        promise(same, "a certificate names its outputs as its subjects");
        promise(
            self.trust.policy.is_none_or(|known| known == policy.sha256),
            "a batch was made under the policy of this configuration",
        );
        let lines = outputs.iter().try_fold(0_u64, |sum, output| sum.checked_add(output.lines));
        if lines != Some(verification.lines) {
            found.count("lines are those that were verified", at, [lines.unwrap_or(u64::MAX), verification.lines]);
        }
        if verification.lines > 0 && crowds.smallest < crowds.asked {
            found.count("a class has the crowd that is asked for", at, [crowds.smallest, crowds.asked]);
        }
        if verification.lines > 0 && crowds.smallest_in_batch < crowds.asked_in_batch {
            let counts = [crowds.smallest_in_batch, crowds.asked_in_batch];
            found.count("a class has the crowd in its batch that is asked for", at, counts);
        }
    }

    /// Holds a certificate against the one before it, and gives the number of its instance.
    fn link(&mut self, line: u64, read: &Read) -> usize {
        let Predicate { chain, counts, outputs, input, .. } = &read.statement.predicate;
        let next_instance = self.ends.len();
        let known = self.ends.remove(&chain.instance);
        let step = Step::of(chain, known.as_ref().map(|(_, end)| end));
        if let Some(promise) = step.broken() {
            self.found.note(promise, Some(line), Some(chain.sequence));
        }
        if let (Step::Repeated, Some((instance, end))) = (step, known.as_ref()) {
            // What comes next follows the one that was there before.
            self.found.chains[end.chain].certificates += 1;
            let instance = *instance;
            self.ends.extend(known.map(|known| (chain.instance.clone(), known)));
            return instance;
        }
        let at_start = matches!(step, Step::Begins) && chain.sequence == 1;
        let before = known.as_ref().map(|(_, end)| end).filter(|_| matches!(step, Step::Follows { without: 0 }));
        let held = if at_start { Some(0) } else { before.and_then(|end| end.held) };
        self.conserve(line, read, held);
        if let Some(end) = before {
            let firsts = outputs.iter().map(|output| output.first_line);
            let apart = |(first, next): (Option<u64>, &Option<u64>)| first.zip(*next).is_some_and(|(a, b)| a != b);
            if firsts.zip(&end.next_lines).any(apart) {
                self.found.note("a batch begins where the one before it ended", Some(line), Some(chain.sequence));
            }
        }
        let (instance, number, mut consumed) = match known {
            Some((instance, end)) if matches!(step, Step::Anew { .. }) => {
                (instance, self.begin(read, true), end.consumed)
            }
            Some((instance, end)) => (instance, end.chain, end.consumed),
            None => (next_instance, self.begin(read, false), BTreeMap::new()),
        };
        for range in input {
            let to = consumed.entry((range.topic.clone(), range.partition)).or_insert(range.from);
            if range.from < *to {
                self.found.note("input is consumed once", Some(line), Some(chain.sequence));
            }
            *to = range.to.max(*to);
        }
        let of_chain = &mut self.found.chains[number];
        of_chain.certificates += 1;
        of_chain.last_batch = chain.sequence;
        of_chain.head.clone_from(&read.digest);
        if let Step::Follows { without } = step {
            of_chain.batches_without = of_chain.batches_without.saturating_add(without);
        }
        let next_line = |output: &Output| output.first_line.and_then(|first| first.checked_add(output.lines));
        let end = End {
            number: chain.number,
            sequence: chain.sequence,
            digest: read.digest.clone(),
            chain: number,
            held: Some(counts.held),
            next_lines: outputs.iter().map(next_line).collect(),
            consumed,
        };
        self.ends.insert(chain.instance.clone(), (instance, end));
        instance
    }

    /// Records that were `held` before and those that came have gone, or are held now.
    fn conserve(&mut self, line: u64, read: &Read, held: Option<u64>) {
        let Predicate { chain, counts, .. } = &read.statement.predicate;
        let before = held.and_then(|held| held.checked_add(counts.consumed));
        let after = counts.gone().and_then(|gone| gone.checked_add(counts.held));
        if held.is_some() && before != after {
            let promise = "records are conserved: what came has gone or is held";
            self.found.note(promise, Some(line), Some(chain.sequence));
        }
    }

    /// A chain that begins with a certificate.
    fn begin(&mut self, read: &Read, anew: bool) -> usize {
        let chain = &read.statement.predicate.chain;
        self.found.chains.push(ChainFound {
            instance: chain.instance.clone(),
            certificates: 0,
            first_batch: chain.sequence,
            last_batch: chain.sequence,
            head: read.digest.clone(),
            batches_without: 0,
            anew,
        });
        self.found.chains.len() - 1
    }

    /// What all certificates say of outputs, and what was found.
    pub fn end(self) -> (Vec<Placed>, Found) {
        let Self { trust, mut found, placed, .. } = self;
        if found.certificates == 0 {
            found.note("there is a certificate", None, None);
        }
        match trust.head {
            Some(head) if !found.chains.iter().any(|chain| Head::parse(&chain.head) == Some(head)) => {
                found.note("a chain ends where --head says", None, None);
            }
            Some(_) => {}
            None => found
                .not_checked
                .push("the end of the chain: certificates that were cut off behind the last one need --head"),
        }
        if trust.keys.is_empty() {
            found.not_checked.push("signatures: name the key of whoever has signed with --public-key");
        }
        (placed, found)
    }
}
