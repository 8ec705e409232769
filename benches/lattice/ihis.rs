//! Records with the shape of the Integrated Health Interview Series ([FL2] Table 4): 8 quasi attributes, a lattice of
//! 12,960 policies.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use throng_core::domain::{Domain, HierarchyLevel};
use throng_core::lattice::table::TableRecords;

const ATTRIBUTES: [(&str, u32, u32, f64); 8] = [
    ("year", 14, 6, 0.0),
    ("quarter", 4, 3, 0.0),
    ("region", 4, 3, 0.3),
    ("pernum", 16, 4, 1.5),
    ("age", 86, 5, 0.2),
    ("marstat", 10, 3, 1.2),
    ("sex", 2, 2, 0.0),
    ("racea", 16, 2, 2.0),
];

fn domain(name: &str, values: u32, levels: u32) -> Domain {
    let level = |index: u32| {
        // Run widths grow evenly on a logarithmic scale, and divide each other.
        let width = match index {
            0 => 1,
            _ if index + 1 == levels => values,
            _ => {
                2u32.pow((f64::from(values).log2() * f64::from(index) / f64::from(levels - 1)).floor().max(1.0) as u32)
            }
        };
        let cell_of: Vec<u32> = (0..values).map(|value| value / width).collect();
        let cells = cell_of.last().map_or(0, |last| last + 1);
        let covered = |cell: u32| cell_of.iter().filter(|&&c| c == cell).count() as f64;
        let loss = (0..cells).map(|cell| (covered(cell) - 1.0) / f64::from(values - 1)).collect();
        HierarchyLevel { loss, cell_of }
    };
    Domain::new(name, (0..levels).map(level).collect()).expect("runs nest")
}

pub fn generated(rows: usize) -> (Vec<Domain>, TableRecords) {
    let mut dice = ChaCha8Rng::seed_from_u64(7);
    let domains = ATTRIBUTES.iter().map(|&(name, values, levels, _)| domain(name, values, levels)).collect();
    let mut records = TableRecords::default();
    for &(_, values, _, skew) in &ATTRIBUTES {
        let mut sum = 0.0;
        let weights: Vec<f64> = (0..values)
            .map(|value| {
                sum += 1.0 / f64::from(value + 1).powf(skew);
                sum
            })
            .collect();
        let draw = |dice: &mut ChaCha8Rng| {
            let at: f64 = dice.random_range(0.0..sum);
            weights.partition_point(|&weight| weight <= at).min(values as usize - 1) as u32
        };
        records.quasi.push((0..rows).map(|_| draw(&mut dice)).collect());
    }
    (domains, records)
}
