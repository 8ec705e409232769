//! Checks of the values of a well-formed configuration.

use super::anonymize::check_anonymize;
use super::join::check_joins;
use super::kafka_properties;
use super::paths::{clashes, is_dash, is_unset};
use super::policy_test::check_policy_tests;
use super::problem::{KeyProblem, ProblemCollector, is_name};
use super::security::check_security;
use super::series_validation::check_series;
use super::sink::has_group_placeholder;
use super::source::{has_compressed_extension, is_separator};
use super::{
    Config, GroupSelection, MOST_VALUES, RecodingMode, RecordFormat, RowContent, SinkKind, SourceKind, TreatmentMethod,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Text of a batch has 32-bit addresses; this leaves space for its last record.
const MAX_BATCH_BYTES: u64 = 2 << 30;
/// Returns all complaints about the values of `config`.
pub(super) fn collect_problems(config: &Config) -> Vec<KeyProblem> {
    let mut found = ProblemCollector::default();
    check_source(config, &mut found);
    check_registry(config, &mut found);
    let is_from_topics = config.source.kind == SourceKind::Kafka;
    check_joins(&config.join, config.treatment.may_be_untruthful(), is_from_topics, &mut found);
    check_sink(config, &mut found);
    let kafka = config.source.kind == SourceKind::Kafka || !config.erasure.is_enabled();
    let message = "erasure requests are read from a topic on the brokers of the source, but the source is a file";
    found.require(kafka, "erasure.topic", message, "use throng forget, or read records from a topic");
    let properties = [("source", &config.source.librdkafka), ("sink", &config.sink.librdkafka)];
    check_security(&config.source.security, config.uses_kafka(), properties, &mut found);
    check_compartments(config, &mut found);
    check_topics(config, &mut found);
    check_batch_limits(config, &mut found);
    check_privacy_and_plan(config, &mut found);
    check_groups(config, &mut found);
    check_range_group(config, &mut found);
    check_series(config, &mut found);
    check_shared(config, &mut found);
    check_keeps(config, &mut found);
    check_process_settings(config, &mut found);
    check_anonymize(config, &mut found);
    check_policy_tests(&config.test, &mut found);
    found.0
}

fn check_source(config: &Config, found: &mut ProblemCollector) {
    let source = &config.source;
    match source.kind {
        SourceKind::Kafka => {
            let remedy = "set it, or source.kind = \"file\"";
            found.require(!source.topics.is_empty(), "source.topics", "no topic is named", remedy);
            found.require(!source.brokers.trim().is_empty(), "source.brokers", "no broker is named", "give host:port");
            found.require(!source.group.trim().is_empty(), "source.group", "no consumer group is named", "give a name");
            let of_records = source.format().is_message_format();
            found.require(
                of_records,
                "source.format",
                "messages of a topic cannot be read in this format",
                "set \"json\", \"avro\" or \"protobuf\", or remove the key",
            );
        }
        SourceKind::File => {
            let remedy = "set it, or source.kind = \"kafka\"";
            found.require(!is_unset(&source.path), "source.path", "no file is named", remedy);
            let of_files = source.format().is_source_file_format();
            found.require(
                of_files,
                "source.format",
                "a file cannot be read in this format",
                "read a topic, or set another format",
            );
            let streamed = !is_dash(&source.path) || source.format() != RecordFormat::Parquet;
            let remedy = "set \"json\" or \"csv\", or name a file";
            found.require(streamed, "source.format", "parquet cannot be read from standard input", remedy);
        }
    }
    let remedy = "give one ASCII character like \",\" or \"\\t\"";
    let message = "this character cannot separate fields";
    found.require(is_separator(source.separator), "source.separator", message, remedy);
    found.require(source.max_record_bytes > 0, "source.max_record_bytes", "no record would fit", "give at least 1B");
    kafka_properties::check_source_properties(&config.source.librdkafka, found);
    let file = !is_unset(&config.schema.file);
    found.require(file, "schema.file", "no record schema is named", "set it, for example \"schemas/wearable.toml\"");
}

fn check_registry(config: &Config, found: &mut ProblemCollector) {
    let registry = &config.registry;
    if let Some(url) = &registry.url {
        let scheme = ["http://", "https://"].iter().any(|scheme| url.len() > scheme.len() && url.starts_with(scheme));
        let remedy = "give http://HOST:PORT or https://HOST:PORT, with the path of its API";
        found.require(scheme, "registry.url", "invalid registry URL", remedy);
        // The URL is part of messages and logs.
        let secret = url.contains('@');
        let remedy = "set registry.user and registry.password_file";
        found.require(!secret, "registry.url", "the URL must not contain a user and password", remedy);
    }
    let both = registry.user.is_some() == registry.password_file.is_some();
    found.require(both, "registry.user", "user and password must be set together", "set registry.password_file too");
}

fn check_compartments(config: &Config, found: &mut ProblemCollector) {
    let parts = config.treatment.rules().iter().any(|rule| rule.treat == TreatmentMethod::Compartment);
    found.require(
        !parts || config.group.is_empty(),
        if config.treatment.rule.iter().any(|rule| rule.treat == TreatmentMethod::Compartment) {
            "treatment.rule"
        } else {
            "treatment.preset"
        },
        "attributes are released in compartments, but the configuration defines [[group]]s",
        "remove the [[group]]s: they are chosen for compartments",
    );
    let divided = matches!(config.plan.groups, GroupSelection::Cliques | GroupSelection::Border);
    found.require(
        !(parts && divided),
        "plan.groups",
        "some attributes are released in compartments, but this setting divides all attributes differently",
        "set plan.groups = \"price\", or other treatments",
    );
}

fn check_sink(config: &Config, found: &mut ProblemCollector) {
    let sink = &config.sink;
    match sink.kind {
        SinkKind::Kafka => {
            found.require(
                config.source.kind == SourceKind::Kafka,
                "sink.kind",
                "records of a file cannot be released to a topic: no transaction covers both",
                "set \"file\" and produce from that file, or read from a topic",
            );
            let remedy = "set it, or sink.kind = \"none\" to measure only";
            found.require(!sink.topic.is_empty(), "sink.topic", "no topic is named", remedy);
            let brokers = config.source.kind == SourceKind::Kafka || !config.source.brokers.trim().is_empty();
            found.require(brokers, "source.brokers", "no broker is named", "give host:port");
            let of_records = sink.format().is_message_format();
            found.require(
                of_records,
                "sink.format",
                "messages of a topic cannot be written in this format",
                "set \"json\", \"avro\" or \"protobuf\", or remove the key",
            );
        }
        SinkKind::File => {
            let remedy = "set it, or sink.kind = \"none\" to measure only";
            found.require(!is_unset(&sink.path), "sink.path", "no file is named", remedy);
            let plain = !has_compressed_extension(&sink.path);
            let remedy = "name it without .gz or .zst, and compress the complete file";
            found.require(plain, "sink.path", "files cannot be written compressed", remedy);
            let dash = is_dash(&sink.path);
            let of_files = sink.format().is_file_format();
            found.require(
                of_files,
                "sink.format",
                "a file cannot be written in this format",
                "set another format, or write to a topic",
            );
            let streamed = !dash || sink.format() == RecordFormat::Json || !of_files;
            let remedy = "set \"json\", or name a file";
            found.require(streamed, "sink.format", "only json can be written to standard output", remedy);
            let remedy = "name a file: each group then writes a separate one";
            let alone = config.output_names().len() < 2;
            found.require(!dash || alone, "sink.path", "several groups need several files", remedy);
            found.require(
                config.source.kind == SourceKind::File,
                "sink.kind",
                "records of a topic cannot be released to files: no transaction covers both",
                "set \"kafka\" and export from that topic, or read from a file",
            );
            let lines = config.is_job() || sink.format() != RecordFormat::Parquet;
            let remedy = "set \"json\" or \"csv\", or read a file";
            found.require(lines, "sink.format", "records from standard input are written line by line", remedy);
            found.0.extend(clashes(config));
            let dead = sink.dead_letter_path.as_deref();
            let named = dead.is_none_or(|path| !is_unset(path));
            found.require(named, "sink.dead_letter_path", "no file is named", "name a file, or remove the key");
            let named = sink.audit_file.as_deref().is_none_or(|path| !is_unset(path) && !is_dash(path));
            found.require(named, "sink.audit_file", "no file is named", "name a file, or remove the key");
        }
        SinkKind::None => {}
    }
    let audited = sink.kind == SinkKind::Kafka || sink.audit().is_none();
    found.require(audited, "sink.audit_topic", "an audit topic requires a topic sink", "remove the key");
    let audited = sink.kind == SinkKind::File || sink.audit_file.is_none();
    found.require(audited, "sink.audit_file", "an audit file requires a file sink", "remove the key");
    let joined = sink.rows == RowContent::Joined;
    let placed = [("sink.path", has_group_placeholder(&sink.path)), ("sink.topic", sink.topic != sink.topic_of(""))];
    for (key, _) in placed.into_iter().filter(|(_, placed)| joined && *placed) {
        let message = "rows of all groups are joined, but {group} requires one output per group";
        found.require(false, key, message, "remove {group}, or set sink.rows = \"fragments\"");
    }
    kafka_properties::check_sink_properties(&sink.librdkafka, found);
}

fn check_topics(config: &Config, found: &mut ProblemCollector) {
    let of_groups: BTreeSet<String> = config.output_names().iter().map(|name| config.sink.topic_of(name)).collect();
    let contributions = config.contributions_topic();
    let mut named: Vec<(&str, &str)> = Vec::new();
    if config.source.kind == SourceKind::Kafka {
        named.extend(config.source.topics.iter().map(|topic| ("source.topics", topic.as_str())));
    }
    named.extend(config.join.iter().filter_map(|join| Some(("join.topic", join.topic.as_deref()?))));
    if config.erasure.is_enabled() {
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
        found.require(legal, key, "invalid name of a Kafka topic", remedy);
        match taken.insert(topic, key) {
            Some(other) if legal => {
                let message = format!("this topic is also named by {other}");
                found.require(false, key, &message, "give each its own topic: released lines are not records");
            }
            _ => {}
        }
    }
}

fn check_batch_limits(config: &Config, found: &mut ProblemCollector) {
    let batch = &config.batch;
    found.require(batch.max_records > 0, "batch.max_records", "a batch would be empty", "give at least 1");
    let fits = batch.max_bytes >= config.source.max_record_bytes;
    let remedy = "give at least source.max_record_bytes";
    found.require(fits, "batch.max_bytes", "the largest record would not fit into a batch", remedy);
    found.require(batch.max_bytes <= MAX_BATCH_BYTES, "batch.max_bytes", "the batch is too large", "give at most 2GiB");
    found.require(batch.max_wait > Duration::ZERO, "batch.max_wait", "the wait must not be zero", "give at least 1ms");
    let remedy = "give at least batch.max_wait";
    found.require(batch.max_age >= batch.max_wait, "batch.max_age", "a batch would expire before it closes", remedy);
    let remedy = "give at least privacy.k + privacy.colluders";
    let room = batch.max_records == 0 || batch.max_records >= config.privacy.required_subjects();
    found.require(room, "batch.max_records", "no batch could hold enough subjects", remedy);
}

fn check_privacy_and_plan(config: &Config, found: &mut ProblemCollector) {
    let (privacy, plan) = (&config.privacy, &config.plan);
    // A ceiling counts lines instead of subjects.
    let least = if config.anonymize.ceiling.is_enabled() { 1 } else { 2 };
    found.require(privacy.k >= least, "privacy.k", "a class has at least two people", "give 2 or more; 5 is usual");
    let window = privacy.release_window > Duration::ZERO;
    let remedy = "give at least 1s; 24h is usual";
    found.require(window, "privacy.release_window", "no subject would be remembered between batches", remedy);
    let window = privacy.static_window > Duration::ZERO;
    let remedy =
        "give at least 1s; 30days is usual (privacy.max_delay = \"0s\" releases static groups with every record)";
    found.require(window, "privacy.static_window", "the window must not be zero", remedy);
    let delay = privacy.longest_delay() <= privacy.static_window;
    let remedy = "give at most privacy.static_window, which is the longest useful delay";
    found.require(delay, "privacy.max_delay", "a line would wait longer than its window", remedy);
    let price = plan.price > 0.0 && plan.price.is_finite();
    found.require(price, "plan.price", "the price is out of range", "give above 0, such as 0.1");
    let grown = plan.groups != GroupSelection::Given;
    let remedy = "remove the [[group]]s, or set plan.groups = \"given\"";
    // Groups of the planner replace the configured ones.
    found.require(
        !grown || config.group.is_empty(),
        "plan.groups",
        "the planner chooses the groups, but the configuration defines [[group]]s",
        remedy,
    );
    found.require(plan.window_records > 0, "plan.window_records", "no records to plan from", "give at least 1");
    found.require(plan.interval > Duration::ZERO, "plan.interval", "planning would never pause", "give at least 1s");
    // Each of these records may have a new value; bytes bound a batch of whole files.
    let window = config.batch.is_whole
        || config.max_remembered_records().saturating_add(config.max_waiting_lines()) <= MOST_VALUES;
    let remedy = format!("lower it, batch.max_records or privacy.max_hold_batches: {MOST_VALUES} records in all");
    found.require(
        window,
        "plan.window_records",
        "dictionaries cannot hold the window, the batches and the waiting records",
        &remedy,
    );
    let prime = plan.prime.as_deref().is_none_or(|path| !is_unset(path));
    found.require(prime, "plan.prime", "no file is named", "name a file, or remove the key");
    let dash = plan.prime.as_deref().is_some_and(is_dash);
    found.require(!dash, "plan.prime", "only the source can read standard input", "name a file, or remove the key");
}

fn check_keeps(config: &Config, found: &mut ProblemCollector) {
    let chosen = config.plan.groups != GroupSelection::Given;
    let remedy = "set plan.groups = \"price\", or put the attributes into one [[group]]";
    let message = "a [[keep]] requires groups chosen by the planner, but they are given";
    found.require(chosen || config.keep.is_empty(), "keep", message, remedy);
    for (index, keep) in config.keep.iter().enumerate() {
        let weight = keep.weight > 0.0 && keep.weight.is_finite();
        found.require(
            weight,
            &format!("keep[{index}].weight"),
            "the weight is out of range",
            "give above 0, such as 1",
        );
        let distinct: BTreeSet<&String> = keep.attributes.iter().collect();
        let several = distinct.len() > 1 && distinct.len() == keep.attributes.len();
        let message = "a [[keep]] requires two or more different attributes";
        found.require(several, &format!("keep[{index}].attributes"), message, "name attributes needed together");
    }
}

fn check_groups(config: &Config, found: &mut ProblemCollector) {
    let mut names = BTreeSet::new();
    let mut owner: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, group) in config.group.iter().enumerate() {
        let key = format!("group[{index}].name");
        found.require(is_name(&group.name), &key, "invalid group name", "use a-z, 0-9, '_' and '-', at most 64");
        found.require(names.insert(&group.name), &key, "duplicate group name", "give each group its own name");
        let key = format!("group[{index}].attributes");
        found.require(!group.attributes.is_empty(), &key, "the group is empty", "name attributes, or remove the group");
        for attribute in &group.attributes {
            let is_shared = config.plan.shared.contains(attribute);
            if let Some(other) = owner.insert(attribute, index).filter(|other| *other == index || !is_shared) {
                let message = format!("attribute `{attribute}` is in group[{other}] already");
                found.require(false, &key, &message, "groups are disjoint: keep it in one");
            }
        }
    }
}

/// Ranges of several groups could be joined by counting; withholding is not proved safe; treatment rules need levels.
fn check_range_group(config: &Config, found: &mut ProblemCollector) {
    let Some(index) = config.group.iter().position(|group| group.treatment == RecodingMode::Ranges) else { return };
    let key = format!("group[{index}].treatment");
    let message = "ranges are supported for a single group only: those of several groups could be joined by counting";
    let remedy = "put all attributes into this group, give the others the role `identifier`, or set \"levels\"";
    found.require(config.group.len() == 1, &key, message, remedy);
    let message = "waiting records would be cut into new ranges with each batch";
    found.require(
        config.privacy.max_hold_batches == 0,
        &key,
        message,
        "set privacy.max_hold_batches = 0, or \"levels\"",
    );
    let message = "treatment rules choose levels, but ranges have none";
    let plain = config.treatment.rules().iter().all(|rule| rule.treat == TreatmentMethod::Generalize);
    found.require(
        plain,
        &key,
        message,
        "remove the rules and set treatment.preset = \"k-anonymous\", or set \"levels\"",
    );
}

fn check_process_settings(config: &Config, found: &mut ProblemCollector) {
    let state = &config.state;
    let named = !is_unset(&state.path) || config.source.kind == SourceKind::File;
    found.require(named, "state.path", "no state directory is named", "set it, for example \"state/\"");
    let entries = state.max_budget_entries > 0;
    found.require(entries, "state.max_budget_entries", "no subject could be remembered", "give at least 1");
    let remedy = "give IP:PORT, for example \"127.0.0.1:9464\" or \"[::]:9464\"";
    let is_silent = config.telemetry.listen.is_empty() && config.source.kind == SourceKind::File;
    found.require(
        is_silent || config.telemetry.address().is_some(),
        "telemetry.listen",
        "invalid address or port",
        remedy,
    );
    for name in &config.telemetry.allowed_hosts {
        let legal = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        let remedy = "give names without scheme, port or *, for example \"throng\"";
        found.require(legal, "telemetry.allowed_hosts", "invalid host name", remedy);
    }
    let tls = &config.telemetry.tls;
    let both = tls.cert_file.is_some() == tls.key_file.is_some();
    found.require(both, "telemetry.tls", "a certificate and its key must be set together", "name both files, or none");
}

const SHARED: &str = "plan.shared";
/// Each one divides the batch further.
const MOST_SHARED: usize = 2;

/// Only proved combinations are accepted (decision 0044).
fn check_shared(config: &Config, found: &mut ProblemCollector) {
    let shared = &config.plan.shared;
    if shared.is_empty() {
        return;
    }
    let distinct: BTreeSet<&String> = shared.iter().collect();
    found.require(distinct.len() == shared.len(), SHARED, "an attribute is named twice", "name each once");
    found.require(
        shared.len() <= MOST_SHARED,
        SHARED,
        "too many shared attributes",
        &format!("name at most {MOST_SHARED} attributes"),
    );
    let chosen = matches!(config.plan.groups, GroupSelection::Given | GroupSelection::Price);
    let remedy = "set plan.groups = \"price\", or \"given\" with [[group]]s";
    found.require(chosen, SHARED, "groups by quasi-identifiers separate the attributes that this would join", remedy);
    let untold = |treat: TreatmentMethod| treat.is_untruthful() || treat == TreatmentMethod::Compartment;
    let alters = config.treatment.rules().iter().any(|rule| untold(rule.treat));
    let message = "treatments that alter numbers or form compartments do not support shared attributes";
    let remedy = "set treatment.preset = \"k-anonymous\" and rules that generalize or suppress, or remove plan.shared";
    found.require(!alters, SHARED, message, remedy);
    for (index, keep) in config.keep.iter().enumerate() {
        let apart = !keep.attributes.iter().any(|attribute| shared.contains(attribute));
        let message = "a shared attribute is already in every group that changes";
        found.require(apart, &format!("keep[{index}].attributes"), message, "remove it from the [[keep]]");
    }
    for (index, rule) in config.treatment.rule.iter().enumerate() {
        let plain =
            rule.treat == TreatmentMethod::Generalize || !rule.attributes.iter().any(|name| shared.contains(name));
        let message = "a shared attribute is released at one level and can only be generalized";
        found.require(plain, &format!("treatment.rule[{index}].attributes"), message, "remove it from the rule");
    }
    if config.plan.groups == GroupSelection::Given {
        check_sharing_groups(config, found);
    }
}

fn check_sharing_groups(config: &Config, found: &mut ProblemCollector) {
    let shared = &config.plan.shared;
    let of = |at: usize| shared.iter().filter(|name| config.group[at].attributes.contains(name)).count();
    let remedy = "name all of plan.shared in two or more [[group]]s, or set plan.groups = \"price\"";
    let sharing: Vec<usize> = (0..config.group.len()).filter(|&at| of(at) > 0).collect();
    found.require(sharing.len() >= 2, "plan.shared", "shared attributes must be in two or more groups", remedy);
    for &at in &sharing {
        let key = format!("group[{at}].attributes");
        found.require(of(at) == shared.len(), &key, "the group has only some of the shared attributes", remedy);
    }
}
