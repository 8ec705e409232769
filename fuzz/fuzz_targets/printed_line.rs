//! The reader by which verification goes from a line back to its cells. What it accepts is exactly what would be written of
//! those cells: nothing else may be counted as a line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::codec::{LineFormat, LineLayout};

fuzz_target!(|data: &[u8]| {
    let Some((&kind, line)) = data.split_first() else { return };
    let format = match kind % 3 {
        0 => LineFormat::Json,
        1 => LineFormat::Csv { separator: b',' },
        _ => LineFormat::Csv { separator: b';' },
    };
    let layout = LineLayout::new(&format, &["age", "zip", "a\"b"]);
    let mut cells = vec!["what was there before".to_owned(); 5];
    if layout.read(line, &mut cells).is_none() {
        return;
    }
    assert_eq!(cells.len(), layout.width());
    let mut written = Vec::new();
    layout.write(cells.iter().map(String::as_str), &mut written);
    assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(line), "not what would be written");
    let mut again = Vec::new();
    layout.read(&written, &mut again).expect("what was written can be read");
    assert_eq!(again, cells);
});
