//! `throng state rekey`.

use super::named::{Named, bytes_of, failed, secret};
use crate::cli::outcome::Failure;
use crate::cli::progress::bar_of;
use crate::config::Secret;
use crate::daemon::state::seal::Keys;
use crate::daemon::state::store::Store;
use anyhow::anyhow;
use std::path::PathBuf;

/// Exchange the secret of a state for another
///
/// All of the state is sealed anew under the new secret, and the old database is removed. Who has been seen stays known: the keys of
/// digests are kept, sealed under the new secret, since nobody can compute the digest of a person again who does not come again. A
/// process that is killed meanwhile leaves a state of one of the two secrets; run it again where that is the old one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Then put the new secret where the configuration names the old one, and start.")]
pub struct RekeyArgs {
    #[command(flatten)]
    named: Named,
    /// The new secret: at least 16 bytes, drawn at random (a last newline is not part of it)
    #[arg(long, value_name = "FILE")]
    new_secret_file: PathBuf,
}

/// Runs `throng state rekey`.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: &RekeyArgs) -> Result<(), Failure> {
    let (config, _) = args.named.load()?;
    let path = &config.state.path;
    let file = args.new_secret_file.display();
    let new = Secret::read(&args.new_secret_file)
        .map_err(|error| Failure::Usage(anyhow!("--new-secret-file {file}: {error}")))?;
    let to = Keys::derive(new.expose());
    let (store, keys) = Store::existing(path, secret(&config)).map_err(failed)?;
    if keys.check == to.check {
        return Err(Failure::Usage(anyhow!(
            "--new-secret-file {file}: this is the secret of the state already (draw another one)"
        )));
    }
    let bar = bar_of("{spinner} {bytes} of about {total_bytes} sealed {bar:30} {elapsed}", bytes_of(path));
    let values = store.rekey(&keys, &to, |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let values = values.map_err(failed)?;
    eprintln!("{}: {values} values sealed anew", path.display());
    eprintln!(
        "put the content of {file} where the configuration names its secret (state.secret_file, THRONG_SECRET) before the next start"
    );
    Ok(())
}
