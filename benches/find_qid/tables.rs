//! Generated tables, each from a seed.

use throng_risk::counting::CountedTable;

pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn share(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.roll()) * n as u128) >> 64) as usize
    }
}

/// Zipf distribution over 0, 1, … drawn by Walker's alias table.
pub struct Zipf {
    keep: Vec<f64>,
    alias: Vec<u32>,
}

impl Zipf {
    pub fn new(values: usize, exponent: f64) -> Self {
        let weights: Vec<f64> = (0..values).map(|v| ((v + 1) as f64).powf(-exponent)).collect();
        let sum: f64 = weights.iter().sum();
        let mut keep: Vec<f64> = weights.iter().map(|w| w * values as f64 / sum).collect();
        let mut alias: Vec<u32> = (0..values as u32).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..values).partition(|v| keep[*v] < 1.0);
        while let (Some(s), Some(&l)) = (small.pop(), large.last()) {
            alias[s] = l as u32;
            keep[l] -= 1.0 - keep[s];
            if keep[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        Self { keep, alias }
    }

    pub fn draw(&self, dice: &mut Dice) -> u32 {
        let at = dice.below(self.keep.len());
        if dice.share() < self.keep[at] { at as u32 } else { self.alias[at] }
    }
}

fn log_uniform(columns: usize, dice: &mut Dice) -> Vec<usize> {
    (0..columns).map(|_| (2.0 * 50_f64.powf(dice.share())).round() as usize).collect()
}

pub fn dense(rows: usize, columns: usize, seed: u64) -> CountedTable {
    let mut dice = Dice::new(seed);
    let cardinalities = log_uniform(columns, &mut dice);
    let column = |cardinality: usize| {
        let zipf = Zipf::new(cardinality, 0.5);
        (0..rows).map(|_| zipf.draw(&mut dice)).collect()
    };
    table(cardinalities.into_iter().map(column).collect())
}

/// Generates blocks of four columns driven by one hidden variable: a noisy reading, a coarser function of it, a
/// function of the hidden variable, and a noisier reading.
pub fn correlated(rows: usize, columns: usize, seed: u64) -> CountedTable {
    let mut dice = Dice::new(seed);
    let mut all = Vec::new();
    for cardinality in log_uniform(columns.div_ceil(4), &mut dice) {
        let cardinality = cardinality.max(8);
        let zipf = Zipf::new(cardinality, 0.5);
        let hidden: Vec<u32> = (0..rows).map(|_| zipf.draw(&mut dice)).collect();
        let mut noisy = |noise: f64| -> Vec<u32> {
            hidden.iter().map(|h| if dice.share() < noise { zipf.draw(&mut dice) } else { *h }).collect()
        };
        let (first, second) = (noisy(0.1), noisy(0.4));
        let coarser = first.iter().map(|v| v / 4).collect();
        let function = hidden.iter().map(|h| h % (cardinality as u32 / 3)).collect();
        all.extend([first, coarser, function, second]);
    }
    all.truncate(columns);
    table(all)
}

/// Generates forty latent classes with one to three values per column: nearly all cells of the domains are empty.
pub fn sparse(rows: usize, columns: usize, seed: u64) -> CountedTable {
    const CLASSES: usize = 40;
    let mut dice = Dice::new(seed);
    let cardinalities: Vec<usize> = (0..columns).map(|_| 20 + dice.below(80)).collect();
    let zipf = Zipf::new(CLASSES, 0.5);
    let class: Vec<u32> = (0..rows).map(|_| zipf.draw(&mut dice)).collect();
    let column = |cardinality: usize| {
        let values: Vec<(Vec<u32>, Zipf)> = (0..CLASSES)
            .map(|_| {
                let own = 1 + dice.below(3);
                ((0..own).map(|_| dice.below(cardinality) as u32).collect(), Zipf::new(own, 1.0))
            })
            .collect();
        class
            .iter()
            .map(|c| {
                let (own, zipf) = &values[*c as usize];
                own[zipf.draw(&mut dice) as usize]
            })
            .collect()
    };
    table(cardinalities.into_iter().map(column).collect())
}

pub fn table(columns: Vec<Vec<u32>>) -> CountedTable {
    CountedTable::new(columns, None).expect("a table")
}

/// Generates the schema of the tweets of [POD] Table 7.1.
pub fn tweets(rows: usize, seed: u64) -> CountedTable {
    let mut dice = Dice::new(seed);
    let mut drawn = |values: usize, exponent: f64| -> Vec<u32> {
        let zipf = Zipf::new(values, exponent);
        (0..rows).map(|_| zipf.draw(&mut dice)).collect()
    };
    let (created, from, to) = (drawn(10_368_000, 0.1), drawn(3_000_000, 0.8), drawn(400_000, 1.2));
    let (language, retweets, party) = (drawn(65, 2.0), drawn(5_000, 1.5), drawn(4, 0.7));
    let (words, negative, positive) = (drawn(1_000_000, 1.0), drawn(150, 1.2), drawn(150, 1.2));
    let score = negative.iter().zip(&positive).map(|(n, p)| p + 150 - n).collect();
    let id = (0..rows as u32).collect();
    table(vec![created, from, to, language, retweets, party, id, score, words, negative, positive])
}
