//! MDAV, maximum distance to average vector (Domingo-Ferrer and Mateo-Sanz 2002).

/// Block size; time grows with its square.
const MAX_COMPARED_SUBJECTS: usize = 512;

/// Divides subjects into similar groups of at least `size`; none if too few. Compares only within blocks, so callers
/// sort by similarity.
///
/// # Panics
/// With different numbers of features.
#[must_use]
pub fn group_similar(features: &[&[f32]], size: usize) -> Vec<Vec<usize>> {
    if size == 0 || features.len() < size {
        return Vec::new();
    }
    let blocks = features.len().div_ceil(MAX_COMPARED_SUBJECTS.max(2 * size));
    let blocks = blocks.min(features.len() / size).max(1);
    let mut groups = Vec::new();
    for block in 0..blocks {
        let people: Vec<usize> = (block * features.len() / blocks..(block + 1) * features.len() / blocks).collect();
        group_by_mdav(features, people, size, &mut groups);
    }
    groups
}

/// Groups the subject farthest from the mean with its nearest; the rest is the last group.
fn group_by_mdav(features: &[&[f32]], mut people: Vec<usize>, size: usize, groups: &mut Vec<Vec<usize>>) {
    while people.len() >= 2 * size {
        let center = mean(features, &people);
        let distance = |person: &usize| square_distance(features[*person], &center);
        let farthest = people.iter().copied().max_by(|a, b| distance(a).total_cmp(&distance(b)).then(b.cmp(a)));
        let Some(farthest) = farthest else { return };
        let mut near: Vec<(f64, usize)> =
            people.iter().map(|person| (square_distance(features[*person], features[farthest]), *person)).collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let group: Vec<usize> = near[..size].iter().map(|(_, person)| *person).collect();
        people.retain(|person| !group.contains(person));
        groups.push(group);
    }
    groups.push(people);
}

fn mean(features: &[&[f32]], people: &[usize]) -> Vec<f32> {
    let mut sum = vec![0.0_f64; features[people[0]].len()];
    for person in people {
        for (sum, feature) in sum.iter_mut().zip(features[*person]) {
            *sum += f64::from(*feature);
        }
    }
    sum.into_iter().map(|sum| (sum / people.len() as f64) as f32).collect()
}

fn square_distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "people have the same features");
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn subjects_with_equal_features_share_a_group() {
        let features: Vec<Vec<f32>> = (0..12).map(|person| vec![(person % 3) as f32 * 10.0, 1.0]).collect();
        let features: Vec<&[f32]> = features.iter().map(Vec::as_slice).collect();
        let groups = group_similar(&features, 4);
        assert_eq!(groups.len(), 3);
        for group in groups {
            assert!(group.iter().all(|person| person % 3 == group[0] % 3), "{group:?}");
        }
    }

    proptest! {
        #[test]
        fn groups_partition_subjects_and_reach_minimum_size(
            people in 0_usize..1_200, size in 1_usize..40, seed in any::<u64>(),
        ) {
            let feature = |person: usize| (crate::values::digest::mix(seed ^ person as u64) % 7) as f32;
            let features: Vec<[f32; 2]> = (0..people).map(|person| [feature(person), feature(person + 5_000)]).collect();
            let features: Vec<&[f32]> = features.iter().map(<[f32; 2]>::as_slice).collect();
            let groups = group_similar(&features, size);
            let mut all: Vec<usize> = groups.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, if people < size { Vec::new() } else { (0..people).collect::<Vec<_>>() });
            prop_assert!(groups.iter().all(|group| group.len() >= size && group.len() < 2 * size.max(1)));
        }
    }
}
