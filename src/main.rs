//! The `throng` binary.

fn main() -> std::process::ExitCode {
    throng::cli::main()
}
