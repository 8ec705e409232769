//! Memory division, as printed by `throng check`.

use crate::cli::text_format::number;
use crate::config::format_size;
use crate::start::checked_config::CheckedConfig;
use crate::start::memory_budget::memory_division;
use crate::telemetry::{Label, MemoryPart};
use std::path::Path;

/// Memory limit of the container.
const CGROUP_LIMIT_FILE: &str = "/sys/fs/cgroup/memory.max";

/// Parts of `process.memory_limit` and lowered limits; empty without a limit.
pub(super) fn describe_memory_division(checked: &CheckedConfig) -> String {
    let (config, file) = (&checked.config, &checked.file);
    let Some(division) = memory_division(config, &checked.schema) else { return String::new() };
    let mut text = format!("{file}: process.memory_limit = {} is divided:\n", format_size(division.limit));
    for (part, bytes) in division.parts.iter().filter(|(_, bytes)| *bytes > 0) {
        text += &format!("  {:<13}{:>8} MiB  {}\n", part.as_str(), number(bytes >> 20), memory_part_description(*part));
    }
    for (key, asked, own) in division.lowered(config) {
        let shown = |n: u64| if key == "batch.max_bytes" { format!("{} KiB", number(n >> 10)) } else { number(n) };
        text += &format!("  {key}: {} instead of {}\n", shown(own), shown(asked));
    }
    text
}

fn memory_part_description(part: MemoryPart) -> &'static str {
    match part {
        MemoryPart::Program => "reserved for code, threads and clients",
        MemoryPart::Cache => "reserved for the cache of the state's database",
        MemoryPart::Queues => "batches in progress, prefetched records, lines in flight",
        MemoryPart::Ledger => "entries of the ledger and waiting lines, in the worst case",
        MemoryPart::Window => "records of the window and the sample, pairs of the model",
        MemoryPart::Profiles => "reserved for profiles of a usual size; only their number is limited",
        MemoryPart::Dictionaries => "values, with copies for plan searches: measured, evicted above the limit",
        MemoryPart::Reserve => "reserved for the current batch and plan search, and for the allocator",
    }
}

/// Warns if only the container limits the memory.
pub(super) fn container_limit_warning(checked: &CheckedConfig) -> String {
    read_limit_warning(checked, Path::new(CGROUP_LIMIT_FILE))
}

fn read_limit_warning(checked: &CheckedConfig, control_group: &Path) -> String {
    let limit = std::fs::read_to_string(control_group).ok().and_then(|text| text.trim().parse::<u64>().ok());
    match limit {
        Some(limit) if checked.config.process.memory_limit.is_none() => format!(
            "{}: process.memory_limit is not set, but the control group kills this process at {} MiB; this limit is not divided among the parts (set about four fifths of it)\n",
            checked.file,
            number(limit >> 20)
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn checked(limit: Option<u64>) -> CheckedConfig {
        let mut config = Config::default();
        config.schema.file = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/adult.toml").into();
        config.source.topics = vec!["raw".to_owned()];
        config.sink.topic = "out".to_owned();
        config.process.memory_limit = limit;
        CheckedConfig::new(config, "t.toml").unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    #[test]
    fn memory_division_lists_parts_and_lowered_limits() {
        assert_eq!(describe_memory_division(&checked(None)), "");
        let text = describe_memory_division(&checked(Some(1 << 30)));
        assert!(text.starts_with("t.toml: process.memory_limit = 1GiB is divided:\n  program "), "{text}");
        assert!(text.contains("  dictionaries ") && text.contains("batch.max_bytes: "), "{text}");
        assert!(!text.contains("profiles"), "there are no joins: {text}");
    }

    #[test]
    fn container_limit_is_reported_but_not_applied() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("memory.max");
        assert_eq!(read_limit_warning(&checked(None), &file), "");
        std::fs::write(&file, "max\n").expect("a file");
        assert_eq!(read_limit_warning(&checked(None), &file), "");
        std::fs::write(&file, "1073741824\n").expect("a file");
        assert!(read_limit_warning(&checked(None), &file).contains("at 1,024 MiB"));
        assert_eq!(read_limit_warning(&checked(Some(2 << 30)), &file), "");
    }
}
