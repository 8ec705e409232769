//! Counts subjects per sensitive value, up to k.

/// Subjects per sensitive value; memory for at most k identifiers each.
#[derive(Debug)]
pub struct SensitiveSupport<P> {
    k: usize,
    /// Subjects, and true if any record has the value.
    values: Vec<Vec<(Vec<P>, bool)>>,
}

impl<P: Copy + PartialEq> SensitiveSupport<P> {
    /// Creates counters; `values` yields the values per attribute.
    pub fn new(k: usize, values: impl Iterator<Item = usize>) -> Self {
        Self { k, values: values.map(|values| (0..values).map(|_| (Vec::new(), false)).collect()).collect() }
    }

    /// Counts a record of `person`, if it has a subject.
    pub fn count_record(&mut self, attribute: usize, value: u32, person: Option<P>) {
        let (people, is_met) = &mut self.values[attribute][value as usize];
        *is_met = true;
        people.extend(person.filter(|person| people.len() < self.k && !people.contains(person)));
    }

    /// Returns at most k subjects per value, and true if any record has it.
    pub fn value_subjects(&self, attribute: usize) -> &[(Vec<P>, bool)] {
        &self.values[attribute]
    }

    /// Returns true if any record was counted.
    pub fn has_any_record(&self) -> bool {
        self.values.iter().flatten().any(|(_, is_met)| *is_met)
    }

    /// Returns true per value of fewer than k subjects.
    pub fn rare_flags(&self) -> Vec<Vec<bool>> {
        let of = |values: &Vec<(Vec<P>, bool)>| values.iter().map(|(people, _)| people.len() < self.k).collect();
        self.values.iter().map(of).collect()
    }
}
