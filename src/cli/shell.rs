//! `throng completions` and `throng man`: what shells and manuals are told of the command line, from the command line itself.

use super::outcome::Failure;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;

/// Which shell.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  throng completions bash > ~/.local/share/bash-completion/completions/throng
  throng completions zsh > ~/.zfunc/_throng        # a folder of $fpath
  throng completions fish > ~/.config/fish/completions/throng.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Where to.
#[derive(clap::Args)]
#[command(after_help = "Example:
  throng man ~/.local/share/man/man1 && man throng-run")]
pub struct ManArgs {
    /// The folder of the pages, made where it is not there; pages of the same names are replaced
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the completions of a shell.
pub fn completions(args: &CompletionsArgs, mut command: clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "throng", &mut script);
    match std::io::stdout().write_all(&script) {
        // Whoever read stdout has seen enough (`| head`).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written.context("cannot write the completions")?),
    }
}

/// Writes a page of the manual for throng and for each of its commands.
pub fn man(args: &ManArgs, command: clap::Command) -> Result<(), Failure> {
    let folder = || format!("cannot write the pages to {}", args.folder.display());
    std::fs::create_dir_all(&args.folder).with_context(folder)?;
    clap_mangen::generate_to(command, &args.folder).with_context(folder)?;
    Ok(())
}
