//! The `throng` binary: everything it does is in [`throng::cli`].

fn main() -> std::process::ExitCode {
    throng::cli::main()
}
