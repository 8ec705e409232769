//! Attacks on a release of series beside releases of the same values by simpler rules: means of whoever is present, and
//! cohorts that are drawn again. Prints the table of docs/evaluation.md.
//!
//! ```sh
//! throng run -c throng.toml --lineage lineage.ndjson
//! cargo run --release --example series_attacks -- throng.toml in.csv out.ndjson lineage.ndjson
//! ```

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use throng::cli::loaded_release::{LoadedRelease, ReleaseFiles};
use throng_eval::attack::series::baseline::{cohort_means, plain_means, redrawn_cohorts};
use throng_eval::attack::series::{Panel, run};
use throng_eval::attack::{AttackEffort, AttackYield};

/// Columns: attack, start of what it is given, heading.
const COLUMNS: [(&str, &str, &str); 8] = [
    ("series: isolation", "", "smallest combination"),
    ("series: differencing", "R² of the level, everything", "level"),
    ("series: neighbouring rows", "R² of the level", "level, neighbours"),
    ("series: differencing", "R² of a value, any day", "value"),
    ("series: differencing", "R² of a value, the last day", "value before a gap"),
    ("series: membership", "own values of 30", "membership, 30 days"),
    ("series: whose history", "", "whose history"),
    ("series: linear programme", "", "linear programme"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [config, original, released, lineage] = arguments.as_slice() else {
        eprintln!("usage: series_attacks CONFIG ORIGINAL RELEASED LINEAGE");
        return ExitCode::from(2);
    };
    match table([config, original, released, lineage].map(Path::new)) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn table([config, original, released, lineage]: [&Path; 4]) -> Result<String, Box<dyn Error>> {
    let named = ReleaseFiles { original, released, config, lineage: Some(lineage) };
    let LoadedRelease { series, .. } = named.load_release().map_err(|failure| format!("{failure:?}"))?;
    let locked = Panel::from_evidence(&series.ok_or("the release has no series, or its secret is gone")?);
    let size = locked.sets.iter().map(Vec::len).max().unwrap_or(3 * locked.crowd);
    let releases = [
        ("means of everybody present", plain_means(&locked)),
        ("the same by cohort", cohort_means(&locked)),
        ("cohorts drawn again every 7 buckets", redrawn_cohorts(&locked, size.min(3 * locked.crowd), 7, 1)),
        ("locked cohorts", locked),
    ];
    let mut text = String::from("| release |");
    COLUMNS.iter().for_each(|(_, _, heading)| text += &format!(" {heading} |"));
    text += "\n|---|";
    COLUMNS.iter().for_each(|_| text += "---|");
    for (name, panel) in releases {
        let yields = run(&panel, AttackEffort { targets: 1_000, known_attributes: 4, seed: 0 }, &|_| {});
        text += &format!("\n| {name} |");
        for (attack, given, _) in COLUMNS {
            let found = yields.iter().find(|found| found.attack == attack && found.given.starts_with(given));
            text += &format!(" {} |", found.map_or_else(String::new, cell));
        }
    }
    Ok(text + "\n")
}

/// Rate, interval and chance; the worst signal after them.
fn cell(found: &AttackYield) -> String {
    if found.trials == 0 {
        return "–".to_owned();
    }
    if found.attack == "series: isolation" {
        return format!("{:.0} people", 1.0 / found.worst_decile);
    }
    let worst = found.groups.iter().max_by(|a, b| a.rate.total_cmp(&b.rate));
    let worst = worst.map_or_else(String::new, |worst| format!("; {}: {:.2}", worst.group, worst.rate));
    format!("{:.2} ({:.2}–{:.2}), chance {:.2}{worst}", found.rate, found.interval[0], found.interval[1], found.chance)
}
