//! Measures time against rows and columns; writes a CSV and a plot.

use crate::{question, tables, timed};
use std::fmt::Write as _;
use std::path::Path;
use throng_risk::qid::QidStrategy;

struct Point {
    rows: usize,
    columns: usize,
    cpu: f64,
    sets: usize,
}

fn measured(rows: usize, columns: usize) -> Point {
    let table = tables::dense(rows, columns, 1);
    let (found, spent) = timed(&table, &question(&table, 5, QidStrategy::Border, 1));
    println!("| dense {rows} x {columns} | 5 | border | {:.3} | {:.3} | | | | | | |", spent.cpu, spent.wall);
    Point { rows, columns, cpu: spent.cpu, sets: found.minimal_qids.len() + found.maximal_non_qids.len() }
}

/// Writes `growth.csv` and `growth.svg` below `target/find-qid`.
pub fn run() {
    let rows: Vec<Point> = [10_000, 30_000, 100_000, 300_000, 1_000_000].into_iter().map(|n| measured(n, 20)).collect();
    let columns: Vec<Point> = [10, 20, 30, 40, 50, 60].into_iter().map(|m| measured(100_000, m)).collect();
    let mut csv = String::from("rows,columns,cpu_seconds,border_sets\n");
    for Point { rows, columns, cpu, sets } in rows.iter().chain(&columns) {
        writeln!(csv, "{rows},{columns},{cpu:.4},{sets}").expect("writing to a string");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/find-qid");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("growth.csv"), csv).expect("a file");
    let left = panel(20.0, "CPU seconds against rows (20 columns)", &rows, |p| p.rows as f64);
    let right = panel(420.0, "CPU seconds against columns (100,000 rows)", &columns, |p| p.columns as f64);
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 820 300\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"820\" height=\"300\" fill=\"white\"/>\n{left}{right}</svg>\n"
    );
    std::fs::write(folder.join("growth.svg"), svg).expect("a file");
}

/// Draws a panel with two logarithmic axes and a label at every point.
fn panel(left: f64, title: &str, points: &[Point], of: impl Fn(&Point) -> f64) -> String {
    let (width, height, top) = (330.0, 200.0, 40.0);
    let span = |values: Vec<f64>| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min).ln();
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max).ln();
        (low, (high - low).max(1e-9))
    };
    let (x_low, x_span) = span(points.iter().map(&of).collect());
    let (y_low, y_span) = span(points.iter().map(|p| p.cpu).collect());
    let place = |p: &Point| {
        let x = left + 30.0 + width * (of(p).ln() - x_low) / x_span;
        let y = top + height * (1.0 - (p.cpu.ln() - y_low) / y_span);
        (x, y)
    };
    let mut svg = format!("<text x=\"{}\" y=\"20\" font-size=\"13\">{title}</text>\n", left + 30.0);
    let line: Vec<String> = points.iter().map(|p| format!("{:.1},{:.1}", place(p).0, place(p).1)).collect();
    svg += &format!("<polyline points=\"{}\" fill=\"none\" stroke=\"#1f6f8b\" stroke-width=\"2\"/>\n", line.join(" "));
    for p in points {
        let (x, y) = place(p);
        svg += &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"#1f6f8b\"/>\n");
        svg += &format!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{:.3} s</text>\n", y - 8.0, p.cpu);
        svg +=
            &format!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n", top + height + 20.0, of(p));
    }
    svg
}
