use super::*;
use crate::evaluation::attack::stage::{SCHEMA, Stage, promised, record};

/// Five people of 31 and five of 32 leave exactly; then `each` of both leave as a decade.
fn rate(each: usize) -> f64 {
    let mut records = String::new();
    let mut lines: Vec<(u32, u64, &[usize])> = Vec::new();
    for row in 0..10 + 2 * each {
        records += &record(row, 0, 0, 31 + row % 2, "flu");
        lines.push((row as u32, u64::from(row >= 10), if row < 10 { &[0] } else { &[1] }));
    }
    let stage = Stage::new(SCHEMA, &records).group(&[3], &[], &lines);
    run(&stage.release(promised(5))).remove(0).rate
}

#[test]
fn a_class_that_is_nearly_two_crowds_is_taken_apart() {
    // Eight people, at most four of each age: four of each.
    assert!((rate(4) - 8.0 / 18.0).abs() < 1e-12, "{}", rate(4));
    // Six people: at least two of each.
    assert!((rate(3) - 4.0 / 16.0).abs() < 1e-12, "{}", rate(3));
    // Four people may all be of one age.
    assert_eq!(rate(2), 0.0);
}
