//! Writes quality over time as CSV and as a plot.

use std::fmt::Write as _;
use std::path::Path;
use throng_core::lattice::search::LatticeSearchProgress;

pub fn write(history: &[LatticeSearchProgress], seconds: f64) {
    let mut csv = String::from("seconds,checked,loss\n");
    for progress in history {
        let best = progress.best.expect("an improvement");
        writeln!(csv, "{:.4},{},{best:.6}", progress.seconds, progress.checked).expect("writing to a string");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/lattice");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("quality.csv"), csv).expect("a file");
    std::fs::write(folder.join("quality.svg"), svg(history, seconds)).expect("a file");
}

const LOSSES: (f64, f64) = (0.5, 1.0);
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 200.0;

fn svg(history: &[LatticeSearchProgress], seconds: f64) -> String {
    let from = 0.01f64;
    let x = |at: f64| LEFT + WIDTH * (at.max(from) / from).ln() / (seconds / from).ln();
    let y = |loss: f64| TOP + HEIGHT * (LOSSES.1 - loss) / (LOSSES.1 - LOSSES.0);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 820 300\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"820\" height=\"300\" fill=\"white\"/>\n\
         <text x=\"50\" y=\"20\" font-size=\"13\">Loss of the best policy against seconds (MACH 2019, 85,030,560 policies)</text>\n",
    );
    for tenth in 5..=10 {
        let (loss, at) = (f64::from(tenth) / 10.0, y(f64::from(tenth) / 10.0));
        writeln!(svg, "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"780\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>")
            .expect("room");
        writeln!(svg, "<text x=\"52\" y=\"{:.1}\" text-anchor=\"end\">{loss:.1}</text>", at + 4.0).expect("room");
    }
    for at in [0.01, 0.1, 1.0, 10.0, seconds] {
        let place = x(at);
        writeln!(svg, "<line x1=\"{place:.1}\" y1=\"40\" x2=\"{place:.1}\" y2=\"240\" stroke=\"#dddddd\"/>")
            .expect("room");
        writeln!(svg, "<text x=\"{place:.1}\" y=\"258\" text-anchor=\"middle\">{at} s</text>").expect("room");
    }
    let mut points = Vec::new();
    let mut before: Option<f64> = None;
    for progress in history {
        let (at, loss) = (x(progress.seconds), progress.best.unwrap_or(LOSSES.1).clamp(LOSSES.0, LOSSES.1));
        points.extend(before.map(|before| format!("{at:.1},{:.1}", y(before))));
        points.push(format!("{at:.1},{:.1}", y(loss)));
        before = Some(loss);
    }
    points.extend(before.map(|last| format!("{:.1},{:.1}", x(seconds), y(last))));
    let line = points.join(" ");
    writeln!(svg, "<polyline points=\"{line}\" fill=\"none\" stroke=\"#1f6f8b\" stroke-width=\"2\"/>").expect("room");
    for at in [0.1, 1.0, 10.0, seconds] {
        let known = history.iter().rev().find(|progress| progress.seconds <= at).and_then(|progress| progress.best);
        let Some(loss) = known else { continue };
        let (cx, cy) = (x(at), y(loss));
        writeln!(svg, "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3.5\" fill=\"#1f6f8b\"/>").expect("room");
        writeln!(svg, "<text x=\"{cx:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{loss:.4}</text>", cy - 8.0)
            .expect("room");
    }
    svg + "</svg>\n"
}
