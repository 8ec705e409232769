//! placeholder until the guard room is merged
pub struct Fragments;
impl Fragments {
    pub fn new(_: usize) -> Self { Self }
    pub fn add(&mut self, _: &[Option<u128>], _: &[u32]) {}
}
pub fn forced_pair(_: &[Fragments], _: &[u64], _: usize) -> bool { false }
