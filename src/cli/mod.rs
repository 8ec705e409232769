//! The command line.

pub mod generate;

pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
