//! What `[certificates]` goes with.

use super::complaint::Complaints;
use super::paths::{empty, is_dash};
use super::{Config, Format, SinkKind};

/// Complaints about certificates that are to be written.
pub(super) fn certificates(config: &Config, found: &mut Complaints) {
    let (certificates, sink) = (&config.certificates, &config.sink);
    let Some(key_file) = &certificates.key_file else { return };
    found.unless(!empty(key_file), "certificates.key_file", "no file is named", "name the key's, or remove the key");
    match sink.kind {
        SinkKind::Kafka => {}
        SinkKind::File => {
            let path = certificates.path.as_deref();
            let named = path.is_some_and(|path| !empty(path) && !is_dash(path));
            found.unless(named, "certificates.path", "certificates of files are written to a file", "name one");
            let message = "standard output takes lines at least once, and a certificate would say that they left once";
            let remedy = "name a file in sink.path, or remove the key";
            found.unless(!is_dash(&sink.path), "certificates.key_file", message, remedy);
            let message = "a certificate has the digest of lines, and segments of parquet have none";
            let remedy = "set sink.format = \"json\" or \"csv\", or remove the key";
            found.unless(sink.format() != Format::Parquet, "certificates.key_file", message, remedy);
        }
        SinkKind::None => {
            let message = "nothing leaves (sink.kind = \"none\"), and there is nothing to certify";
            found.unless(false, "certificates.key_file", message, "remove the key, or set another sink");
        }
    }
}
