//! How many people have each sensitive value, up to k and no further.

/// People by sensitive attribute and value.
///
/// Memory: the name of each of at most k people a value.
#[derive(Debug)]
pub struct Support<P> {
    k: usize,
    /// By attribute and value: its people, and whether any record has it.
    values: Vec<Vec<(Vec<P>, bool)>>,
}

impl<P: Copy + PartialEq> Support<P> {
    /// For attributes of so many `values`.
    pub fn new(k: usize, values: impl Iterator<Item = usize>) -> Self {
        Self { k, values: values.map(|values| (0..values).map(|_| (Vec::new(), false)).collect()).collect() }
    }

    /// A record of `person`, or of nobody, has the value.
    pub fn note(&mut self, attribute: usize, value: u32, person: Option<P>) {
        let (people, is_met) = &mut self.values[attribute][value as usize];
        *is_met = true;
        people.extend(person.filter(|person| people.len() < self.k && !people.contains(person)));
    }

    /// By value of an attribute: its people, k of them at the most, and whether any record has it.
    pub fn values(&self, attribute: usize) -> &[(Vec<P>, bool)] {
        &self.values[attribute]
    }

    /// Whether there was any record.
    pub fn any(&self) -> bool {
        self.values.iter().flatten().any(|(_, is_met)| *is_met)
    }

    /// By attribute and value: whether fewer than k people have it.
    pub fn rare(&self) -> Vec<Vec<bool>> {
        let of = |values: &Vec<(Vec<P>, bool)>| values.iter().map(|(people, _)| people.len() < self.k).collect();
        self.values.iter().map(of).collect()
    }
}
