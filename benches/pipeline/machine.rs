//! Processor time per process group.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

/// Ticks per second of `/proc` (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Clone, Debug)]
pub struct Process {
    pub parent: u32,
    pub name: String,
    pub state: char,
    pub cpu_seconds: f64,
}

/// Reads one line of `/proc/PID/stat`. Returns `None` if the process has ended.
pub fn process(pid: u32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain any characters.
    let (before, after) = (text.find('(')?, text.rfind(')')?);
    let fields: Vec<&str> = text[after + 1..].split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        name: text[before + 1..after].to_owned(),
        state: fields.first()?.chars().next()?,
        cpu_seconds: (ticks(11)? + ticks(12)?) / TICKS_PER_SECOND,
    })
}

pub fn memory_mib(pid: u32, key: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
}

#[derive(Clone, Debug, Default)]
struct Usage {
    whole_machine: f64,
    throng: f64,
    broker: f64,
    bench: f64,
}

impl Usage {
    fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let fields: Vec<f64> =
            stat.lines().next().unwrap_or_default().split_whitespace().skip(1).filter_map(|f| f.parse().ok()).collect();
        // Fields: user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user.
        let whole: f64 = fields.iter().take(8).sum();
        let idle = fields.get(3).unwrap_or(&0.0) + fields.get(4).unwrap_or(&0.0);
        let mut usage = Self { whole_machine: (whole - idle) / TICKS_PER_SECOND, ..Self::default() };
        let all: BTreeMap<u32, Process> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
                Some((pid, process(pid)?))
            })
            .collect();
        for (&pid, found) in all.iter().filter(|(pid, _)| is_ours(**pid, &all)) {
            let share = match found.name.as_str() {
                "java" => &mut usage.broker,
                "throng" => &mut usage.throng,
                _ if pid == std::process::id() => &mut usage.bench,
                _ => continue,
            };
            *share += found.cpu_seconds;
        }
        usage
    }
}

fn is_ours(mut pid: u32, all: &BTreeMap<u32, Process>) -> bool {
    while pid != std::process::id() {
        match all.get(&pid) {
            Some(process) if process.parent != pid => pid = process.parent,
            _ => return false,
        }
    }
    true
}

pub struct Stretch {
    began: Instant,
    before: Usage,
}

impl Stretch {
    pub fn begin() -> Self {
        Self { began: Instant::now(), before: Usage::now() }
    }

    pub fn end(&self) -> Spent {
        let (seconds, after) = (self.began.elapsed().as_secs_f64(), Usage::now());
        let (throng, broker, bench) = (
            (after.throng - self.before.throng).max(0.0),
            (after.broker - self.before.broker).max(0.0),
            (after.bench - self.before.bench).max(0.0),
        );
        let whole = after.whole_machine - self.before.whole_machine;
        Spent { seconds, throng, broker, bench, others: (whole - throng - broker - bench).max(0.0) }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Spent {
    pub seconds: f64,
    pub throng: f64,
    pub broker: f64,
    pub bench: f64,
    /// Processor seconds of unrelated processes.
    pub others: f64,
}

pub fn description() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1)).unwrap_or("").trim();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB"));
    let gibibytes = memory.and_then(|kb| kb.trim().parse::<f64>().ok()).unwrap_or(0.0) / (1024.0 * 1024.0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut text = format!("{cores} cores");
    if !model.is_empty() {
        write!(text, " ({model})").expect("writing to a string");
    }
    write!(text, ", {gibibytes:.1} GiB of memory, Linux {}", kernel.trim()).expect("writing to a string");
    text
}
