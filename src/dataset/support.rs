//! How many people have each sensitive value, up to k and no further.

/// People by sensitive attribute and value.
///
/// Memory: 4 bytes for each of at most k people a value.
#[derive(Debug)]
pub struct Support<P = u32> {
    k: usize,
    people: Vec<Vec<Vec<P>>>,
    /// By attribute and value: whether any record has it.
    met: Vec<Vec<bool>>,
}

impl<P: Copy + PartialEq> Support<P> {
    /// For attributes of so many `values`.
    pub fn new(k: usize, values: impl Iterator<Item = usize>) -> Self {
        let people: Vec<Vec<Vec<P>>> = values.map(|values| vec![Vec::new(); values]).collect();
        let met = people.iter().map(|values| vec![false; values.len()]).collect();
        Self { k, people, met }
    }

    /// One of `person`'s records has the value.
    pub fn note(&mut self, attribute: usize, value: u32, person: P) {
        self.meet(attribute, value);
        let known = &mut self.people[attribute][value as usize];
        if known.len() < self.k && !known.contains(&person) {
            known.push(person);
        }
    }

    /// A record of nobody has the value.
    pub fn meet(&mut self, attribute: usize, value: u32) {
        self.met[attribute][value as usize] = true;
    }

    /// Whether any record has the value.
    pub fn is_met(&self, attribute: usize, value: usize) -> bool {
        self.met[attribute][value]
    }

    /// Whether there was any record.
    pub fn any(&self) -> bool {
        self.met.iter().flatten().any(|met| *met)
    }

    /// The people of each value, k of them at the most.
    pub fn people(&self, attribute: usize) -> &[Vec<P>] {
        &self.people[attribute]
    }

    /// By attribute and value: whether fewer than k people have it.
    pub fn rare(&self) -> Vec<Vec<bool>> {
        let of = |values: &Vec<Vec<P>>| values.iter().map(|people| people.len() < self.k).collect();
        self.people.iter().map(of).collect()
    }
}

impl Support<u32> {
    /// As [`note`](Self::note), but of nobody.
    pub fn add(&mut self, attribute: usize, value: u32, person: u32) {
        if person != crate::anonymity::lattice::table::NOBODY {
            self.note(attribute, value, person);
        }
    }
}
