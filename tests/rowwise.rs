//! Measures the disclosure by separate groups for each record ([POD] Table 6.6): the reason why the configuration
//! refuses `plan.groups = "rowwise"`.

use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use throng::config::Config;
use throng_core::values::schema::Schema;
use throng_eval::facts::AttributeFacts;
use throng_eval::information::measure_pairs;
use throng_eval::original::OriginalData;

type Set = u32;

/// Disjoint sets of attributes.
type Cut = Vec<Set>;

/// Marks, by set of attributes and record, values that fewer than `crowd` records have.
fn few(columns: &[&[u32]], crowd: usize) -> Vec<Vec<bool>> {
    let rows = columns[0].len();
    let values: Vec<u128> = columns.iter().map(|column| 1 + u128::from(*column.iter().max().expect("rows"))).collect();
    let all = values.iter().try_fold(1_u128, |all, values| all.checked_mul(*values));
    assert!(all.is_some(), "the values of a record are one number");
    (0..1 << columns.len())
        .into_par_iter()
        .map(|set: Set| {
            let own: Vec<usize> = members(set).collect();
            let number = |row: usize| own.iter().fold(0, |all, a| all * values[*a] + u128::from(columns[*a][row]));
            let tuples: Vec<u128> = (0..rows).map(number).collect();
            let mut counts: HashMap<u128, usize> = HashMap::new();
            tuples.iter().for_each(|tuple| *counts.entry(*tuple).or_default() += 1);
            tuples.iter().map(|tuple| counts[tuple] < crowd).collect()
        })
        .collect()
}

fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..32).filter(move |a| set >> a & 1 == 1)
}

#[derive(Clone, Copy, Debug)]
enum Way {
    /// As in the source: no two attributes of a minimal combination stay together.
    Cliques,
    /// An attribute stays with others as long as all of them together are not rare.
    Border,
}

/// Each attribute, in order, goes to the first fragment that accepts it. An attribute that is rare alone is omitted.
fn cuts(columns: &[&[u32]], crowd: usize, way: Way) -> Vec<Cut> {
    let few = few(columns, crowd);
    let cut = |row: usize| {
        let rare = |set: Set| few[set as usize][row];
        let minimal = |set: &Set| rare(*set) && members(*set).all(|a| !rare(set & !(1 << a)));
        // By attribute: the attributes with which it shares a minimal combination.
        let mut apart = vec![0; columns.len()];
        if matches!(way, Way::Cliques) {
            for set in (1..1 << columns.len()).filter(minimal) {
                members(set).for_each(|a| apart[a] |= set & !(1 << a));
            }
        }
        let mut cut: Cut = Vec::new();
        for a in (0..columns.len()).filter(|a| !rare(1 << a)) {
            let takes = |fragment: &&mut Set| match way {
                Way::Cliques => **fragment & apart[a] == 0,
                Way::Border => !rare(**fragment | 1 << a),
            };
            match cut.iter_mut().find(takes) {
                Some(fragment) => *fragment |= 1 << a,
                None => cut.push(1 << a),
            }
        }
        assert!(cut.iter().all(|fragment| !rare(*fragment)), "no fragment has a combination that is too rare");
        cut
    };
    (0..columns[0].len()).into_par_iter().map(cut).collect()
}

#[derive(Clone, Copy, Debug, Default)]
struct Given {
    records: usize,
    cut: usize,
    /// Such records with a cut shared by fewer than k records.
    rare: usize,
    /// Fragments of such records, and those whose other fragment is guessed with probability above 1/k.
    fragments: usize,
    better: usize,
    /// Sum of the probabilities of a right guess, and of a random disjoint fragment.
    hits: f64,
    chance: f64,
}

impl std::ops::AddAssign for Given {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.cut += other.cut;
        self.rare += other.rare;
        self.fragments += other.fragments;
        self.better += other.better;
        self.hits += other.hits;
        self.chance += other.chance;
    }
}

/// Joins fragments by their attribute sets. Another fragment of the same record is disjoint, and the remaining
/// attributes must be covered by fragments of the batch. The attacker guesses the rarest possible set.
fn joined(cuts: &[Cut], width: usize, k: usize) -> Given {
    let mut counts: BTreeMap<Set, usize> = BTreeMap::new();
    cuts.iter().flatten().for_each(|set| *counts.entry(*set).or_default() += 1);
    // Marks the sets that are unions of disjoint observed sets.
    let mut whole = vec![false; 1 << width];
    whole[0] = true;
    for mask in 1..1_u32 << width {
        let first = 1 << mask.trailing_zeros();
        whole[mask as usize] =
            counts.keys().any(|set| set & first != 0 && set & mask == *set && whole[(mask & !set) as usize]);
    }
    let all: Set = (1 << width) - 1;
    let guess: BTreeMap<Set, Option<Set>> = counts
        .keys()
        .map(|&own| {
            let apart = || counts.keys().copied().filter(move |other| own & other == 0);
            let fits = apart().filter(|other| whole[(all & !(own | other)) as usize]).min_by_key(|set| counts[set]);
            (own, fits.or_else(|| apart().min_by_key(|set| counts[set])))
        })
        .collect();
    let mut of_cut: BTreeMap<BTreeSet<Set>, usize> = BTreeMap::new();
    cuts.iter().for_each(|cut| *of_cut.entry(cut.iter().copied().collect()).or_default() += 1);
    let mut given = Given { records: cuts.len(), ..Given::default() };
    for cut in cuts.iter().filter(|cut| cut.len() > 1) {
        given.cut += 1;
        given.rare += usize::from(of_cut[&cut.iter().copied().collect::<BTreeSet<_>>()] < k);
        for own in cut {
            let others: usize = counts.iter().filter(|(set, _)| own & **set == 0).map(|(_, count)| count).sum();
            let hit = guess[own].filter(|set| cut.contains(set)).map_or(0.0, |set| 1.0 / counts[&set] as f64);
            given.fragments += 1;
            given.better += usize::from(hit > 1.0 / k as f64);
            given.hits += hit;
            given.chance += (cut.len() - 1) as f64 / others as f64;
        }
    }
    given
}

#[derive(Clone, Copy, Debug, Default)]
struct Linked {
    lines: usize,
    /// Lines with attributes and values shared by fewer than k lines: the class of R(k), with an absent cell as a
    /// value.
    without_crowd: usize,
    /// Lines with fewer than k candidates for the subject, and the sum of the probabilities of finding it.
    few: usize,
    hits: f64,
}

impl std::ops::AddAssign for Linked {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.without_crowd += other.without_crowd;
        self.few += other.few;
        self.hits += other.hits;
    }
}

struct Printed<'a> {
    columns: &'a [&'a [u32]],
    counts: HashMap<(Set, Vec<u32>), usize>,
}

impl<'a> Printed<'a> {
    fn new(columns: &'a [&'a [u32]], cuts: &[Cut]) -> Self {
        let mut printed = Self { columns, counts: HashMap::new() };
        for (row, cut) in cuts.iter().enumerate() {
            for &set in cut {
                let line = printed.line(row, set);
                *printed.counts.entry(line).or_default() += 1;
            }
        }
        printed
    }

    fn line(&self, row: usize, set: Set) -> (Set, Vec<u32>) {
        (set, members(set).map(|a| self.columns[a][row]).collect())
    }

    fn alike(&self, row: usize, set: Set) -> usize {
        self.counts.get(&self.line(row, set)).copied().unwrap_or(0)
    }
}

/// The attacker knows all values of a subject. Candidates are the lines that agree with it in every shown value.
fn linked(printed: &Printed<'_>, cuts: &[Cut], k: usize) -> Linked {
    let sets: BTreeSet<Set> = cuts.iter().flatten().copied().collect();
    let of_row = |(row, cut): (usize, &Cut)| {
        let mut linked = Linked::default();
        for &own in cut {
            let sought = 1 << own.trailing_zeros();
            let may_be: usize = sets.iter().filter(|set| **set & sought != 0).map(|set| printed.alike(row, *set)).sum();
            linked += Linked {
                lines: 1,
                without_crowd: usize::from(printed.alike(row, own) < k),
                few: usize::from(may_be < k),
                hits: 1.0 / may_be as f64,
            };
        }
        linked
    };
    let mut all = Linked::default();
    cuts.par_iter().enumerate().map(of_row).collect::<Vec<_>>().into_iter().for_each(|linked| all += linked);
    all
}

#[test]
fn rowwise_cuts_separate_rare_combinations() {
    // The pair is rare for the last record only.
    let columns = [&[0, 0, 1, 1, 0][..], &[0, 0, 1, 1, 1]];
    for way in [Way::Cliques, Way::Border] {
        let cuts = cuts(&columns, 2, way);
        assert_eq!(cuts, [vec![0b11], vec![0b11], vec![0b11], vec![0b11], vec![0b01, 0b10]], "{way:?}");
        let given = joined(&cuts, 2, 2);
        assert_eq!((given.cut, given.rare, given.fragments, given.better), (1, 1, 2, 2), "{way:?}");
        assert!((given.hits - 2.0).abs() < 1e-9 && (given.chance - 2.0).abs() < 1e-9, "{given:?}");
        // Three records have a first value of 0. The cut identifies one line, because the other two show more
        // attributes.
        let linked = linked(&Printed::new(&columns, &cuts), &cuts, 2);
        assert_eq!((linked.lines, linked.without_crowd, linked.few), (6, 2, 2), "{way:?}");
        assert!((linked.hits - (3.0 + 2.0 / 3.0)).abs() < 1e-9, "{linked:?}");
    }
    // Three attributes, rare only together: two stay together with `Border`, and none with `Cliques`.
    let rows = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]];
    let columns: Vec<Vec<u32>> = (0..3).map(|a| rows.iter().map(|row| row[a]).collect()).collect();
    let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    assert!(cuts(&columns, 2, Way::Border).iter().all(|cut| *cut == [0b011, 0b100]));
    let all_alone = cuts(&columns, 2, Way::Cliques);
    assert!(all_alone.iter().all(|cut| *cut == [0b001, 0b010, 0b100]));
    // A record with the common cut is joined no better than by chance.
    let given = joined(&all_alone, 3, 5);
    assert_eq!((given.rare, given.better), (0, 0));
    assert!((given.hits / 24.0 - 1.0 / 8.0).abs() < 1e-9, "{given:?}");
}

struct Data {
    folder: tempfile::TempDir,
    original: OriginalData,
    attributes: Vec<usize>,
}

impl Data {
    /// With all quasi-identifiers if `wanted` is empty.
    fn new(records: &Path, separator: char, schema: &str, wanted: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(root.join("schemas").join(schema)).expect("the schema");
        let (head, blocks) = text.split_once("[[attribute]]").expect("attributes");
        let kept = |block: &&str| {
            let quasi = !["sensitive", "identifier"].iter().any(|role| block.contains(&format!("role = \"{role}\"")));
            let named = wanted.iter().any(|name| block.contains(&format!("name = \"{name}\"\n")));
            block.contains("role = \"subject\"") || if wanted.is_empty() { quasi } else { named }
        };
        let blocks: Vec<&str> = blocks.split("[[attribute]]").filter(kept).collect();
        let text = [&[head], blocks.as_slice()].concat().join("[[attribute]]");
        std::fs::write(folder.path().join("schema.toml"), &text).expect("a file");
        let config = format!(
            "[source]\nkind = \"file\"\npath = \"{}\"\nseparator = \"{separator}\"\n\
             [sink]\nkind = \"file\"\npath = \"out.ndjson\"\n[schema]\nfile = \"schema.toml\"\n\
             [privacy]\nk = 5\nmax_lines_per_subject = 0\nmax_delay = \"0s\"\n[plan]\ngroups = \"price\"\n",
            records.display()
        );
        std::fs::write(folder.path().join("price.toml"), config).expect("a file");
        let schema = Arc::new(Schema::load(&folder.path().join("schema.toml")).expect("a schema"));
        let mut config = Config::default();
        config.source.kind = throng::config::SourceKind::File;
        config.source.path = records.to_owned();
        config.source.separator = separator;
        let original = throng::evaluation::original::read_original(&config, &schema, "throng.toml", records, None)
            .expect("records");
        let attributes: Vec<usize> = schema.releasable().collect();
        Self { folder, original, attributes }
    }

    fn kept(&self, cuts: &[Cut]) -> f64 {
        let facts: Vec<AttributeFacts> = (0..self.original.schema.attributes.len())
            .map(|a| AttributeFacts::from_original(&self.original, a, &[]))
            .collect();
        let place = |a: usize| self.attributes.iter().position(|own| *own == a).expect("an attribute");
        let (mut bits, mut kept) = (0.0, 0.0);
        for pair in measure_pairs(&self.original, &facts, &[], &self.attributes) {
            let both = pair.attributes.iter().fold(0, |set, a| set | 1 << place(*a));
            let together = cuts.iter().filter(|cut| cut.iter().any(|set| set & both == both)).count();
            bits += pair.bits;
            kept += pair.bits * together as f64 / cuts.len() as f64;
        }
        kept / bits
    }

    fn by_price(&self, batch: usize) -> f64 {
        let throng = |arguments: &[&str]| {
            let mut command = crate::support::binary::throng();
            command.args(arguments).current_dir(self.folder.path());
            command.env("THRONG__BATCH__MAX_RECORDS", batch.to_string());
            command.env("THRONG__TELEMETRY__LISTEN", "127.0.0.1:0");
            command.env("THRONG__STATE__PATH", format!("state.{batch}"));
            command.env("THRONG__SINK__PATH", format!("{batch}.ndjson"));
            let output = command.output().expect("the binary");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        throng(&["run", "-c", "price.toml"]);
        let (records, released) = (self.records(), format!("{batch}.ndjson"));
        let report = throng(&["evaluate", &records, &released, "-c", "price.toml", "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
        report["quality"]["pairwise_information_of_all"].as_f64().expect("a number")
    }

    fn records(&self) -> String {
        let config = std::fs::read_to_string(self.folder.path().join("price.toml")).expect("a file");
        let path = config.lines().find_map(|line| line.strip_prefix("path = \"")).expect("a path");
        path.trim_end_matches('"').to_owned()
    }
}

#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names, and minutes"]
fn rowwise_cuts_disclosure_table() {
    const K: usize = 5;
    let data = PathBuf::from(std::env::var_os("THRONG_TEST_DATA").expect("THRONG_TEST_DATA is set"));
    let folder = tempfile::tempdir().expect("a folder");
    let wearable = folder.path().join("wearable.ndjson");
    let generated = crate::support::binary::throng()
        .args(["generate", "wearable", "--records", "30000", "--seed", "1", "-o"])
        .arg(&wearable)
        .status();
    assert!(generated.expect("the binary").success());
    let twelve = [
        "age",
        "sex",
        "blood_group",
        "device_model",
        "firmware",
        "activity",
        "heart_rate",
        "spo2",
        "steps",
        "stress",
        "battery",
        "sleep_stage",
    ];
    println!(
        "| data | batch | rare below | way | cut | rare cuts | fragments a cut | joined | chance | above 1/k | no crowd | below k found | found | kept | with a crowd | price |"
    );
    for (name, data) in [
        ("ADULT, 8", Data::new(&data.join("adult/adult.csv"), ';', "adult.toml", &[])),
        ("wearable, 12", Data::new(&wearable, ',', "wearable.toml", &twelve)),
    ] {
        let width = data.attributes.len();
        for batch in [1000, 10_000] {
            let price = data.by_price(batch);
            for (crowd, way) in [(2, Way::Cliques), (2, Way::Border), (K, Way::Cliques), (K, Way::Border)] {
                let (mut all, mut given, mut seen) = (Vec::new(), Given::default(), Linked::default());
                // The cuts, with only the lines that have a crowd.
                let mut repaired = Vec::new();
                let rows = data.original.rows() / batch * batch;
                for from in (0..rows).step_by(batch) {
                    let of = |a: &usize| &data.original.batch.columns[*a][from..from + batch];
                    let columns: Vec<&[u32]> = data.attributes.iter().map(of).collect();
                    let cuts = cuts(&columns, crowd, way);
                    given += joined(&cuts, width, K);
                    let printed = Printed::new(&columns, &cuts);
                    seen += linked(&printed, &cuts, K);
                    let crowded = |(row, cut): (usize, &Cut)| -> Cut {
                        cut.iter().copied().filter(|set| printed.alike(row, *set) >= K).collect()
                    };
                    repaired.extend(cuts.iter().enumerate().map(crowded));
                    all.extend(cuts);
                }
                let (kept, crowded) = (data.kept(&all), data.kept(&repaired));
                let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64 * 100.0;
                let fragments = given.fragments.max(1) as f64;
                println!(
                    "| {name} | {batch} | {crowd} | {way:?} | {:.1} % | {:.1} % | {:.2} | {:.2} % | {:.2} % | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {kept:.3} | {crowded:.3} | {price:.3} |",
                    share(given.cut, given.records),
                    share(given.rare, given.cut),
                    fragments / given.cut.max(1) as f64,
                    given.hits / fragments * 100.0,
                    given.chance / fragments * 100.0,
                    share(given.better, given.fragments),
                    share(seen.without_crowd, seen.lines),
                    share(seen.few, seen.lines),
                    seen.hits / seen.lines.max(1) as f64 * 100.0,
                );
            }
        }
    }
}
