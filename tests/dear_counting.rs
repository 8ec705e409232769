//! Tests a batch that the counting guard and the recount can not judge within their time limit.

use crate::support;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fmt::Write;
use std::time::{Duration, Instant};
use support::schemas::schema;
use support::stand::{Fault, Stand, record};
use throng::daemon::state::records::Flush;
use throng::telemetry::SuppressionReason;

const COLUMNS: usize = 12;
const NOW: i64 = 1_700_000_000_000;

fn schema() -> String {
    let mut text = schema!("dear"; person).to_owned();
    for name in ["a", "b"].iter().flat_map(|group| (0..COLUMNS).map(move |column| format!("{group}{column}"))) {
        write!(
            text,
            "[[attribute]]\nname = \"{name}\"\ntype = \"integer\"\nhierarchy = {{ kind = \"intervals\", min = 0, max = 15, origin = 0, widths = [2, 4, 8] }}\n"
        )
        .expect("a text");
    }
    text
}

fn settings() -> String {
    let names = |group: &str| (0..COLUMNS).map(|c| format!("{group}{c:?}")).collect::<Vec<_>>();
    format!(
        "[privacy]\nk = 5\n[batch]\nmax_records = 960\n[[group]]\nname = \"ga\"\nattributes = {:?}\n[[group]]\nname = \"gb\"\nattributes = {:?}\n",
        names("a"),
        names("b")
    )
}

#[test]
fn batch_beyond_the_counting_time_limit_drops_a_group() {
    let mut dice = SmallRng::seed_from_u64(3);
    let mut tuples = || -> Vec<Vec<u8>> {
        let mut cell = || if dice.random_bool(0.95) { 1 } else { dice.random_range(0..16) };
        (0..120).map(|_| (0..COLUMNS).map(|_| cell()).collect()).collect()
    };
    let (one, other) = (tuples(), tuples());
    let text = |row: usize| {
        let mut text = format!("{{\"person\":\"p{row}\"");
        for (group, values) in [("a", &one[row / 8]), ("b", &other[row * 7_919 % 120])] {
            for (column, value) in values.iter().enumerate() {
                write!(text, ",\"{group}{column}\":{value}").expect("a text");
            }
        }
        record(text + "}")
    };
    let records: Vec<_> = (0..960).map(text).collect();
    let mut stand = Stand::new(&schema(), &settings());
    let start = Instant::now();
    stand.offer(&records, Flush::No, NOW, Fault::Nothing);
    let took = start.elapsed();
    let status = stand.telemetry.status();
    let guarded = status.suppressed.get(SuppressionReason::Guard);
    let lines = [0, 1].map(|group| stand.sink.lines.iter().filter(|line| line.group == group).count());
    eprintln!("{took:?}: lines {lines:?}, {guarded} records suppressed by the guard");
    assert!(status.conserved && status.totals.consumed == 960);
    assert!(lines.iter().max().is_some_and(|most| *most > 500), "one of the groups leaves: {lines:?}");
    // Ten seconds on an idle machine; three minutes or more without a bound.
    assert!(took < Duration::from_secs(120), "{took:?}");
}
