//! `throng check --explain`: describes a configuration in sentences for data owners.

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

/// Explains the treatment of every attribute, the guarantees, the attackers and the limits.
pub(super) fn explain_configuration(checked: &CheckedConfig) -> String {
    let sections = match &checked.series {
        Some(terms) if !checked.config.release.fragments => explain_series_only(checked, terms),
        series => {
            let mut sections = vec![
                ("What is read, and where it goes", describe_record_flow(checked)),
                ("What becomes of each attribute", attributes(checked)),
                ("What is guaranteed at every moment", guarantees(checked)),
                ("Against whom", adversaries(&checked.config)),
                ("What is not guaranteed", limits(checked)),
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
                "A person is whoever has the same {:?}: every crowd below is one of people, however many records each sends.",
                schema.attributes[subject].name
            ),
            None => "The schema names no subject: every record counts as a person of its own. Whoever sends five records is a crowd of five.".to_owned(),
        },
        match checked.shapes.len() {
            1 => "All attributes that leave do so together, as one fragment a record.".to_owned(),
            groups if config.sink.rows == RowContent::Joined => format!(
                "A record leaves as {groups} rows, one a group of attributes, in each of which the attributes of all other groups are null. Nothing says which rows belong together: no key, no order, no shared attribute."
            ),
            groups if multi_group_attributes(checked).is_empty() => format!(
                "A record leaves as {groups} fragments, one a group of attributes. Nothing says which fragments belong together: no key, no order, no shared attribute."
            ),
            groups => format!(
                "A record leaves as {groups} fragments, one a group of attributes. {} stands in several of them, at one level of its hierarchy in a batch (plan.shared): fragments that show the same of it are as far apart as those of a batch. Nothing else says which belong together: no key, no order.",
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
            "{name} leaves in every fragment of the groups {}, because plan.shared asks for it: {}, at one level in all of them, which the plan in force chooses so that enough people of a batch show the same. Where a group does not change within a person, it is `*` there.",
            groups.join(", "),
            describe_levels(attribute)
        );
    }
    let shape = shapes.iter().find(|s| [&s.quasi[..], &s.sensitive, &s.insensitive].iter().any(|of| of.contains(&at)));
    let mates = shape.map_or_else(String::new, |shape| {
        let beside = shape.without_ladder().attributes().into_iter().filter(|other| *other != at);
        let beside: Vec<&str> = beside.map(|other| schema.attributes[other].name.as_str()).collect();
        if beside.is_empty() {
            format!("by itself (group {})", shape.name)
        } else {
            format!("with {} (group {})", beside.join(", "), shape.name)
        }
    });
    match attribute.role {
        Role::Identifier => format!("{name} never leaves: the schema calls it an identifier."),
        Role::Subject => format!("{name} never leaves: it tells people apart, and is kept as a keyed digest only."),
        Role::Insensitive => format!(
            "{name} leaves as it is, {mates}, because the schema calls it insensitive. Nobody checks that: it must say nothing of anybody."
        ),
        Role::Quasi | Role::Time if shape.is_some_and(|shape| shape.ranges) => format!(
            "{name} leaves {mates}: the extent of a class of {k} people of its batch, {}, or `*`.",
            describe_extent(attribute)
        ),
        Role::Quasi | Role::Time => format!(
            "{name} leaves {mates}: {}, as fine as {k} people share the quasi-identifying values of the group.{}",
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
                [] => "No diversity is asked for: a crowd may share one value, and then it is known of each of them"
                    .to_owned(),
                some => format!("In every crowd that shows it holds: {}", some.join(", ")),
            };
            format!(
                "{name} is sensitive and leaves {mates}: exact only where {k} people have its value, otherwise {otherwise}, among {k} people of the crowd who show the same. {class}."
            )
        }
    }
}

/// Reason for the treatment of an attribute by a rule; empty without a rule.
fn treatment_sentence(checked: &CheckedConfig, attribute: usize) -> String {
    let Some(one) = checked.selected_treatments.iter().find(|one| one.attribute == attribute) else {
        return String::new();
    };
    treatment_report::deciding_rule(one)
        .map_or_else(String::new, |why| format!(" It is treated so ({}) because {why}.", one.treat.name()))
}

/// Describes the requirement of a privacy model on an equivalence class.
fn describe_requirement(requirement: &ValueRequirement) -> String {
    match requirement {
        ValueRequirement::Distinct { l } => format!("at least {l} values, of {l} people"),
        ValueRequirement::Entropy { l } => format!("its values are as mixed as {l} equally frequent ones (entropy)"),
        ValueRequirement::Recursive { c, l } => {
            format!("the most frequent value is rarer than {c} times the {l}-th and all rarer ones together")
        }
        ValueRequirement::Closeness { t, .. } => {
            format!(
                "its values are distributed as in the sample that the plan in force was made from, but for a distance of {t}"
            )
        }
    }
}

/// Describes the released value of an attribute in a class of ranges.
fn describe_extent(attribute: &Attribute) -> String {
    match attribute.hierarchy.ruler() {
        Some(_) => format!("a range between bounds of its {}", attribute.hierarchy.label(1)),
        None => "the finest label that all share".to_owned(),
    }
}

/// Describes the possible released values of an attribute, finest first.
fn describe_levels(attribute: &Attribute) -> String {
    let last = attribute.hierarchy.levels() - 1;
    let fine = (0..last).filter(|level| attribute.treatment.allows(*level, last));
    let mut labels: Vec<String> = fine.map(|level| attribute.hierarchy.label(level)).collect();
    labels.dedup();
    let levels = labels.join(", then ");
    match attribute.treatment {
        AttributeTreatment::Generalize | AttributeTreatment::SuppressCell => format!("{levels}, or `*`"),
        AttributeTreatment::SuppressRecord => format!(
            "{levels}, or the line does not leave (but what identifies by itself, or no hierarchy covers, is `*` there)"
        ),
        AttributeTreatment::Perturb => {
            format!("the closest number of its batch that enough people have; where there is none {levels}, or `*`")
        }
        AttributeTreatment::Aggregate => format!(
            "the mean of neighbouring numbers of its batch, of enough people; where there are too few {levels}, or `*`"
        ),
    }
}

fn guarantees(checked: &CheckedConfig) -> Vec<String> {
    let Config { privacy, .. } = &*checked.config;
    let k = privacy.required_subjects();
    let shared = if checked.config.treatment.may_be_untruthful() { "are shown for" } else { "are those of" };
    let mut said = vec![format!(
        "The quasi-identifying values of every fragment that leaves, taken together, {shared} at least {k} different people of its own batch. A separate check recounts this from the finished bytes; if it disagrees, nothing leaves and the daemon stops."
    )];
    said.extend(unlinkability_sentences(checked));
    let once = if writes_standard_output(&checked.config) {
        "standard output may get a batch twice"
    } else {
        "nothing leaves twice"
    };
    said.push(format!(
        "Every record is accounted for: released, suppressed, held, a dead letter, or dropped as empty; {once}."
    ));
    said
}

/// Describes the protection against joining fragments and against repeated records.
fn unlinkability_sentences(checked: &CheckedConfig) -> Vec<String> {
    let Config { privacy, .. } = &*checked.config;
    let (k, has_subject, mut said) = (privacy.required_subjects(), checked.schema.subject.is_some(), Vec::new());
    said.push("Nobody can be struck out of a crowd because the own record would have left finer.".to_owned());
    if checked.shapes.len() > 1 {
        said.push(format!(
            "Counting joins no two fragments: two cells of two groups, or labels above them, that must belong together by the numbers of a batch do so for at least {k} people. Three and more groups at once are not judged."
        ));
    }
    if !multi_group_attributes(checked).is_empty() {
        said.push(format!(
            "The same holds among the fragments of a batch that show the same of {}: at least {k} people show it, and counting joins none of their fragments.",
            names_of(checked, &multi_group_attributes(checked))
        ));
    }
    if has_subject && privacy.max_lines_per_subject > 0 {
        said.push(format!(
            "Of one person at most {} fragment(s) of a group leave in a batch (privacy.max_lines_per_subject).",
            privacy.max_lines_per_subject
        ));
    }
    if has_subject && !privacy.longest_delay().is_zero() {
        said.push(format!(
            "A group in which nothing changes within a person is said once in {}, after a random delay of up to {} (privacy.static_window, privacy.max_delay). Each window is one observation for whoever knows the senders: many windows can be solved for the values of single people. What does not change but leaves beside what does is said with every record.",
            format_duration(privacy.static_window),
            format_duration(privacy.longest_delay())
        ));
    }
    said
}

fn adversaries(config: &Config) -> Vec<String> {
    let mut said = vec![
        "Whoever reads everything that leaves, and when, and knows this program, its configuration, the hierarchies and any number of facts about a person, but not the secret, the state directory or the lineage file.".to_owned(),
    ];
    said.push(match config.privacy.colluders {
        0 => {
            "Not against somebody who sends records of invented people to make crowds of them (privacy.colluders = 0)."
                .to_owned()
        }
        some => format!(
            "Also where up to {some} of the people in a crowd are invented by one who attacks (privacy.colluders); entropy, recursive diversity and t-closeness can be shifted by a few whatever is asked."
        ),
    });
    said
}

fn limits(checked: &CheckedConfig) -> Vec<String> {
    let CheckedConfig { config, schema, protections, .. } = checked;
    let mut said = vec![
        "That somebody is among the people of the stream is not hidden.".to_owned(),
        "A crowd is a crowd in the values that leave. What is true of all of its members is said of each, and what most people with such values have in common can be guessed without any release.".to_owned(),
        "What other data sets say of the same people is not known here; a release of the same records under another configuration is another release, and both together are not judged.".to_owned(),
        "It is no differential privacy. Whether the release is anonymous in the sense of the law is a judgement that rests on this, and on who receives it.".to_owned(),
    ];
    if schema.attributes.iter().any(|attribute| attribute.role == Role::Sensitive) {
        said.push("That somebody hides a rare sensitive value is seen: `*` of it appears in the batches in which a person with it sends, so that who knows who sent when may find one such person (docs/guarantees.md).".to_owned());
    }
    if schema.attributes.iter().any(|attribute| attribute.role == Role::Insensitive) {
        said.push(
            "Insensitive attributes leave with every line as they are, however rare they are: they are in no crowd."
                .to_owned(),
        );
    }
    said.push("Who knows that many equal records would have left finer knows how many lines of a crowd are what, though not whose (downcoding).".to_owned());
    for (at, attribute) in schema.attributes.iter().enumerate() {
        if attribute.role == Role::Sensitive && protections.iter().all(|p| p.attribute != at) {
            said.push(format!(
                "A crowd may share one value of {}: set a [[privacy.model]] for it if that must not be.",
                attribute.name
            ));
        }
    }
    if schema.subject.is_some() && config.privacy.longest_delay().is_zero() {
        said.push("What does not change within a person leaves with every record (privacy.max_delay = \"0s\"): over many batches the fragments of one person can be joined.".to_owned());
    }
    if schema.subject.is_some() && config.privacy.max_lines_per_subject == 0 {
        said.push("Equal numbers of fragments in two groups may tell that they are of one person (privacy.max_lines_per_subject = 0).".to_owned());
    }
    if config.treatment.rules().iter().any(|rule| rule.treat.is_untruthful()) {
        said.push("Numbers may be those of other people of the batch (treatment perturb or aggregate): what leaves is not true of everybody it is said of, and is marked so, but on standard output. A crowd of people shows the same values, and as few as none of them may truly have all of these. Who knows all but one of the numbers behind a mean learns the last.".to_owned());
    }
    said
}
