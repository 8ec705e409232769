use super::*;
use crate::release::series_sums::verify_sums;
use crate::series::{
    PartialSum, PartitionContributions, ReceivedContributions, SourceFront, SourcePartition, sum_contributions,
};

fn draw(number: u128) -> u128 {
    u128::from(mix(number as u64)) << 64 | u128::from(mix(number as u64 ^ 1))
}

struct InstanceGroup {
    partitions: i32,
    is_spread: bool,
    batch: usize,
    bytes: usize,
}

impl InstanceGroup {
    fn sources(&self) -> Vec<SourcePartition> {
        (0..self.partitions).map(|partition| (0, partition)).collect()
    }

    fn topic(&self, terms: &AllSeriesTerms, records: &[SignalRecord], seed: u64) -> Vec<PartitionContributions> {
        let mut queues: Vec<Vec<SignalRecord>> = vec![Vec::new(); self.partitions as usize];
        for (row, record) in records.iter().enumerate() {
            let key = if self.is_spread { row as u64 } else { record.0 };
            queues[(mix(seed ^ key) % self.partitions as u64) as usize].push(*record);
        }
        let (mut topic, mut step, mut next) = (Vec::new(), 0, vec![0; queues.len()]);
        while queues.iter().any(|queue| !queue.is_empty()) {
            step += 1;
            let roll = mix(seed ^ step << 8);
            let at = (roll % queues.len() as u64) as usize;
            if queues[at].is_empty()
                || at == 0 && !(roll >> 30).is_multiple_of(5) && queues[1..].iter().any(|q| !q.is_empty())
            {
                continue;
            }
            let taken = queues[at].len().min(1 + (roll >> 40) as usize % self.batch);
            let rest = queues[at].split_off(taken);
            let part = std::mem::replace(&mut queues[at], rest);
            next[at] += part.len() as i64;
            let readings = readings(&part, terms.cohorts.strata.len());
            let source = (0, i32::try_from(at).expect("few partitions"));
            let sources = vec![source; part.len()];
            let sums = sum_contributions(terms, &readings, &sources, None);
            verify_sums(terms, &readings, &sources, None, sums.values()).expect("sums of the records");
            for (_, mut contributions) in sums {
                contributions.next = Some(next[at]);
                topic.extend(contributions.split_by_size(self.bytes));
            }
        }
        topic
    }
}

fn read(
    terms: &Arc<AllSeriesTerms>,
    topic: &[PartitionContributions],
    sources: &[SourcePartition],
    size: usize,
    ends: bool,
) -> PublishedRun {
    let mut published = PublishedRun { state: SeriesState::new(terms), ..PublishedRun::default() };
    let batches = topic.len().div_ceil(size).max(1);
    for batch in 0..batches {
        let contributions = topic[batch * size..((batch + 1) * size).min(topic.len())].to_vec();
        let received =
            ReceivedContributions { contributions, sources: sources.to_vec(), ..ReceivedContributions::default() };
        process_batch(terms, &mut published, received, ends && batch + 1 == batches);
    }
    published
}

fn process_batch(
    terms: &Arc<AllSeriesTerms>,
    published: &mut PublishedRun,
    received: ReceivedContributions,
    is_end: bool,
) {
    let readings = SeriesReadings { received: Some(received), ..SeriesReadings::default() };
    let proposal = propose_series(terms, &published.state, &readings, None, is_end, &draw);
    let verified = verify_series(terms, &published.state, &readings, None, &proposal).expect("a sound proposal");
    published.rows.extend(verified.rows().iter().cloned());
    for (_, cohort) in &proposal.changes.cohorts {
        published.sets.extend(cohort.sets.iter().flatten().map(|set| cohort.members(*set).collect::<Vec<u64>>()));
    }
    published.state.apply(proposal.changes);
}

fn counts(state: &SeriesState) -> (u64, u64) {
    let open: u64 = state.open.values().flatten().map(|open| u64::from(open.records)).sum();
    let pending: u64 = state.head.epochs.iter().map(|epochs| epochs.records).sum();
    (state.head.totals().records + open + pending, state.head.totals().dropped())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 300 } else { 2_000 }))]

    #[test]
    fn single_contributions_give_same_rows_as_records(
        seed in any::<u64>(), people in 0_u64..16, days in 1_i64..14, crowd in 2_usize..4, strata in 0_usize..2, size in 1_usize..40,
    ) {
        let terms = terms(crowd, crowd + 2, false, strata);
        let records = stream(seed, people, days, HALF_DAY);
        let group = InstanceGroup { partitions: 1, is_spread: false, batch: 1, bytes: 10_000 };
        let received = read(&terms, &group.topic(&terms, &records, seed), &group.sources(), size, true);
        let direct = run(&terms, &records, size + 3, &[]);
        prop_assert_eq!(&received.rows, &direct.rows);
        prop_assert_eq!(&received.state.people, &direct.state.people);
        prop_assert_eq!(&received.state.cohorts, &direct.state.cohorts);
        prop_assert_eq!(&received.state.head.counts, &direct.state.head.counts);
        prop_assert_eq!(&received.state.head.closed_ms, &direct.state.head.closed_ms);
    }

    #[test]
    fn record_is_not_late_if_other_partition_is_ahead(
        seed in any::<u64>(), people in 2_u64..16, days in 2_i64..14, crowd in 2_usize..4, partitions in 1_i32..5, is_spread in any::<bool>(),
        batch in 1_usize..30, divided in 1_usize..600, size in 1_usize..20,
    ) {
        let terms = terms(crowd, crowd + 2, false, 0);
        let records = stream(seed, people, days, HALF_DAY);
        let group = InstanceGroup { partitions, is_spread, batch, bytes: divided };
        let topic = group.topic(&terms, &records, seed);
        let received = read(&terms, &topic, &group.sources(), size, false);
        prop_assert_eq!(counts(&received.state), (records.len() as u64 * terms.series.len() as u64, 0));
        let other = read(&terms, &topic, &group.sources(), size + 7, false);
        prop_assert_eq!(&received.rows, &other.rows);
        prop_assert_eq!(&received.state, &other.state);
        prop_assert!(isolates_nobody(&received.sets, crowd));
    }

    #[test]
    fn forged_contribution_sums_are_refused(seed in any::<u64>(), how in 0_usize..9) {
        let terms = terms(2, 4, false, 0);
        let records = stream(seed, 4, 3, 0);
        prop_assume!(!records.is_empty());
        let readings = readings(&records, 0);
        let sources = vec![(0, 0); records.len()];
        let mut sums = sum_contributions(&terms, &readings, &sources, None);
        let contributions = sums.get_mut(&(0, 0)).expect("of the only partition");
        let person = (seed % contributions.people.len() as u64) as usize;
        let of = &mut contributions.people[person];
        let bucket = (seed >> 8) as usize % of.buckets.len();
        match how {
            0 => of.buckets[bucket].records += 1,
            1 => of.buckets[bucket].bucket += DAY_MS,
            2 => drop(of.buckets.remove(bucket)),
            3 => of.subject ^= 1 << 40,
            4 => of.days.push(of.days[of.days.len() - 1] + 1),
            5 => of.buckets[bucket].partials.push((0, PartialSum { count: 1, sum: 3.0 })),
            6 => of.buckets[bucket].partials.push((9, PartialSum { count: 1, sum: 3.0 })),
            7 => contributions.front[0].1 += 1,
            _ => drop(contributions.people.remove(person)),
        }
        prop_assert!(verify_sums(&terms, &readings, &sources, None, sums.values()).is_err());
    }
}

#[test]
fn partition_delays_buckets_by_active_subjects() {
    let terms = terms(2, 4, false, 0);
    let day = |number: i64| number * DAY_MS;
    let source =
        |partition: i32, front: &[(u64, i64)]| SourceFront { source: (0, partition), next: 9, front: front.to_vec() };
    let sources = [(0, 0), (0, 1)];
    let waits_for = |other: &[(u64, i64)], latest: i64| {
        let mut state = SeriesState::new(&terms);
        state.head.front = vec![(1, latest), (2, latest)];
        state.head.sources = vec![source(0, &[(1, latest), (2, latest)]), source(1, other)];
        state.head.closed_ms.fill(latest - day(66));
        let is_due = state.head.has_due_buckets(&terms, &sources, &BTreeMap::new());
        (!state.head.delaying_partitions(&terms, &sources).is_empty(), is_due)
    };
    assert_eq!(waits_for(&[(5, day(99)), (6, day(99))], day(100)), (true, true), "it is a day behind");
    assert_eq!(waits_for(&[(5, day(10)), (6, day(100))], day(100)), (false, true), "one has stopped");
    assert_eq!(waits_for(&[(6, day(100))], day(100)), (false, true), "there never was a crowd");
    assert_eq!(waits_for(&[], day(100)), (false, true), "records of nobody");
    assert_eq!(waits_for(&[(5, day(10)), (6, day(10))], day(100)), (true, true), "far behind, for 64 buckets");
}

#[test]
fn overflowing_sums_are_accepted() {
    let mut all = terms(2, 4, false, 0).as_ref().clone();
    for signal in all.series.iter_mut().flat_map(|series| &mut series.signals) {
        (signal.range, signal.intervals) = ((f64::NEG_INFINITY, f64::INFINITY), None);
    }
    let mut records = stream(5, 4, 3, 0);
    let (person, time, ..) = records[0];
    records.extend([
        (person, time, f64::MAX, f64::MIN),
        (person, time, f64::MAX, f64::MAX),
        (person, time, f64::MIN, f64::MIN),
    ]);
    let sources = vec![(0, 0); records.len()];
    let readings = readings(&records, 0);
    let sums = sum_contributions(&all, &readings, &sources, None);
    verify_sums(&all, &readings, &sources, None, sums.values()).expect("sums of the records");
}

#[test]
fn partition_ahead_without_wait_makes_records_late() {
    let terms = terms(2, 4, false, 0);
    let late = |seed: u64| {
        let records = stream(seed, 12, 12, HALF_DAY);
        let group = InstanceGroup { partitions: 3, is_spread: false, batch: 5, bytes: 10_000 };
        let topic = group.topic(&terms, &records, seed);
        counts(&read(&terms, &topic, &[], 3, false).state).1
    };
    assert!((0..20).map(late).sum::<u64>() > 0);
}

#[test]
fn buckets_wait_for_partition_until_idle() {
    let terms = terms(2, 4, false, 0);
    let records = stream(3, 12, 12, HALF_DAY);
    let group = InstanceGroup { partitions: 1, is_spread: false, batch: 20, bytes: 10_000 };
    let topic = group.topic(&terms, &records, 3);
    let sources = [(0, 0), (0, 7)];
    let mut published = read(&terms, &topic, &sources, 5, false);
    assert!(published.rows.is_empty(), "the other partition may have records");
    let waits_for = |published: &PublishedRun| published.state.head.delaying_partitions(&terms, &sources);
    let unknown = BTreeMap::from([((0, 7), 0)]);
    assert_eq!(waits_for(&published), unknown, "it is asked for from its beginning");
    let idle = |at: i64| ReceivedContributions {
        sources: sources.to_vec(),
        idle: BTreeMap::from([((0, 7), at)]),
        ..ReceivedContributions::default()
    };
    process_batch(&terms, &mut published, idle(5), false);
    assert!(published.rows.is_empty(), "it was found idle somewhere else");
    assert!(!published.state.head.has_due_buckets(&terms, &sources, &idle(5).idle));
    assert!(published.state.head.has_due_buckets(&terms, &sources, &idle(0).idle));
    process_batch(&terms, &mut published, idle(0), false);
    let alone = read(&terms, &topic, &[(0, 0)], 5, false);
    assert_eq!(published.state.head.closed_ms, alone.state.head.closed_ms);
    assert!(!published.rows.is_empty() && waits_for(&published).is_empty());
}
