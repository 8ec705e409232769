//! `throng state export` and `throng state import`.

use super::named::{self, Named, bytes_below, secret};
use crate::cli::outcome::Failure;
use crate::cli::progress::bar_of;
use crate::cli::written::refuse_overwriting;
use crate::config::{Secret, Used};
use crate::daemon::state::archive::{ArchiveError, export as write_archive, import as read_archive};
use crate::daemon::state::directory;
use anyhow::{Context, anyhow};
use indicatif::HumanBytes;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Write a state to one file
///
/// The file is as sealed as the state and does not hold the secret: who restores it needs both. A state that keeps its own secret
/// (neither state.secret_file nor THRONG_SECRET is set) needs --secret-to. Do not run two copies of one state: the second would go
/// on behind batches that the first has released since. A topic's marker, or the marker beside the output files, refuses that.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    #[command(flatten)]
    named: Named,
    /// Where the state goes (mode 0600); a file that is there is not written over
    #[arg(short, long, value_name = "ARCHIVE")]
    output: PathBuf,
    /// Where the secret goes that the state directory keeps itself (mode 0600); keep it apart from the archive
    #[arg(long, value_name = "FILE")]
    secret_to: Option<PathBuf>,
}

/// Make a state directory of an exported file
///
/// The whole file is checked first. The directory that the configuration names must be empty, or not there.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// What `throng state export` has written
    #[arg(value_name = "ARCHIVE")]
    archive: PathBuf,
    #[command(flatten)]
    named: Named,
    /// The secret that `throng state export --secret-to` has written: the directory keeps it itself
    #[arg(long, value_name = "FILE")]
    secret_from: Option<PathBuf>,
}

fn failed(error: ArchiveError) -> Failure {
    match error {
        ArchiveError::State(error) => named::failed(error),
        error if error.is_usage() => Failure::Usage(error.into()),
        error => Failure::Running(error.into()),
    }
}

/// A file of ours alone that was not there before.
fn fresh(key: &str, path: &Path) -> Result<File, Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::Usage(anyhow!("{key} {}: this file is there already (name another one)", path.display()))
        }
        _ => Failure::Usage(anyhow!("{key} {}: {error} (name a file in a writable directory)", path.display())),
    })
}

/// Runs `throng state export`.
///
/// # Errors
/// See [`Failure`]. What was written by then is removed.
pub fn export(args: &ExportArgs) -> Result<(), Failure> {
    let (config, file) = args.named.load()?;
    let written: Vec<Used> = std::iter::once(Used::file("--output", &args.output))
        .chain(args.secret_to.iter().map(|path| Used::file("--secret-to", path)))
        .collect();
    refuse_overwriting(&written, &[Used::file("--config", &args.named.config)])?;
    let path = &config.state.path;
    directory::must_exist(path).map_err(named::failed)?;
    let own = match (secret(&config), &args.secret_to) {
        (None, None) => {
            return Err(Failure::Usage(anyhow!(
                "{file}: this state keeps its own secret, without which its archive cannot be read (name a file for it: --secret-to FILE)"
            )));
        }
        (Some(_), Some(_)) => {
            return Err(Failure::Usage(anyhow!(
                "--secret-to: {file} names the secret of this state, which the directory does not keep (leave --secret-to out)"
            )));
        }
        (None, Some(to)) => Some((to, directory::own_secret(path).map_err(named::failed)?)),
        (Some(_), None) => None,
    };
    let to = fresh("--output", &args.output)?;
    let mut made = vec![args.output.as_path()];
    let bar =
        bar_of("{spinner} {bytes} of about {total_bytes} written {bar:30} {elapsed}", bytes_below(&path.join("db")));
    let mut out = BufWriter::with_capacity(1 << 20, &to);
    let done = write_archive(path, secret(&config), &mut out, &args.output, |bytes| bar.inc(bytes))
        .map_err(failed)
        .and_then(|done| {
            out.flush().and_then(|()| to.sync_all()).with_context(|| unwritten(&args.output))?;
            if let Some((path, secret)) = &own {
                let mut kept = fresh("--secret-to", path)?;
                made.push(path);
                kept.write_all(secret).and_then(|()| kept.sync_all()).with_context(|| unwritten(path))?;
            }
            Ok(done)
        });
    bar.finish_and_clear();
    match done {
        Ok(done) => {
            eprintln!(
                "{}: {} values, {} (as sealed as the state; keep its secret apart)",
                args.output.display(),
                done.values,
                HumanBytes(done.bytes)
            );
            Ok(())
        }
        Err(failure) => {
            for path in made {
                if let Err(error) = std::fs::remove_file(path) {
                    eprintln!("warning: {}: {error} (remove it: it is not whole)", path.display());
                }
            }
            Err(failure)
        }
    }
}

fn unwritten(path: &Path) -> String {
    format!("{} cannot be written: name a file on a disk with room", path.display())
}

/// Runs `throng state import`.
///
/// # Errors
/// See [`Failure`].
pub fn import(args: &ImportArgs) -> Result<(), Failure> {
    let (config, file) = args.named.load()?;
    let given = match &args.secret_from {
        Some(path) => {
            let secret = Secret::read(path).map_err(|error| anyhow!("--secret-from {}: {error}", path.display()));
            Some(secret.map_err(Failure::Usage)?)
        }
        None => None,
    };
    let (secret, own) = match (secret(&config), &given) {
        (Some(secret), None) => (secret, false),
        (None, Some(given)) => (given.expose(), true),
        (Some(_), Some(_)) => {
            return Err(Failure::Usage(anyhow!(
                "--secret-from: {file} names a secret already (leave --secret-from out, or take state.secret_file and THRONG_SECRET away)"
            )));
        }
        (None, None) => {
            return Err(Failure::Usage(anyhow!(
                "{file} names no secret, and an archive holds none (set state.secret_file, or give the one that was exported beside it: --secret-from FILE)"
            )));
        }
    };
    let path = &config.state.path;
    let bar = bar_of("{spinner} {bytes} of {total_bytes} written {bar:30} {elapsed}", bytes_below(&args.archive));
    let done = read_archive(&args.archive, path, secret, own, |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let done = done.map_err(failed)?;
    eprintln!("{}: {} values of {}", path.display(), done.values, args.archive.display());
    eprintln!("the state that it was exported of must not run any more: this one goes on where it was then");
    Ok(())
}
