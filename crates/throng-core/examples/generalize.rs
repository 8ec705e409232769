//! Prints each generalization level of encoded values, with its loss.
//!
//! `cargo run -p throng-core --example generalize`

use std::path::Path;
use std::sync::Arc;
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::DigestKey;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::Schema;

const SCHEMA: &str = r#"
name = "people"
[[attribute]]
name = "age"
type = "integer"
hierarchy = { kind = "intervals", min = 0, max = 99, widths = [5, 25] }
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = Schema::parse(SCHEMA, "people.toml", Path::new(""))?;
    let mut ages = Codebook::new(Arc::clone(&schema.attributes[0]), &DigestKey([7; 32]), 1_000)?;
    for age in ["37", "38", "62"] {
        let code = ages.encode(RawToken::Number(age))?;
        for level in 0..ages.levels() {
            let cell = ages.cell(code, level);
            println!("age {age}, level {level}: {}, loss {:.2}", ages.text(cell), ages.loss(cell));
        }
    }
    Ok(())
}
