//! Parses a configuration. An accepted one is unchanged after writing and reading. A refused one names the reasons by
//! key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::config::{Config, parse};

fuzz_target!(|text: &str| {
    // These keys name files, and the fuzzer could name any path.
    if ["secret_file", "token_file", "key_file"].iter().any(|key| text.contains(key)) || text.contains('\\') {
        return;
    }
    match parse(text, "fuzz.toml", std::iter::empty()) {
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason");
            assert!(problems.iter().all(|p| !p.key.is_empty() && !p.message.is_empty()), "{problems:?}");
        }
        Ok(config) => {
            let written = toml::to_string(&config).expect("a configuration can be written");
            let again: Config = parse(&written, "again.toml", std::iter::empty())
                .unwrap_or_else(|problems| panic!("{problems:?}\n{written}"));
            assert!(again == config, "another configuration:\n{written}");
        }
    }
});
