//! The parts of a release, verified one after the other, and written once all of them are.

use super::data::Data;
use super::lines::Lines;
use super::parts::{Part, Parts, Seen};
use crate::anonymity::privacy::Model;
use crate::config::Config;
use crate::dataset::claims;
use crate::dataset::error::AnonymizeError;
use crate::dataset::step::Step;
use crate::dataset::write::{columns, group_terms, names, proposal};
use crate::io::file::Replacement;
use crate::records::codebook::{CellId, Code, SUPPRESSED};
use crate::release::given::Given;
use crate::release::models::{SensitiveTerms, verify_models};
use crate::release::parts::Parts as Verification;
use crate::release::verified::Risk;
use std::collections::BTreeMap;

/// What is to leave.
pub struct Leaving<'a> {
    pub config: &'a Config,
    pub data: &'a Data,
    pub policy: &'a [u8],
    pub models: &'a [Model],
    pub parts: Parts,
}

/// Verifies the parts, and writes their lines to `place` once all have been. Gives their risk.
pub fn release(
    place: Replacement,
    leaving: &Leaving<'_>,
    seen: Seen,
    step: &dyn Fn(Step),
) -> Result<Risk, AnonymizeError> {
    let Leaving { config, data, models, parts, .. } = leaving;
    let (input, k) = (&data.input, config.privacy.crowd());
    let terms = group_terms(config, input);
    let claims = claims::of_counts(input, &input.leaving, models, &|position| leaving.counts(position));
    let mut verification = Verification::new(data.codes.rows, seen.told, terms, &input.books, k)?;
    let mut lines = Lines::new(&data.codes.directory)?;
    let of = parts.len() as u64;
    for part in 0..parts.len() {
        step(Step::Verifying { part: part as u64, of });
        leaving.verify(parts.read(part)?, &mut verification, &claims, &mut lines)?;
    }
    // From here on, and not before, anything may leave.
    let whole = verification.whole()?;
    let (names, count) = (names(input), lines.count);
    let (mut done, mut told) = (0, 0);
    place.fill(&columns(&names), |write| {
        lines.each(&whole, data.room.left() / 2, |line, times| {
            (0..times).try_for_each(|_| write(line))?;
            done += u64::from(times);
            if done - told >= 1 << 16 {
                told = done;
                step(Step::Writing { lines: done, of: count });
            }
            Ok(())
        })
    })?;
    Ok(whole.risk())
}

impl Leaving<'_> {
    /// Records to be released by each code of a sensitive attribute that occurs.
    fn counts(&self, position: usize) -> BTreeMap<Code, u64> {
        let values = &self.data.sensitive[position];
        values.codes.iter().copied().zip(values.counts.iter().copied()).collect()
    }

    /// Makes a part into lines, verifies them, and hands them on.
    fn verify(
        &self,
        part: Part,
        verification: &mut Verification<'_>,
        claims: &[SensitiveTerms],
        lines: &mut Lines,
    ) -> Result<(), AnonymizeError> {
        let input = &self.data.input;
        let rows: Vec<usize> = (0..part.numbers.len()).collect();
        let cells: Vec<Vec<CellId>> =
            input.leaving.iter().zip(&part.codes).map(|(&a, codes)| self.cells(a, codes, &part.masks)).collect();
        let layout = verification.terms().layout.clone();
        let proposed = proposal(&input.books, &input.leaving, &rows, &cells, &layout);
        drop((rows, cells));
        let mut own: Vec<Vec<Code>> = vec![Vec::new(); input.schema.attributes.len()];
        for (&attribute, codes) in input.leaving.iter().zip(part.codes) {
            own[attribute] = codes;
        }
        let given = Given { subjects: &part.digests, columns: &own, waiting: 0, sequence: 0, age_ms: 0 };
        let verified = verification.part(proposed, &given, &part.numbers)?;
        verify_models(&verified, 0, &layout, &verification.terms().quasi, claims)?;
        lines.take(&verified)
    }

    /// The cells of an attribute: on the level of the policy, or hidden where a record hides it.
    fn cells(&self, attribute: usize, codes: &[Code], masks: &[u32]) -> Vec<CellId> {
        let (input, book) = (&self.data.input, &self.data.input.books[attribute]);
        if let Some(at) = input.quasi.iter().position(|&a| a == attribute) {
            let level = usize::from(self.policy[at]);
            return codes.iter().map(|&code| book.cell(code, level)).collect();
        }
        let Some(at) = input.sensitive.iter().position(|&a| a == attribute) else {
            return codes.iter().map(|&code| book.cell(code, 0)).collect();
        };
        let hides = |mask: u32| mask >> at & 1 == 1;
        let cell = |(&code, &mask): (&Code, &u32)| if hides(mask) { SUPPRESSED } else { book.cell(code, 0) };
        codes.iter().zip(masks).map(cell).collect()
    }
}
