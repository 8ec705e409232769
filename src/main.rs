//! The `throng` binary. It only calls [`throng::cli`].

fn main() -> std::process::ExitCode {
    throng::cli::main()
}
