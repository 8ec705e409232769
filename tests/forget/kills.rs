//! Checks that a kill during an erasure leaves the state before or after it.

use crate::forget::at_rest::{SCHEMA, SECRET, line, spelled};
use crate::forget::opened::{Opened, databases};
use crate::forget::{forget, receipt};
use crate::support::binary::Place;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

/// The erasure is complete after `database-named`.
pub const POINTS: [&str; 5] =
    ["database-begun", "database-copied", "state-file-unnamed", "database-named", "database-cleared"];

pub fn is_done(point: &str) -> bool {
    matches!(point, "database-named" | "database-cleared" | "erasure-unanswered")
}

fn count(receipt: &serde_json::Value) -> u64 {
    receipt["removed"].as_object().expect("counts").values().map(|count| count.as_u64().expect("a count")).sum()
}

#[test]
fn erasure_killed_at_any_point_is_complete_or_absent() {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", (0..200).map(|n| line(&format!("p{}", n % 40), 30 + n % 4, "Zug")).collect::<String>());
    place.run(&[]).expect(0);
    for (number, point) in POINTS.iter().enumerate() {
        let person = format!("p{}", number + 1);
        let names = spelled(&place, &person);
        let would = receipt(&forget(&place, &[], &["--json", "--dry-run", &person], ""));
        assert!(count(&would) > 0);
        let mut command = crate::support::binary::throng();
        command.args(["forget", "-c", "throng.toml", &person]);
        place.surround(&mut command, &[]);
        command.env("FAILPOINTS", format!("{point}=return")).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().expect("it runs");
        assert_eq!(status.signal(), Some(6), "{point} was not reached");
        let left = receipt(&forget(&place, &[], &["--json", "--dry-run", &person], ""));
        assert_eq!(databases(&place.path("state")).len(), 1, "{point}: what was not finished is gone");
        assert_eq!(count(&left), if is_done(point) { 0 } else { count(&would) }, "{point}");
        receipt(&forget(&place, &[], &["--json", &person], ""));
        assert_eq!(Opened::read(&place.path("state"), SECRET).with(&names), Vec::<String>::new(), "{point}");
        place.run(&[]).expect(0);
    }
}
