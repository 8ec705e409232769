//! `throng check --explain`: sentences for data owners.

use super::endpoint_phrases::{sink_phrase, source_phrase, writes_standard_output};
use super::explain_series::{explain_series_only, series_sections};
use super::treatment_report;
use crate::cli::text_format::wrap_text;
use crate::config::{Config, RowContent};
use crate::start::checked_config::CheckedConfig;
use humantime::format_duration;
use throng_core::plan::plan_shared_attributes::find_shared_attributes;
use throng_core::privacy::protection::ValueRequirement;
use throng_core::values::schema::{Attribute, AttributeTreatment, Role};

/// Treatment, guarantees, attackers and limits.
pub(super) fn explain_configuration(checked: &CheckedConfig) -> String {
    let sections = match &checked.series {
        Some(terms) if !checked.config.release.fragments => explain_series_only(checked, terms),
        series => {
            let mut sections = vec![
                ("Source and destination", describe_record_flow(checked)),
                ("Treatment of each attribute", attributes(checked)),
                ("Guarantees at every moment", guarantees(checked)),
                ("Attackers", adversaries(&checked.config)),
                ("Not guaranteed", limits(checked)),
            ];
            sections.extend(series.as_deref().into_iter().flat_map(|terms| series_sections(checked, terms)));
            sections
        }
    };
    let mut text = format!("{}, explained\n", checked.file);
    for (title, sentences) in sections {
        text += &format!("\n{title}\n");
        for sentence in sentences {
            text += &wrap_text("  - ", &sentence);
        }
    }
    text
}

fn describe_record_flow(checked: &CheckedConfig) -> Vec<String> {
    let CheckedConfig { config, schema, .. } = checked;
    let (from, to) = (source_phrase(config), sink_phrase(config));
    vec![
        format!(
            "Records of the schema {:?} are read from {from}, in batches of at most {}, and {to}.",
            schema.name, config.batch.max_records
        ),
        match schema.subject {
            Some(subject) => format!(
                "Records with the same {:?} belong to one person: every class below counts people, however many records each of them sends.",
                schema.attributes[subject].name
            ),
            None => "The schema names no subject: every record counts as a separate person. A person who sends five records counts as five people.".to_owned(),
        },
        match checked.shapes.len() {
            1 => "All released attributes of a record are released together, as one fragment.".to_owned(),
            groups if config.sink.rows == RowContent::Joined => format!(
                "A record is released as {groups} rows, one per group of attributes; in each row the attributes of all other groups are null. Nothing links these rows: no key, no order, no shared attribute."
            ),
            groups if multi_group_attributes(checked).is_empty() => format!(
                "A record is released as {groups} fragments, one per group of attributes. Nothing links these fragments: no key, no order, no shared attribute."
            ),
            groups => format!(
                "A record is released as {groups} fragments, one per group of attributes. {} is part of several of them, at one level of its hierarchy in a batch (plan.shared): fragments with the same values of it are as hard to link as all fragments of a batch. Nothing else links these fragments: no key, no order.",
                names_of(checked, &multi_group_attributes(checked))
            ),
        },
    ]
}

fn multi_group_attributes(checked: &CheckedConfig) -> Vec<usize> {
    find_shared_attributes(checked.shapes.iter().map(|shape| shape.quasi.as_slice()))
}

fn names_of(checked: &CheckedConfig, attributes: &[usize]) -> String {
    let names: Vec<&str> = attributes.iter().map(|&a| checked.schema.attributes[a].name.as_str()).collect();
    names.join(", ")
}

fn attributes(checked: &CheckedConfig) -> Vec<String> {
    checked
        .schema
        .attributes
        .iter()
        .enumerate()
        .map(|(at, attribute)| attribute_sentence(checked, at, attribute))
        .collect()
}

fn attribute_sentence(checked: &CheckedConfig, at: usize, attribute: &Attribute) -> String {
    let CheckedConfig { config, schema, shapes, protections, .. } = checked;
    let (name, k) = (&attribute.name, config.privacy.required_subjects());
    if multi_group_attributes(checked).contains(&at) {
        let groups: Vec<&str> =
            shapes.iter().filter(|shape| shape.quasi.contains(&at)).map(|shape| shape.name.as_str()).collect();
        return format!(
            "{name} is released in every fragment of the groups {}, because plan.shared requires it: {}, at one level in all of them. The current plan chooses the level so that enough people of a batch share each value. In a group that does not change within a person, it is `*`.",
            groups.join(", "),
            describe_levels(attribute)
        );
    }
    let shape = shapes.iter().find(|s| [&s.quasi[..], &s.sensitive, &s.insensitive].iter().any(|of| of.contains(&at)));
    let mates = shape.map_or_else(String::new, |shape| {
        let beside = shape.without_ladder().attributes().into_iter().filter(|other| *other != at);
        let beside: Vec<&str> = beside.map(|other| schema.attributes[other].name.as_str()).collect();
        if beside.is_empty() {
            format!("alone (group {})", shape.name)
        } else {
            format!("with {} (group {})", beside.join(", "), shape.name)
        }
    });
    match attribute.role {
        Role::Identifier => format!("{name} is never released: the schema declares it an identifier."),
        Role::Subject => {
            format!("{name} is never released: it distinguishes people, and is kept as a keyed digest only.")
        }
        Role::Insensitive => format!(
            "{name} is released unchanged, {mates}, because the schema declares it insensitive. This is not checked: its values must reveal nothing about any person."
        ),
        Role::Quasi | Role::Time if shape.is_some_and(|shape| shape.ranges) => format!(
            "{name} is released {mates}: as the extent of a class of {k} people of its batch ({}), or as `*`.",
            describe_extent(attribute)
        ),
        Role::Quasi | Role::Time => format!(
            "{name} is released {mates}: {}, as fine as possible while at least {k} people share the quasi-identifying values of the group.{}",
            describe_levels(attribute),
            treatment_sentence(checked, at)
        ),
        Role::Sensitive => {
            let models: Vec<String> = protections
                .iter()
                .filter(|protection| protection.attribute == at)
                .flat_map(|protection| &protection.requirements)
                .map(describe_requirement)
                .collect();
            let otherwise = if models.is_empty() { "coarser or as `*`" } else { "as `*`" };
            let class = match &models[..] {
                [] => "No diversity is required: if all members of a class have the same value, it is known of each member"
                    .to_owned(),
                some => format!("In every class that shows it: {}", some.join(", ")),
            };
            format!(
                "{name} is sensitive and is released {mates}: exact only if {k} people have its value; otherwise {otherwise}, shared by {k} people of its class. {class}."
            )
        }
    }
}

/// Empty without a rule.
fn treatment_sentence(checked: &CheckedConfig, attribute: usize) -> String {
    let Some(one) = checked.selected_treatments.iter().find(|one| one.attribute == attribute) else {
        return String::new();
    };
    treatment_report::deciding_rule(one)
        .map_or_else(String::new, |why| format!(" This treatment ({}) applies because {why}.", one.treat.name()))
}

fn describe_requirement(requirement: &ValueRequirement) -> String {
    match requirement {
        ValueRequirement::Distinct { l } => format!("at least {l} different values, of {l} people"),
        ValueRequirement::Entropy { l } => {
            format!("its values are at least as mixed as {l} equally frequent ones (entropy)")
        }
        ValueRequirement::Recursive { c, l } => {
            format!("the most frequent value is rarer than {c} times the {l}-th and all rarer ones together")
        }
        ValueRequirement::Closeness { t, .. } => {
            format!("its values are distributed as in the sample of the current plan, up to a distance of {t}")
        }
    }
}

/// In a class of ranges.
fn describe_extent(attribute: &Attribute) -> String {
    match attribute.hierarchy.ruler() {
        Some(_) => format!("a range between bounds of its {}", attribute.hierarchy.label(1)),
        None => "the finest label that all share".to_owned(),
    }
}

/// Finest first.
fn describe_levels(attribute: &Attribute) -> String {
    let last = attribute.hierarchy.levels() - 1;
    let fine = (0..last).filter(|level| attribute.treatment.allows(*level, last));
    let mut labels: Vec<String> = fine.map(|level| attribute.hierarchy.label(level)).collect();
    labels.dedup();
    let levels = labels.join(", then ");
    match attribute.treatment {
        AttributeTreatment::Generalize | AttributeTreatment::SuppressCell => format!("{levels}, or `*`"),
        AttributeTreatment::SuppressRecord => format!(
            "{levels}, or the line is withheld (but a value that identifies a person alone, or that no hierarchy covers, is `*`)"
        ),
        AttributeTreatment::Perturb => {
            format!("the closest number of its batch that enough people have; where there is none, {levels}, or `*`")
        }
        AttributeTreatment::Aggregate => format!(
            "the mean of neighbouring numbers of its batch, over enough people; where there are too few, {levels}, or `*`"
        ),
    }
}

fn guarantees(checked: &CheckedConfig) -> Vec<String> {
    let Config { privacy, .. } = &*checked.config;
    let k = privacy.required_subjects();
    let shared = if checked.config.treatment.may_be_untruthful() { "are shown for" } else { "are those of" };
    let mut said = vec![format!(
        "The quasi-identifying values of every released fragment, taken together, {shared} at least {k} different people of its batch. A separate check recounts this from the finished bytes; if it disagrees, nothing is released and the daemon stops."
    )];
    said.extend(unlinkability_sentences(checked));
    let once = if writes_standard_output(&checked.config) {
        "standard output may receive a batch twice"
    } else {
        "nothing is released twice"
    };
    said.push(format!(
        "Every record is accounted for: released, suppressed, held, dead-lettered, or dropped as empty; {once}."
    ));
    said
}

/// Protection against joined fragments and repeated records.
fn unlinkability_sentences(checked: &CheckedConfig) -> Vec<String> {
    let Config { privacy, .. } = &*checked.config;
    let (k, has_subject, mut said) = (privacy.required_subjects(), checked.schema.subject.is_some(), Vec::new());
    said.push("No person can be excluded from a class on the ground that their record would have been released at a finer level.".to_owned());
    if checked.shapes.len() > 1 {
        said.push(format!(
            "Counting links no two fragments: where the counts of a batch imply that two cells of two groups, or labels above them, belong together, this applies to at least {k} people. Combinations of three or more groups are not checked."
        ));
    }
    if !multi_group_attributes(checked).is_empty() {
        said.push(format!(
            "The same applies to the fragments of a batch with the same values of {}: at least {k} people have these values, and counting links none of their fragments.",
            names_of(checked, &multi_group_attributes(checked))
        ));
    }
    if has_subject && privacy.max_lines_per_subject > 0 {
        said.push(format!(
            "At most {} fragment(s) per person and group are released in a batch (privacy.max_lines_per_subject).",
            privacy.max_lines_per_subject
        ));
    }
    if has_subject && !privacy.longest_delay().is_zero() {
        said.push(format!(
            "A group in which nothing changes within a person is released once per person in {}, after a random delay of up to {} (privacy.static_window, privacy.max_delay). Each window is one observation for anyone who knows the senders: the values of single people can be computed from many windows. An unchanging attribute in a group with changing ones is released with every record.",
            format_duration(privacy.static_window),
            format_duration(privacy.longest_delay())
        ));
    }
    said
}

fn adversaries(config: &Config) -> Vec<String> {
    let mut said = vec![
        "Covered: anyone who reads the whole release and sees the time of each line, and knows this program, its configuration, the hierarchies and any number of facts about a person, but not the secret, the state directory or the lineage file.".to_owned(),
    ];
    said.push(match config.privacy.colluders {
        0 => {
            "Not covered: an attacker who sends records of invented people to complete classes (privacy.colluders = 0)."
                .to_owned()
        }
        some => format!(
            "Also covered: an attacker who invents up to {some} of the people in a class (privacy.colluders). A few invented people can shift entropy, recursive diversity and t-closeness with any setting."
        ),
    });
    said
}

fn limits(checked: &CheckedConfig) -> Vec<String> {
    let CheckedConfig { config, schema, protections, .. } = checked;
    let mut said = vec![
        "The presence of a person in the stream is not hidden.".to_owned(),
        "The people of a class share the released values only. A fact that is true of all members is known of each, and a fact that is true of most people with such values can be guessed without any release.".to_owned(),
        "Other data sets about the same people are not considered; a release of the same records under another configuration is another release, and the two together are not checked.".to_owned(),
        "This is not differential privacy. Whether the release is anonymous in the legal sense is a judgement that depends on these limits and on the recipients.".to_owned(),
    ];
    if schema.attributes.iter().any(|attribute| attribute.role == Role::Sensitive) {
        said.push("A reader sees that a rare sensitive value is hidden: its `*` appears in the batches in which a person with this value sends, so an attacker who knows the senders of each batch may find such a person (docs/guarantees.md).".to_owned());
    }
    if schema.attributes.iter().any(|attribute| attribute.role == Role::Insensitive) {
        said.push(
            "Insensitive attributes are released unchanged with every line, however rare their values are: no class protects them."
                .to_owned(),
        );
    }
    said.push("An attacker who knows that many equal records would have been released at a finer level learns how many lines of a class have which values, but not whose lines they are (downcoding).".to_owned());
    for (at, attribute) in schema.attributes.iter().enumerate() {
        if attribute.role == Role::Sensitive && protections.iter().all(|p| p.attribute != at) {
            said.push(format!(
                "All members of a class may have the same value of {}: set a [[privacy.model]] for it if that is not acceptable.",
                attribute.name
            ));
        }
    }
    if schema.subject.is_some() && config.privacy.longest_delay().is_zero() {
        said.push("Attributes that do not change within a person are released with every record (privacy.max_delay = \"0s\"): over many batches the fragments of one person can be linked.".to_owned());
    }
    if schema.subject.is_some() && config.privacy.max_lines_per_subject == 0 {
        said.push("Equal numbers of fragments in two groups may show that they belong to one person (privacy.max_lines_per_subject = 0).".to_owned());
    }
    if config.treatment.rules().iter().any(|rule| rule.treat.is_untruthful()) {
        said.push("Numbers may be those of other people of the batch (treatment perturb or aggregate): released values are not true of every person for whom they are shown. The output is marked as untruthful, except on standard output. A class of people shows the same values, but possibly none of them truly has all of these. An attacker who knows all but one of the numbers behind a mean learns the last.".to_owned());
    }
    said
}
