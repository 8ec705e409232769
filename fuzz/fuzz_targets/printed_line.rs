//! Reads a line back into cells, as in verification. An accepted line is exactly the line that would be written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_formats::{LineFormat, NestingStep};

const NAMES: [&str; 3] = ["age", "zip", "a\"b"];

fn nested() -> LineFormat {
    let way = |segments: &[&str]| {
        segments.iter().map(|segment| NestingStep::from_segment((*segment).to_owned())).collect::<Vec<_>>()
    };
    let ways = [way(&["x", "0", "age"]), way(&["x", "2", "zip"]), way(&["a\"b"])];
    LineFormat::Nested(NAMES.iter().map(|name| (*name).to_owned()).zip(ways).collect())
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, line)) = data.split_first() else { return };
    let format = match kind % 4 {
        0 => LineFormat::Json,
        3 => nested(),
        1 => LineFormat::Csv { separator: b',' },
        _ => LineFormat::Csv { separator: b';' },
    };
    let layout = format.layout(&NAMES);
    let mut cells = vec!["what was there before".to_owned(); 5];
    if layout.read(line, &mut cells).is_none() {
        return;
    }
    assert_eq!(cells.len(), NAMES.len());
    let mut written = Vec::new();
    let texts: Vec<&str> = cells.iter().map(String::as_str).collect();
    layout.write(&texts, &mut written);
    assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(line), "not what would be written");
    let mut again = Vec::new();
    layout.read(&written, &mut again).expect("what was written can be read");
    assert_eq!(again, cells);
});
