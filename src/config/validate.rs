//! What a well-formed configuration must also fulfil, every complaint at once.

use super::anonymize::anonymize;
use super::join::joins;
use super::paths::{clashes, empty, is_dash};
use super::problem::{Complaint, Complaints, is_name};
use super::properties;
use super::security::security;
use super::series_rules::series;
use super::sink::has_place;
use super::source::{is_named_compressed, is_separator};
use super::test::tests;
use super::{Config, Format, Grouping, MOST_VALUES, Recoding, Rows, SinkKind, SourceKind, Treat};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Text of a batch is addressed by 32 bits; this leaves room for its last record.
const MOST_BATCH_BYTES: u64 = 2 << 30;
/// Everything that is wrong with the values of `config`; empty when it can be run.
pub(super) fn complaints(config: &Config) -> Vec<Complaint> {
    let mut found = Complaints::default();
    source(config, &mut found);
    registry(config, &mut found);
    let is_from_topics = config.source.kind == SourceKind::Kafka;
    joins(&config.join, config.treatment.may_be_untruthful(), is_from_topics, &mut found);
    sink(config, &mut found);
    let kafka = config.source.kind == SourceKind::Kafka || !config.erasure.is_on();
    let message = "people are named in a topic on the brokers of the source, and records come from a file";
    found.unless(kafka, "erasure.topic", message, "use throng forget, or read records from a topic");
    let properties = [("source", &config.source.librdkafka), ("sink", &config.sink.librdkafka)];
    security(&config.source.security, config.uses_kafka(), properties, &mut found);
    rules(config, &mut found);
    topics(config, &mut found);
    batch(config, &mut found);
    privacy_and_plan(config, &mut found);
    groups(config, &mut found);
    ranges(config, &mut found);
    series(config, &mut found);
    shared(config, &mut found);
    wishes(config, &mut found);
    surroundings(config, &mut found);
    anonymize(config, &mut found);
    tests(&config.test, &mut found);
    found.0
}

fn source(config: &Config, found: &mut Complaints) {
    let source = &config.source;
    match source.kind {
        SourceKind::Kafka => {
            let remedy = "set it, or source.kind = \"file\"";
            found.unless(!source.topics.is_empty(), "source.topics", "no topic is named", remedy);
            found.unless(!source.brokers.trim().is_empty(), "source.brokers", "no broker is named", "give host:port");
            found.unless(!source.group.trim().is_empty(), "source.group", "no consumer group is named", "give a name");
            let of_records = source.format().is_of_records();
            found.unless(
                of_records,
                "source.format",
                "messages of a topic are not read in this format",
                "set \"json\", \"avro\" or \"protobuf\", or remove the key",
            );
        }
        SourceKind::File => {
            let remedy = "set it, or source.kind = \"kafka\"";
            found.unless(!empty(&source.path), "source.path", "no file is named", remedy);
            let of_files = source.format().is_of_files();
            found.unless(
                of_files,
                "source.format",
                "a file is not read in this format",
                "read a topic, or set another",
            );
            let streamed = !is_dash(&source.path) || source.format() != Format::Parquet;
            let remedy = "set \"json\" or \"csv\", or name a file";
            found.unless(streamed, "source.format", "parquet is not read from standard input", remedy);
        }
    }
    let remedy = "give one ASCII character like \",\" or \"\\t\"";
    let message = "this character cannot separate fields";
    found.unless(is_separator(source.separator), "source.separator", message, remedy);
    found.unless(source.max_record_bytes > 0, "source.max_record_bytes", "no record would fit", "give at least 1B");
    properties::source(&config.source.librdkafka, found);
    let file = !empty(&config.schema.file);
    found.unless(file, "schema.file", "no record schema is named", "set it, for example \"schemas/wearable.toml\"");
}

fn registry(config: &Config, found: &mut Complaints) {
    let registry = &config.registry;
    if let Some(url) = &registry.url {
        let scheme = ["http://", "https://"].iter().any(|scheme| url.len() > scheme.len() && url.starts_with(scheme));
        let remedy = "give http://HOST:PORT or https://HOST:PORT, with the path of its interface";
        found.unless(scheme, "registry.url", "this is no address of a registry", remedy);
        // It is part of messages and logs.
        let secret = url.contains('@');
        let remedy = "set registry.user and registry.password_file";
        found.unless(!secret, "registry.url", "user and password do not stand in an address", remedy);
    }
    let both = registry.user.is_some() == registry.password_file.is_some();
    found.unless(both, "registry.user", "a user and a password belong together", "set registry.password_file too");
}

fn rules(config: &Config, found: &mut Complaints) {
    let parts = config.treatment.rules().iter().any(|rule| rule.treat == Treat::Compartment);
    found.unless(
        !parts || config.group.is_empty(),
        if config.treatment.rule.iter().any(|rule| rule.treat == Treat::Compartment) {
            "treatment.rule"
        } else {
            "treatment.preset"
        },
        "attributes are to leave in compartments, and the configuration gives [[group]]s",
        "remove the [[group]]s: what leaves together is chosen then",
    );
    let divided = matches!(config.plan.groups, Grouping::Cliques | Grouping::Border);
    found.unless(
        !(parts && divided),
        "plan.groups",
        "some attributes are to leave in compartments, and these groups divide all of them another way",
        "set plan.groups = \"price\", or other treatments",
    );
}

fn sink(config: &Config, found: &mut Complaints) {
    let sink = &config.sink;
    match sink.kind {
        SinkKind::Kafka => {
            found.unless(
                config.source.kind == SourceKind::Kafka,
                "sink.kind",
                "a file is not written into a topic: the two have no commit in common",
                "set \"file\" and produce from that file, or read from a topic",
            );
            let remedy = "set it, or sink.kind = \"none\" to measure only";
            found.unless(!sink.topic.is_empty(), "sink.topic", "no topic is named", remedy);
            let brokers = config.source.kind == SourceKind::Kafka || !config.source.brokers.trim().is_empty();
            found.unless(brokers, "source.brokers", "no broker is named", "give host:port");
            let of_records = sink.format().is_of_records();
            found.unless(
                of_records,
                "sink.format",
                "messages of a topic are not written in this format",
                "set \"json\", \"avro\" or \"protobuf\", or remove the key",
            );
        }
        SinkKind::File => {
            let remedy = "set it, or sink.kind = \"none\" to measure only";
            found.unless(!empty(&sink.path), "sink.path", "no file is named", remedy);
            let plain = !is_named_compressed(&sink.path);
            let remedy = "name it without .gz or .zst, and compress what is complete";
            found.unless(plain, "sink.path", "files are not written compressed", remedy);
            let dash = is_dash(&sink.path);
            let of_files = sink.format().is_of_files();
            found.unless(
                of_files,
                "sink.format",
                "a file is not written in this format",
                "set another, or write a topic",
            );
            let streamed = !dash || sink.format() == Format::Json || !of_files;
            let remedy = "set \"json\", or name a file";
            found.unless(streamed, "sink.format", "only json is written to standard output", remedy);
            let remedy = "name a file: each group then writes one of its own";
            let alone = config.output_names().len() < 2;
            found.unless(!dash || alone, "sink.path", "several groups need several files", remedy);
            found.unless(
                config.source.kind == SourceKind::File,
                "sink.kind",
                "a topic is not written into files: the two have no commit in common",
                "set \"kafka\" and export from that topic, or read from a file",
            );
            let lines = config.is_job() || sink.format() != Format::Parquet;
            let remedy = "set \"json\" or \"csv\", or read a file";
            found.unless(lines, "sink.format", "what comes through standard input leaves line by line", remedy);
            found.0.extend(clashes(config));
            let dead = sink.dead_letter_path.as_deref();
            let named = dead.is_none_or(|path| !empty(path));
            found.unless(named, "sink.dead_letter_path", "no file is named", "name a file, or remove the key");
            let named = sink.audit_file.as_deref().is_none_or(|path| !empty(path) && !is_dash(path));
            found.unless(named, "sink.audit_file", "no file is named", "name a file, or remove the key");
        }
        SinkKind::None => {}
    }
    let audited = sink.kind == SinkKind::Kafka || sink.audit().is_none();
    found.unless(audited, "sink.audit_topic", "audit records are written to a topic beside a topic", "remove the key");
    let audited = sink.kind == SinkKind::File || sink.audit_file.is_none();
    found.unless(audited, "sink.audit_file", "audit records are written to a file beside files", "remove the key");
    let joined = sink.rows == Rows::Joined;
    let placed = [("sink.path", has_place(&sink.path)), ("sink.topic", sink.topic != sink.topic_of(""))];
    for (key, _) in placed.into_iter().filter(|(_, placed)| joined && *placed) {
        let message = "rows of all groups are joined, and {group} asks for an output a group";
        found.unless(false, key, message, "take {group} out, or set sink.rows = \"fragments\"");
    }
    properties::sink(&sink.librdkafka, found);
}

fn topics(config: &Config, found: &mut Complaints) {
    let of_groups: BTreeSet<String> = config.output_names().iter().map(|name| config.sink.topic_of(name)).collect();
    let contributions = config.contributions_topic();
    let mut named: Vec<(&str, &str)> = Vec::new();
    if config.source.kind == SourceKind::Kafka {
        named.extend(config.source.topics.iter().map(|topic| ("source.topics", topic.as_str())));
    }
    named.extend(config.join.iter().filter_map(|join| Some(("join.topic", join.topic.as_deref()?))));
    if config.erasure.is_on() {
        named.push(("erasure.topic", &config.erasure.topic));
    }
    if config.sink.kind == SinkKind::Kafka {
        let sink = &config.sink;
        named.extend(of_groups.iter().map(|topic| ("sink.topic", topic.as_str())));
        named.push(("sink.dead_letter_topic", &sink.dead_letter_topic));
        named.push(("sink.changelog_topic", &sink.changelog_topic));
        named.extend(contributions.as_deref().map(|topic| ("sink.changelog_topic", topic)));
        named.extend(sink.audit().map(|topic| ("sink.audit_topic", topic)));
    }
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, topic) in named {
        if topic.is_empty() && key == "sink.topic" {
            continue; // said already
        }
        let legal = (1..250).contains(&topic.len())
            && !matches!(topic, "." | "..")
            && topic.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        let remedy = "use letters, digits, '.', '_' and '-', at most 249";
        found.unless(legal, key, "this is no name of a Kafka topic", remedy);
        match taken.insert(topic, key) {
            Some(other) if legal => {
                let message = format!("this topic is named by {other} too");
                found.unless(false, key, &message, "give each its own topic: a release read again is no source");
            }
            _ => {}
        }
    }
}

fn batch(config: &Config, found: &mut Complaints) {
    let batch = &config.batch;
    found.unless(batch.max_records > 0, "batch.max_records", "a batch would hold nothing", "give at least 1");
    let fits = batch.max_bytes >= config.source.max_record_bytes;
    let remedy = "give at least source.max_record_bytes";
    found.unless(fits, "batch.max_bytes", "the largest record would not fit into a batch", remedy);
    found.unless(batch.max_bytes <= MOST_BATCH_BYTES, "batch.max_bytes", "the batch is too large", "give at most 2GiB");
    found.unless(batch.max_wait > Duration::ZERO, "batch.max_wait", "the timer needs a time", "give at least 1ms");
    let remedy = "give at least batch.max_wait";
    found.unless(batch.max_age >= batch.max_wait, "batch.max_age", "a batch would be settled before it closes", remedy);
    let remedy = "give at least privacy.k and privacy.colluders together";
    let room = batch.max_records == 0 || batch.max_records >= config.privacy.crowd();
    found.unless(room, "batch.max_records", "no batch could hold enough subjects", remedy);
}

fn privacy_and_plan(config: &Config, found: &mut Complaints) {
    let (privacy, plan) = (&config.privacy, &config.plan);
    // With a ceiling that promises lines and no people, k may say so.
    let least = if config.anonymize.ceiling.is_on() { 1 } else { 2 };
    found.unless(privacy.k >= least, "privacy.k", "a crowd has at least two members", "give 2 or more; 5 is usual");
    let window = privacy.release_window > Duration::ZERO;
    let remedy = "give at least 1s; 24h is usual";
    found.unless(window, "privacy.release_window", "nobody would be remembered from one batch to the next", remedy);
    let window = privacy.static_window > Duration::ZERO;
    let remedy =
        "give at least 1s; 30days is usual (privacy.max_delay = \"0s\" releases static groups with every record)";
    found.unless(window, "privacy.static_window", "a window needs a length", remedy);
    let delay = privacy.longest_delay() <= privacy.static_window;
    let remedy = "give at most privacy.static_window, which hides all that a delay can hide";
    found.unless(delay, "privacy.max_delay", "a line would wait for longer than it stands for", remedy);
    let price = plan.price > 0.0 && plan.price.is_finite();
    found.unless(price, "plan.price", "the price is out of range", "give above 0, such as 0.1");
    let grown = plan.groups != Grouping::Given;
    let remedy = "remove the [[group]]s, or set plan.groups = \"given\"";
    // Groups that were grown are put in the place of the configured ones, and checked as those are.
    found.unless(
        !grown || config.group.is_empty(),
        "plan.groups",
        "the planner chooses the groups, and the configuration gives some",
        remedy,
    );
    found.unless(plan.window_records > 0, "plan.window_records", "nothing would be learned", "give at least 1");
    found.unless(plan.interval > Duration::ZERO, "plan.interval", "the planner would never rest", "give at least 1s");
    // Each of these records may bring a value that no other has. A batch of whole files is bounded by its bytes.
    let window =
        config.batch.is_whole || config.rows_remembered().saturating_add(config.max_waiting_lines()) <= MOST_VALUES;
    let remedy = format!("lower it, batch.max_records or privacy.max_hold_batches: {MOST_VALUES} records in all");
    found.unless(
        window,
        "plan.window_records",
        "dictionaries cannot hold the window, the batches and what waits",
        &remedy,
    );
    let prime = plan.prime.as_deref().is_none_or(|path| !empty(path));
    found.unless(prime, "plan.prime", "no file is named", "name one, or remove the key");
    let dash = plan.prime.as_deref().is_some_and(is_dash);
    found.unless(!dash, "plan.prime", "standard input is read by the source alone", "name a file, or remove the key");
}

fn wishes(config: &Config, found: &mut Complaints) {
    let chosen = config.plan.groups != Grouping::Given;
    let remedy = "set plan.groups = \"price\", or put the attributes into one [[group]]";
    let message = "a wish is for a planner that chooses the groups, and they are given";
    found.unless(chosen || config.keep.is_empty(), "keep", message, remedy);
    for (index, keep) in config.keep.iter().enumerate() {
        let weight = keep.weight > 0.0 && keep.weight.is_finite();
        found.unless(weight, &format!("keep[{index}].weight"), "the weight is out of range", "give above 0, such as 1");
        let distinct: BTreeSet<&String> = keep.attributes.iter().collect();
        let several = distinct.len() > 1 && distinct.len() == keep.attributes.len();
        let message = "a wish names two attributes or more, each once";
        found.unless(several, &format!("keep[{index}].attributes"), message, "name what is needed together");
    }
}

fn groups(config: &Config, found: &mut Complaints) {
    let mut names = BTreeSet::new();
    let mut owner: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, group) in config.group.iter().enumerate() {
        let key = format!("group[{index}].name");
        found.unless(is_name(&group.name), &key, "this is no name of a group", "use a-z, 0-9, '_' and '-', at most 64");
        found.unless(names.insert(&group.name), &key, "two groups have this name", "name each once");
        let key = format!("group[{index}].attributes");
        found.unless(!group.attributes.is_empty(), &key, "the group is empty", "name attributes, or remove the group");
        for attribute in &group.attributes {
            let is_shared = config.plan.shared.contains(attribute);
            if let Some(other) = owner.insert(attribute, index).filter(|other| *other == index || !is_shared) {
                let message = format!("attribute `{attribute}` is in group[{other}] already");
                found.unless(false, &key, &message, "groups are disjoint: keep it in one");
            }
        }
    }
}

/// Complaints about a group whose classes show ranges. Counting over ranges of several groups, and records that wait for a better
/// class, are not proved safe; treatments by rules say which levels an attribute may have, and ranges have none.
fn ranges(config: &Config, found: &mut Complaints) {
    let Some(index) = config.group.iter().position(|group| group.treatment == Recoding::Ranges) else { return };
    let key = format!("group[{index}].treatment");
    let message = "ranges of several groups could be joined by counting: they are for one group alone";
    let remedy = "put all attributes into this group, give the others the role `identifier`, or set \"levels\"";
    found.unless(config.group.len() == 1, &key, message, remedy);
    let message = "records that wait would be cut anew with each batch";
    found.unless(
        config.privacy.max_hold_batches == 0,
        &key,
        message,
        "set privacy.max_hold_batches = 0, or \"levels\"",
    );
    let message = "treatments by rules choose levels, and ranges have none";
    let plain = config.treatment.rules().iter().all(|rule| rule.treat == Treat::Generalize);
    found.unless(
        plain,
        &key,
        message,
        "remove the rules and set treatment.preset = \"k-anonymous\", or set \"levels\"",
    );
}

fn surroundings(config: &Config, found: &mut Complaints) {
    let state = &config.state;
    let named = !empty(&state.path) || config.source.kind == SourceKind::File;
    found.unless(named, "state.path", "no state directory is named", "set it, for example \"state/\"");
    let entries = state.max_budget_entries > 0;
    found.unless(entries, "state.max_budget_entries", "nobody could be remembered", "give at least 1");
    let remedy = "give IP:PORT, for example \"127.0.0.1:9464\" or \"[::]:9464\"";
    let is_silent = config.telemetry.listen.is_empty() && config.source.kind == SourceKind::File;
    found.unless(
        is_silent || config.telemetry.address().is_some(),
        "telemetry.listen",
        "this is no address and port",
        remedy,
    );
    for name in &config.telemetry.allowed_hosts {
        let legal = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        let remedy = "give names without scheme, port or *, for example \"throng\"";
        found.unless(legal, "telemetry.allowed_hosts", "this is no name of a host", remedy);
    }
    let tls = &config.telemetry.tls;
    let both = tls.cert_file.is_some() == tls.key_file.is_some();
    found.unless(both, "telemetry.tls", "a certificate and its key belong together", "name both files, or none");
}

const SHARED: &str = "plan.shared";
/// Attributes that may be shared: each divides the batch once more.
const MOST_SHARED: usize = 2;

/// Complaints about the attributes that stand in several groups: `plan.shared` goes with few things, so that what holds of it is proved
/// (docs/decisions/0044).
fn shared(config: &Config, found: &mut Complaints) {
    let shared = &config.plan.shared;
    if shared.is_empty() {
        return;
    }
    let distinct: BTreeSet<&String> = shared.iter().collect();
    found.unless(distinct.len() == shared.len(), SHARED, "an attribute is named twice", "name each once");
    found.unless(
        shared.len() <= MOST_SHARED,
        SHARED,
        "these are too many",
        &format!("name at most {MOST_SHARED} attributes"),
    );
    let chosen = matches!(config.plan.groups, Grouping::Given | Grouping::Price);
    let remedy = "set plan.groups = \"price\", or \"given\" with [[group]]s";
    found.unless(chosen, SHARED, "groups by quasi-identifiers keep apart what this would join", remedy);
    let untold = |treat: Treat| treat.is_untruthful() || treat == Treat::Compartment;
    let alters = config.treatment.rules().iter().any(|rule| untold(rule.treat));
    let message = "treatments that alter numbers, or that make compartments, do not know of shared attributes";
    let remedy = "set treatment.preset = \"k-anonymous\" and rules that generalize or suppress, or remove plan.shared";
    found.unless(!alters, SHARED, message, remedy);
    for (index, keep) in config.keep.iter().enumerate() {
        let apart = !keep.attributes.iter().any(|attribute| shared.contains(attribute));
        let message = "a shared attribute stands beside every changing one already";
        found.unless(apart, &format!("keep[{index}].attributes"), message, "take it out of the wish");
    }
    for (index, rule) in config.treatment.rule.iter().enumerate() {
        let plain = rule.treat == Treat::Generalize || !rule.attributes.iter().any(|name| shared.contains(name));
        let message = "a shared attribute is shown at one level: it is generalized, and nothing else";
        found.unless(plain, &format!("treatment.rule[{index}].attributes"), message, "take it out of the rule");
    }
    if config.plan.groups == Grouping::Given {
        sharing_groups(config, found);
    }
}

fn sharing_groups(config: &Config, found: &mut Complaints) {
    let shared = &config.plan.shared;
    let of = |at: usize| shared.iter().filter(|name| config.group[at].attributes.contains(name)).count();
    let remedy = "name all of plan.shared in each [[group]] in which they shall stand, two or more, or set plan.groups = \"price\"";
    let sharing: Vec<usize> = (0..config.group.len()).filter(|&at| of(at) > 0).collect();
    found.unless(sharing.len() >= 2, "plan.shared", "what is shared stands in two groups or more", remedy);
    for &at in &sharing {
        let key = format!("group[{at}].attributes");
        found.unless(of(at) == shared.len(), &key, "the group has some of the shared attributes and not all", remedy);
    }
}
