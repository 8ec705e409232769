//! Verification of strict recoding, from the encoded bytes and the rows' own codes (docs/methods.md §12.3).
//!
//! Claim. If [`judge`] returns `Ok`, then every class of quasi cells that leaves has at least k distinct subjects over lines
//! of this batch and witnesses of fresh earlier releases, each of a raw tuple that no observer of ladder and ledger strikes
//! out. Struck out is a raw tuple that would have left finer under the plan in force: its class at a node of the ladder before
//! that of its line leaves in this batch, or is *open*, that is, witnesses whose tuples are not struck out there have k − 1
//! subjects. Where the batch alone must have the crowd nothing released before completes a class, and none is open.
//!
//! It finds the node of a line by itself: the first at which the row's own cells are those printed; a line that is at no node of
//! its row refuses the batch. A class leaves at a node where that is the node of all of its lines. Written apart from the treatment, which follows tuples from node to node (`treatment/exclusion.rs`):
//! here classes are judged one after another, each once, on a stack of their own.

use super::given::{Basis, Given, NarrowingTerms};
use super::listed::ListedTerms;
use crate::ledger::at::WitnessesAt;
use crate::ledger::witnesses::Witness;
use crate::records::codebook::{Code, Codebook, SUPPRESSED};
use crate::records::digest::BuildClassKeyHash;
use crate::records::subject::NO_SUBJECT;
use hashbrown::HashMap;

/// A class has fewer than k subjects that cannot be struck out, or what is needed to know is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Narrowed;

/// Judges the classes of one group. `printed` are the class of every line and its row; `base` names the group's classes.
pub(super) fn judge(
    terms: &NarrowingTerms,
    base: u128,
    listed: &[ListedTerms],
    mut printed: Vec<(u128, u32)>,
    basis: Basis<'_>,
) -> Result<(), Narrowed> {
    let Basis { given, books, ledger, needs, .. } = basis;
    let past = needs.batch_crowd < needs.k;
    let witnessed = if past { Some(ledger.witnesses().ok_or(Narrowed)?) } else { None };
    printed.sort_unstable();
    let suppressed = terms.attributes.iter().fold(base, |key, &a| key.wrapping_add(books[a].digest(SUPPRESSED)));
    let mut observer = Observer {
        terms,
        base,
        suppressed,
        listed,
        books,
        leaving: HashMap::default(),
        witnessed,
        k: needs.k,
        open: HashMap::default(),
        walks: HashMap::new(),
    };
    let mut codes = Vec::with_capacity(terms.attributes.len());
    for &(class, row) in &printed {
        codes_of(terms, given, row, &mut codes)?;
        let node = observer.node_of(class, &codes).ok_or(Narrowed)?;
        let common = observer.leaving.entry(class).or_insert(Some(node));
        *common = common.filter(|common| *common == node);
    }
    for lines in printed.chunk_by(|a, b| a.0 == b.0) {
        let class = lines[0].0;
        let (mut crowd, mut node) = (Vec::with_capacity(needs.k), None);
        for &(_, row) in lines {
            if crowd.len() >= needs.k {
                break;
            }
            let subject = *given.subjects.get(row as usize).ok_or(Narrowed)?;
            if subject == NO_SUBJECT || crowd.contains(&subject) {
                continue;
            }
            codes_of(terms, given, row, &mut codes)?;
            let Some(at) = observer.node_of(class, &codes) else { continue };
            node = Some(at);
            if !observer.strikes(&codes, at) {
                crowd.push(subject);
            }
        }
        if let (Some(witnessed), Some(node)) = (witnessed, node) {
            for witness in witnessed.of_class(class) {
                if crowd.len() >= needs.k {
                    break;
                }
                if witness.subject != NO_SUBJECT
                    && !crowd.contains(&witness.subject)
                    && witnessed.is_fresh(witness)
                    && !observer.strikes_witness(witness.raw, node)
                {
                    crowd.push(witness.subject);
                }
            }
        }
        if crowd.len() < needs.k {
            return Err(Narrowed);
        }
    }
    Ok(())
}

/// Writes a row's own codes of the quasi attributes to `codes`.
fn codes_of(terms: &NarrowingTerms, given: &Given<'_>, row: u32, codes: &mut Vec<Code>) -> Result<(), Narrowed> {
    codes.clear();
    for &attribute in &terms.attributes {
        codes.push(*given.columns.get(attribute).and_then(|column| column.get(row as usize)).ok_or(Narrowed)?);
    }
    Ok(())
}

/// What somebody can strike out who knows the ladder, what this batch prints and every earlier record raw.
struct Observer<'a> {
    terms: &'a NarrowingTerms,
    base: u128,
    /// Key of the tuple that says nothing; it is no class.
    suppressed: u128,
    listed: &'a [ListedTerms],
    books: &'a [Codebook],
    /// Classes that leave in this batch, each with the first node at which all of its lines are in it. None where they are not at
    /// one and the same: a raw value can be spelled as a label of others, and then nobody can tell at which node it left.
    leaving: HashMap<u128, Option<usize>, BuildClassKeyHash>,
    /// Earlier releases, where they can complete a class.
    witnessed: Option<WitnessesAt<'a>>,
    k: usize,
    open: HashMap<u128, bool, BuildClassKeyHash>,
    /// By raw tuple of a witness: the node up to which it has been followed, and whether it was struck out there.
    walks: HashMap<u32, (usize, bool)>,
}

/// A class whose openness is being found out.
struct Question<'a> {
    class: u128,
    node: usize,
    witnesses: &'a [Witness],
    /// The witness that is looked at.
    at: usize,
    subjects: Vec<u64>,
}

/// How a raw tuple fares before a node.
enum Fate {
    Struck,
    Stays,
    /// It hangs on whether this class, at this node, is open.
    Asks(u128, usize),
}

impl<'a> Observer<'a> {
    fn key(&self, codes: &[Code], node: usize) -> u128 {
        let cells = self.terms.attributes.iter().zip(codes).zip(&self.terms.nodes[node]);
        cells.fold(self.base, |key, ((&a, &code), &level)| {
            key.wrapping_add(self.books[a].digests(usize::from(level))[code as usize])
        })
    }

    /// The first node at which a raw tuple is in `class`.
    fn node_of(&self, class: u128, codes: &[Code]) -> Option<usize> {
        (0..self.terms.nodes.len()).find(|&node| self.key(codes, node) == class)
    }

    /// Whether a raw tuple of this batch would have left before `node`.
    fn strikes(&mut self, codes: &[Code], node: usize) -> bool {
        let mut from = 0;
        loop {
            match self.fate(codes, &mut from, node) {
                Fate::Struck => return true,
                Fate::Stays => return false,
                Fate::Asks(class, at) => self.find_out(class, at),
            }
        }
    }

    /// As [`strikes`](Self::strikes), of the raw tuple of a witness.
    fn strikes_witness(&mut self, raw: u32, node: usize) -> bool {
        loop {
            match self.fate_of_witness(raw, node) {
                Fate::Struck => return true,
                Fate::Stays => return false,
                Fate::Asks(class, at) => self.find_out(class, at),
            }
        }
    }

    fn fate(&self, codes: &[Code], from: &mut usize, until: usize) -> Fate {
        while *from < until {
            let class = self.key(codes, *from);
            if self.leaving.get(&class) == Some(&Some(*from)) {
                return Fate::Struck;
            }
            let few = |witnessed: WitnessesAt<'_>| witnessed.of_class(class).len() + 1 < self.k;
            if self.witnessed.is_none_or(few) || class == self.suppressed {
                *from += 1;
                continue;
            }
            match self.open.get(&class) {
                Some(true) if self.is_listed(codes, *from) => return Fate::Struck,
                Some(_) => *from += 1,
                None => return Fate::Asks(class, *from),
            }
        }
        Fate::Stays
    }

    fn fate_of_witness(&mut self, raw: u32, until: usize) -> Fate {
        let Some(witnessed) = self.witnessed else { return Fate::Stays };
        let (mut from, struck) = self.walks.get(&raw).copied().unwrap_or_default();
        if struck && from < until {
            return Fate::Struck;
        }
        let fate = self.fate(witnessed.raw_tuple(raw), &mut from, until);
        self.walks.insert(raw, (from, matches!(fate, Fate::Struck)));
        fate
    }

    /// Whether every list has the people that the class of a raw tuple at a node needs: one that is refused takes nobody.
    fn is_listed(&self, codes: &[Code], node: usize) -> bool {
        let text = |attribute: usize| {
            let at = self.terms.attributes.iter().position(|a| *a == attribute)?;
            let book = &self.books[attribute];
            Some(book.text(book.cell(codes[at], usize::from(self.terms.nodes[node][at]))))
        };
        self.listed.iter().all(|listed| listed.has_enough_at(&text))
    }

    /// Finds out whether `class` is open at `node`, and every class on which that hangs. Each of those is at an earlier
    /// node, so it ends.
    fn find_out(&mut self, class: u128, node: usize) {
        let Some(witnessed) = self.witnessed else { return };
        let ask = |class: u128, node: usize| Question {
            class,
            node,
            witnesses: witnessed.of_class(class),
            at: 0,
            subjects: Vec::new(),
        };
        let mut stack: Vec<Question<'a>> = vec![ask(class, node)];
        while let Some(question) = stack.last_mut() {
            let enough = question.subjects.len() + 1 >= self.k;
            let Some(witness) = question.witnesses.get(question.at).filter(|_| !enough) else {
                self.open.insert(question.class, enough);
                stack.pop();
                continue;
            };
            if question.subjects.contains(&witness.subject) || !witnessed.is_fresh(witness) {
                question.at += 1;
                continue;
            }
            match self.fate_of_witness(witness.raw, question.node) {
                Fate::Struck => question.at += 1,
                Fate::Stays => {
                    question.subjects.push(witness.subject);
                    question.at += 1;
                }
                Fate::Asks(class, node) => stack.push(ask(class, node)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
