//! `throng completions` and `throng man`.

use super::outcome::Failure;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `throng completions`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  throng completions bash > ~/.local/share/bash-completion/completions/throng
  throng completions zsh > ~/.zfunc/_throng        # a folder of $fpath
  throng completions fish > ~/.config/fish/completions/throng.fish")]
pub struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Arguments of `throng man`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  throng man ~/.local/share/man/man1 && man throng-run")]
pub struct ManArgs {
    /// Directory of the pages, created if missing; pages with the same names are replaced
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the completion script of a shell.
pub fn print_completions(args: &CompletionsArgs, mut command: clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "throng", &mut script);
    match std::io::stdout().write_all(&script) {
        // The reader closed standard output (`| head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written.context("cannot write the completions")?),
    }
}

/// Writes one manual page for throng and one per command.
pub fn write_manual_pages(args: &ManArgs, command: clap::Command) -> Result<(), Failure> {
    let folder = || format!("cannot write the pages to {}", args.folder.display());
    std::fs::create_dir_all(&args.folder).with_context(folder)?;
    clap_mangen::generate_to(command, &args.folder).with_context(folder)?;
    Ok(())
}
