//! Runs the commands, the script and the query of docs/series.md on a release.

use crate::support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::daemon::{Dice, scratch};

/// 33 subjects over 30 days, in the columns of the public Fitbit file.
fn write_hourly_steps(path: &Path) {
    let mut dice = Dice::new(7);
    let mut text = "Id,ActivityDay,ActivityHour,StepTotal\n".to_owned();
    for person in 0..33 {
        for day in 0..30 {
            let date = chrono::NaiveDate::from_ymd_opt(2016, 4, 12).expect("a date") + chrono::Days::new(day);
            for hour in 0..24 {
                let steps = if hour < 7 { dice.roll(20) } else { 100 + dice.roll(700) };
                text += &format!("{},{},{hour}:00:00,{steps}\n", 1_503_960_366 + person, date.format("%-m/%-d/%Y"));
            }
        }
    }
    fs::write(path, text).expect("the input");
}

fn run(dir: &Path, program: &Path, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).current_dir(dir).output().expect("the program starts");
    let (out, error) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{} {arguments:?}: {out}{error}", program.display());
    out.into_owned()
}

fn block<'a>(document: &'a str, heading: &str, language: &str) -> &'a str {
    let section = document.split(heading).nth(1).unwrap_or_else(|| panic!("docs/series.md has no {heading:?}"));
    let code =
        section.split(&format!("```{language}\n")).nth(1).unwrap_or_else(|| panic!("{heading:?} has no {language}"));
    code.split("```").next().expect("the block ends")
}

#[test]
fn documented_series_commands_plot_and_query_work() {
    let folder = scratch();
    let dir = folder.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("docs/series.md")).expect("the document");
    write_hourly_steps(&dir.join("hourly_steps.csv"));
    let program = Path::new(env!("CARGO_BIN_EXE_throng"));
    for line in block(&document, "## Try it", "sh").lines() {
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        assert_eq!(words[0], "throng", "{line}");
        run(dir, program, &words[1..]);
    }
    let python = root.join(".tools/python/bin/python");
    let plot = block(&document, "## Plot it", "sh");
    let words: Vec<&str> = plot.split_whitespace().collect();
    assert_eq!(&words[..2], ["python3", "plot_series.py"], "{plot}");
    let script = root.join("docs/plot_series.py").display().to_string();
    run(dir, &python, &[&[script.as_str()], &words[2..]].concat());
    let picture = fs::read(dir.join(words[words.len() - 1])).expect("the picture");
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 5_000, "{} bytes", picture.len());

    fs::write(dir.join("table.sql"), block(&document, "## Grafana", "sql")).expect("the table");
    let query = document.split("## Grafana").nth(1).and_then(|text| text.split("```sql\n").nth(2));
    let query = query.and_then(|text| text.split("```").next()).expect("docs/series.md has the query of the panel");
    fs::write(dir.join("query.sql"), query).expect("the query");
    let load = "
import json, sqlite3
base = sqlite3.connect(':memory:')
base.executescript(open('table.sql').read())
for line in open('hourly-steps.released.ndjson'):
    row = json.loads(line)
    base.execute(f\"INSERT INTO series ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})\", list(row.values()))
for row in base.execute(open('query.sql').read()):
    print(*row)
";
    let answer = run(dir, &python, &["-c", load]);
    let days: Vec<Vec<&str>> = answer.lines().map(|line| line.split(' ').collect()).collect();
    assert!(days.len() >= 28, "{answer}");
    for day in &days {
        let [time, low, mean, high] = day[..] else { panic!("{day:?}") };
        let numbers = [low, mean, high].map(|text| text.parse::<f64>().expect("a number"));
        assert!(time.starts_with("2016-0") && numbers[0] < numbers[1] && numbers[1] < numbers[2], "{day:?}");
        // Of 24 hours, 7 with a mean of 10 steps and 17 with a mean of 450.
        assert!((numbers[1] - 321.0).abs() < 40.0, "{day:?}");
    }
}
