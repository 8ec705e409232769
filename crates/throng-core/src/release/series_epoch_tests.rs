use super::*;

fn moments_of_records(records: &[SignalRecord], members: &BTreeSet<u64>, epoch: i64) -> ([f64; 2], f64) {
    let mut sums = [0.0; 3];
    for person in members {
        let of_person = records.iter().filter(|record| {
            record.0 == *person && four_days().epoch(record.1) == epoch && !record.2.is_nan() && !record.3.is_nan()
        });
        let rows: Vec<&SignalRecord> = of_person.collect();
        for record in &rows {
            let weight = 1.0 / rows.len() as f64 / members.len() as f64;
            sums[0] += weight * record.2;
            sums[1] += weight * record.3;
            sums[2] += weight * record.2 * record.3;
        }
    }
    ([sums[0], sums[1]], sums[2] - sums[0] * sums[1])
}

#[test]
fn moments_match_brute_force_and_forged_ones_are_refused() {
    let terms = terms(3, 9, true, 0);
    let value = |person: u64, day: i64| (mix(person ^ (day as u64) << 32) % 100) as f64 + person as f64;
    let record = |person: u64, day: i64| {
        let is_missing = day % 4 > 1 && mix(person * 31 + day as u64).is_multiple_of(3);
        let first = if is_missing { f64::NAN } else { value(person, day) };
        (person, (4 + day) * DAY_MS, first, 50.0 + value(person, day) / 2.0 + value(day as u64, 7))
    };
    let records: Vec<SignalRecord> = (0..12).flat_map(|day| (1..=25).map(move |person| record(person, day))).collect();
    let (state, readings) = (SeriesState::new(&terms), readings(&records, 0));
    let sound = propose_series(&terms, &state, &readings, None, true, &|number| u128::from(mix(number as u64)));
    verify_series(&terms, &state, &readings, None, &sound).expect("a sound proposal");
    let cohorts: BTreeMap<u32, &CohortState> =
        sound.changes.cohorts.iter().map(|(number, cohort)| (*number, cohort)).collect();
    let mut seen = 0;
    for row in &sound.rows {
        let RowStatistic::Moment(MomentStatistic { with, mean, covariance }) = row.statistic else { continue };
        let members: BTreeSet<u64> = cohorts[&row.sets[0].0].members(row.sets[0].1).collect();
        let (means, exact) = moments_of_records(&records, &members, row.bucket);
        if row.signal == with {
            let shown = mean.expect("a mean");
            assert!((shown - means[with]).abs() <= covariance.sqrt() / 1_000.0, "{row:?} against {means:?}");
        } else {
            assert!((covariance - exact).abs() <= 1.0, "{row:?} against {exact}");
            seen += 1;
        }
    }
    assert!(seen >= 6, "two cohorts and three epochs: {seen}");
    assert!(sound.rows.iter().all(|row| (row.series == 2) == row.is_of_epoch()), "moments and nothing else");
    let daily =
        sound.rows.iter().find(|row| row.series == 0 && !row.sets.is_empty()).expect("a row of a bucket").clone();
    let mut with_bucket = sound.clone();
    let of_cohort = sound.rows.iter().find(|row| row.series == 2 && row.cohort == daily.cohort).expect("moments");
    with_bucket.rows.push(SeriesRow { series: 2, sets: of_cohort.sets.clone(), ..daily });
    let refusal = verify_series(&terms, &state, &readings, None, &with_bucket).expect_err("a row of a bucket");
    assert_eq!(refusal.series, "model");
    assert!(refusal.claim.contains("no rows of buckets"), "{refusal}");
    let moment = |row: &&SeriesRow| matches!(row.statistic, RowStatistic::Moment(_));
    let of =
        |p: &mut SeriesProposal, row: usize, change: &dyn Fn(&mut MomentStatistic)| match &mut p.rows[row].statistic {
            RowStatistic::Moment(statistic) => change(statistic),
            RowStatistic::Mean(_) | RowStatistic::Bin { .. } | RowStatistic::Noisy(_) => panic!("a row of moments"),
        };
    let diagonal = sound.rows.iter().position(|row| moment(&row)).expect("moments");
    let pair = diagonal + 1;
    let copy = sound.rows[pair].clone();
    type MomentForgery<'a> = (&'a str, Box<dyn Fn(&mut SeriesProposal) + 'a>);
    let spoils: Vec<MomentForgery<'_>> = vec![
        ("mean", Box::new(|p| of(p, diagonal, &|m| m.mean = m.mean.map(|mean| mean * 1.01)))),
        ("no mean", Box::new(|p| of(p, diagonal, &|m| m.mean = None))),
        ("variance", Box::new(|p| of(p, diagonal, &|m| m.covariance *= 1.01))),
        ("covariance", Box::new(|p| of(p, pair, &|m| m.covariance += 10.0))),
        ("unrounded covariance", Box::new(|p| of(p, pair, &|m| m.covariance += 1e-3))),
        ("other signal", Box::new(|p| of(p, pair, &|m| m.with = 0))),
        ("no variance", Box::new(|p| drop(p.rows.remove(diagonal)))),
        ("twice", Box::new(|p| p.rows.push(copy.clone()))),
        ("other epoch", Box::new(|p| p.rows[pair].bucket -= 4 * DAY_MS)),
        ("people", Box::new(|p| p.rows[pair].n += 1)),
        ("filled share", Box::new(|p| p.rows[pair].filled += 0.1)),
        ("other cohort", Box::new(|p| p.rows[pair].cohort = Some("0".into()))),
        ("several cohorts", Box::new(|p| p.rows[pair].sets.clear())),
        ("an epoch that stays open", Box::new(|p| p.changes.head.epochs[2].closed_ms = i64::MIN)),
        ("moments of a series of buckets", Box::new(|p| p.rows[pair].series = 0)),
    ];
    for (what, spoil) in spoils {
        let mut proposal = sound.clone();
        spoil(&mut proposal);
        assert!(verify_series(&terms, &state, &readings, None, &proposal).is_err(), "{what} was not refused");
    }
}

#[test]
fn moment_records_count_when_epoch_closes() {
    let mut terms = (*terms(3, 7, false, 0)).clone();
    terms.series.drain(..2);
    let terms = Arc::new(terms);
    let (mut state, mut epochs_closed, mut some_missing) = (SeriesState::new(&terms), 0, 0);
    let records = stream(11, 24, 26, 0);
    let mut rows: BTreeMap<(u64, i64), u64> = BTreeMap::new();
    for (person, time, ..) in &records {
        let bucket = terms.series[0].bucket(*time);
        let of_bucket = records.iter().filter(|r| r.0 == *person && terms.series[0].bucket(r.1) == bucket);
        let is_complete = of_bucket.clone().any(|r| !r.2.is_nan()) && of_bucket.clone().any(|r| !r.3.is_nan());
        some_missing += u64::from(!is_complete);
        rows.insert((*person, bucket), if is_complete { of_bucket.count() as u64 } else { 0 });
    }
    let (mut represented, mut records_of_epochs) = (0, 0);
    for batch in records.chunks(40) {
        let readings = readings(batch, 0);
        let draw = |number: u128| u128::from(mix(number as u64));
        let proposal = propose_series(&terms, &state, &readings, None, false, &draw);
        verify_series(&terms, &state, &readings, None, &proposal).expect("a sound proposal");
        let before = state.head.clone();
        state.apply(proposal.changes);
        let head = &state.head;
        let epochs: BTreeSet<i64> = proposal.rows.iter().map(|row| row.bucket).collect();
        for epoch in &epochs {
            epochs_closed += 1;
            let rows_of = |person: u64| {
                let of_epoch = rows.range((person, *epoch)..(person, epoch + 4 * DAY_MS)).map(|(_, records)| *records);
                of_epoch.filter(|records| *records > 0).collect::<Vec<u64>>()
            };
            let sets: BTreeSet<&Vec<(u32, u16)>> =
                proposal.rows.iter().filter(|row| row.bucket == *epoch).map(|row| &row.sets).collect();
            let members = sets.iter().flat_map(|set| state.cohorts[&set[0].0].members(set[0].1));
            let counted = members.map(rows_of).filter(|rows| rows.len() >= 2);
            represented += counted.map(|rows| rows.iter().sum::<u64>()).sum::<u64>();
        }
        if before.epochs[0].closed_ms == head.epochs[0].closed_ms {
            assert_eq!(head.totals().records, before.totals().records, "nothing counts before its epoch closes");
        } else {
            records_of_epochs += before.epochs[0].records;
        }
        assert!(head.totals().records >= records_of_epochs);
        assert_eq!(head.totals().represented, represented, "epochs {epochs:?}");
    }
    let open: u64 = state.open.values().flatten().map(|open| u64::from(open.records)).sum();
    let SeriesCounts { records: closed, late, .. } = state.head.totals();
    assert_eq!(closed + state.head.epochs[0].records + open + late, records.len() as u64);
    assert!(
        epochs_closed >= 3 && some_missing > 20 && represented > 100,
        "{epochs_closed} {some_missing} {represented}"
    );
}
