//! Resolves treatments by rules and groups of the planner, before a run.

use super::configured_groups::MAX_GUARDED;
use super::sampling::{SampledRecords, read_typical};
use super::treatment_selection::{
    SelectedTreatment, compartmented, select_treatments, treatments, with_explicit_rules,
};
use crate::config::{Config, ConfigProblem, GroupConfig, GroupSelection, PlanConfig};
use crate::planner::PlannerSettings;
use crate::planner::change_rates::measure_change_rates;
use crate::planner::compartments::{MAX_CLIQUE_ATTRIBUTES, cover_attributes, find_compartments};
use crate::planner::group_merging::{
    GroupMerger, GroupMergerInput, GroupingWish, MergedGroup, SeparationReason, WishResult, wish_bonus,
};
use crate::planner::planner_sample::PlannerSample;
use crate::planner::shared_level_choice::choose_shared_levels;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use throng_core::attribute_dependence::AttributeDependence;
use throng_core::plan::GroupShape;
use throng_core::values::codebook::Code;
use throng_core::values::record_window::RecordWindow;
use throng_core::values::schema::{ChangeFrequency, Role, Schema};
use throng_core::values::subject_digest::NO_SUBJECT;
use throng_risk::counting::{AttributeSet, ColumnsError, CountedTable};
use throng_risk::qid::{self, QidBorders, QidSearchRequest, QidStrategy};

/// The first records of the file.
const MAX_GROUPING_RECORDS: usize = 50_000;

/// Treatments and groups that a configuration left open.
#[derive(Default)]
pub struct ResolvedChoices {
    /// Treatments by the rules of `[treatment]`.
    pub selected_treatments: Vec<SelectedTreatment>,
    /// Reasons for the planner's groups.
    pub planned_groups: Option<ChosenGroups>,
}

/// Resolves the treatments, and the groups if the planner chooses them.
///
/// # Errors
/// Fails without a usable file of records, for an invalid rule or wish, and for groups that cannot be released.
pub fn resolve_choices(
    config: Config,
    schema: &Schema,
    file: &str,
) -> Result<(Config, ResolvedChoices), Vec<ConfigProblem>> {
    let shared = shared_positions(&config, schema, file)?;
    let treated = select_treatments(&config, schema, file)?;
    let apart = compartmented(&treated);
    let schema = &schema.with_treatments(&treatments(&treated));
    let config = with_explicit_rules(config, schema, &treated);
    if config.plan.groups == GroupSelection::Given && apart.is_empty() {
        return Ok((config, ResolvedChoices { selected_treatments: treated, planned_groups: None }));
    }
    let wishes = wishes_by_weight(&config, schema, file)?;
    let aside = GroupingExceptions { apart: &apart, shared: &shared };
    let grown = choose_groups(&config, schema, file, wishes, aside)?;
    let group = |shape: &GroupShape| {
        let attributes = [&shape.quasi[..], &shape.sensitive, &shape.insensitive].concat();
        let attributes = attributes.into_iter().map(|a| schema.attributes[a].name.clone()).collect();
        GroupConfig { name: shape.name.clone(), attributes, ..GroupConfig::default() }
    };
    let groups = grown.shapes.iter().map(group).collect();
    // The groups are fixed now.
    let plan = PlanConfig { groups: GroupSelection::Given, ..config.plan.clone() };
    let config = Config { plan, keep: Vec::new(), ..config }.with_groups(groups, file)?;
    Ok((config, ResolvedChoices { selected_treatments: treated, planned_groups: Some(grown) }))
}

/// Ascending schema positions of `plan.shared`.
fn shared_positions(config: &Config, schema: &Schema, file: &str) -> Result<Vec<usize>, Vec<ConfigProblem>> {
    let (mut shared, mut problems) = (Vec::new(), Vec::new());
    for name in &config.plan.shared {
        let (message, remedy) = match schema.position(name).map(|a| (a, &schema.attributes[a])) {
            None => (format!("the schema has no attribute {name:?}"), "correct the name, or add it to the schema"),
            Some((_, attribute)) if !attribute.role.is_quasi() => (
                format!("{name:?} has the role {}: only quasi attributes can be shared", attribute.role.name()),
                "remove it from plan.shared",
            ),
            Some((_, attribute)) if attribute.changes != Some(ChangeFrequency::Always) => (
                format!(
                    "{name:?} is not declared as changing: in every changing group it would be released with every record"
                ),
                "set changes = \"always\" in the schema if it does, or remove it from plan.shared",
            ),
            Some((a, _)) => {
                shared.push(a);
                continue;
            }
        };
        problems.push(ConfigProblem::new(file, "plan.shared", message, remedy));
    }
    shared.sort_unstable();
    if problems.is_empty() { Ok(shared) } else { Err(problems) }
}

fn wishes_by_weight(config: &Config, schema: &Schema, file: &str) -> Result<Vec<GroupingWish>, Vec<ConfigProblem>> {
    let (mut wishes, mut problems) = (Vec::new(), Vec::new());
    for (index, keep) in config.keep.iter().enumerate() {
        let key = format!("keep[{index}].attributes");
        let mut attributes = Vec::new();
        for name in &keep.attributes {
            let (message, remedy) = match schema.position(name) {
                None => (format!("the schema has no attribute {name:?}"), "correct the name, or add it to the schema"),
                Some(a) if !schema.attributes[a].role.is_releasable() => {
                    let role = schema.attributes[a].role.name();
                    (format!("{name:?} has the role {role}, which is never released"), "remove it from the [[keep]]")
                }
                Some(a) => {
                    attributes.push(a);
                    continue;
                }
            };
            problems.push(ConfigProblem::new(file, key.as_str(), message, remedy));
        }
        attributes.sort_unstable();
        wishes.push(GroupingWish { attributes, weight: keep.weight });
    }
    wishes.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    if problems.is_empty() { Ok(wishes) } else { Err(problems) }
}

/// Chooses from `plan.prime` or the source file. Equal records give equal groups.
fn choose_groups(
    config: &Config,
    schema: &Schema,
    file: &str,
    wishes: Vec<GroupingWish>,
    aside: GroupingExceptions<'_>,
) -> Result<ChosenGroups, Vec<ConfigProblem>> {
    let apart = aside.apart;
    let key = (file, if apart.is_empty() { "plan.groups" } else { "treatment" });
    let wanted = ("groups are chosen", "give [[group]]s and plan.groups = \"given\"");
    let read = read_typical(config, schema, MAX_GROUPING_RECORDS, key, wanted)?;
    choose_from_records(config, schema, &read, wishes, aside).map_err(|unchosen| {
        let remedy = match unchosen {
            GroupChoiceError::NothingShared => {
                "remove plan.shared, or declare in the schema which attributes change (changes = \"always\")"
            }
            GroupChoiceError::SearchTimeout(_)
            | GroupChoiceError::TooMany { .. }
            | GroupChoiceError::Unsearchable(_)
                if apart.is_empty() =>
            {
                "set plan.groups = \"price\""
            }
            GroupChoiceError::SearchTimeout(_)
            | GroupChoiceError::TooMany { .. }
            | GroupChoiceError::Unsearchable(_) => {
                "name other treatments than \"compartment\" in treatment.rule, and fewer attributes"
            }
        };
        vec![ConfigProblem::new(key.0, key.1, unchosen.to_string(), remedy)]
    })
}

const GROUPING_SAMPLE_RECORDS: usize = 3_000;

/// Groups with reasons.
#[derive(Clone)]
pub struct ChosenGroups {
    /// Method of choice.
    pub how: GroupSelection,
    /// Groups in the form of a configuration.
    pub shapes: Vec<GroupShape>,
    /// Per group, its quasi attributes with expected loss and mutual information in bits; none without quasi
    /// attributes.
    pub why: Vec<Option<MergedGroup>>,
    /// Wishes by descending weight, with results.
    pub wishes: Vec<(GroupingWish, WishResult)>,
    /// Records used.
    pub records: usize,
}

/// Includes a margin for busy machines.
const QID_SEARCH_LIMIT: Duration = Duration::from_mins(2);

#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
enum GroupChoiceError {
    #[error("the search for quasi-identifiers of the records did not finish within {}", humantime::format_duration(*.0))]
    SearchTimeout(Duration),
    #[error("{attributes} quasi attributes; at most {MAX_CLIQUE_ATTRIBUTES} can be divided into cliques")]
    TooMany { attributes: usize },
    #[error("no attribute is shared: the records show fewer than two groups that change within a person")]
    NothingShared,
    #[error("the records cannot be searched for quasi-identifiers: {0}")]
    Unsearchable(#[from] ColumnsError),
}

/// Attributes grouped differently.
#[derive(Clone, Copy)]
struct GroupingExceptions<'a> {
    /// Released in compartments: divided into cliques even if the others are grouped by price.
    apart: &'a [usize],
    /// In every group that changes, ascending.
    shared: &'a [usize],
}

/// Choice of a group for attributes that are not quasi attributes.
struct AttributePlacement<'a> {
    schema: &'a Schema,
    wishes: &'a [GroupingWish],
    dependence: &'a AttributeDependence,
    is_static: &'a dyn Fn(usize) -> bool,
    shared: &'a [usize],
}

impl AttributePlacement<'_> {
    /// Adds the attribute to the group with the most information about it. Returns true if it forms another group,
    /// because it fits none.
    fn place(&self, attribute: usize, shapes: &mut Vec<GroupShape>) -> bool {
        let sensitive = self.schema.attributes[attribute].role == Role::Sensitive;
        let fits = |shape: &&mut GroupShape| {
            let alike =
                shape.quasi.first().is_some_and(|&first| (self.is_static)(first) == (self.is_static)(attribute));
            // Insensitive attributes reveal nothing, even if repeated.
            !sensitive || alike && shape.quasi.len() + shape.sensitive.len() + self.shared.len() < MAX_GUARDED
        };
        let says = |shape: &GroupShape| {
            let wished: f64 = shape.quasi.iter().map(|&a| wish_bonus(self.wishes, a, attribute)).sum();
            wished + self.dependence.information_about(attribute, &shape.quasi)
        };
        // On a tie, the first.
        let nearest =
            shapes.iter_mut().filter(fits).reduce(|best, next| if says(next) > says(best) { next } else { best });
        match nearest {
            Some(shape) if sensitive => shape.sensitive.push(attribute),
            Some(shape) => shape.insensitive.push(attribute),
            None => {
                let own = vec![attribute];
                shapes.push(if sensitive {
                    GroupShape { sensitive: own, ..quasi_shape(Vec::new()) }
                } else {
                    GroupShape { insensitive: own, ..quasi_shape(Vec::new()) }
                });
                return true;
            }
        }
        false
    }
}

fn name_groups(schema: &Schema, shapes: &mut [GroupShape]) {
    let mut taken = BTreeSet::new();
    for (number, shape) in shapes.iter_mut().enumerate() {
        shape.sensitive.sort_unstable();
        shape.insensitive.sort_unstable();
        shape.name = group_name(schema, shape, number);
        while taken.contains(&shape.name) {
            shape.name.insert_str(0, "group-");
        }
        taken.insert(shape.name.clone());
    }
}

/// Chooses groups from records by the configured method; `wishes_by_weight` by descending weight.
///
/// # Errors
/// Fails if the required quasi-identifiers cannot be found.
fn choose_from_records(
    config: &Config,
    schema: &Schema,
    read: &SampledRecords,
    wishes: Vec<GroupingWish>,
    aside: GroupingExceptions<'_>,
) -> Result<ChosenGroups, GroupChoiceError> {
    let GroupingExceptions { apart, shared } = aside;
    let mut sample = PlannerSample::new(schema.attributes.len(), GROUPING_SAMPLE_RECORDS, read.batch.rows());
    sample.add(&read.batch, 0);
    let settings = PlannerSettings::settings_from_config(config);
    let of = |wanted: &dyn Fn(Role) -> bool| -> Vec<usize> {
        schema.releasable().filter(|&a| wanted(schema.attributes[a].role)).collect()
    };
    let mut quasi = of(&Role::is_quasi);
    quasi.retain(|a| !shared.contains(a));
    let beside = of(&|role| !role.is_quasi());
    let all = [&quasi[..], &beside].concat();
    let still = constant_attributes(config, schema, read, &all);
    let is_static = |attribute: usize| still.contains(&attribute);
    let change_alike = |a: usize, b: usize| is_static(a) == is_static(b);
    // Each attribute counts as a group.
    let alone: Vec<Vec<usize>> = quasi.iter().filter(|a| !is_static(**a)).map(|&a| vec![a]).collect();
    let settings =
        choose_shared_levels(shared, &[], &alone, &sample, &read.books, &settings).settings_within_parts(settings);
    let dependence = AttributeDependence::of(&all, sample.subjects(), |a| sample.column(a), &read.books);
    let grows = matches!(config.plan.groups, GroupSelection::Given | GroupSelection::Price);
    let growing: Vec<usize> = quasi.iter().copied().filter(|a| !grows || !apart.contains(a)).collect();
    let ground = GroupMergerInput {
        attributes: &growing,
        is_static: &is_static,
        dependence: &dependence,
        sample: &sample,
        books: &read.books,
        settings: &settings,
        price: config.plan.price,
    };
    let mut growth = GroupMerger::new(&ground, &wishes);
    let answers = growth.serve_wishes();
    match config.plan.groups {
        GroupSelection::Given | GroupSelection::Price => {
            growth.merge_all_below_price();
            let mut groups = growth.take_all_groups();
            // Too many for the clique search: one by one.
            let many = apart.len() > MAX_CLIQUE_ATTRIBUTES;
            let sets = if apart.is_empty() || many {
                Vec::new()
            } else {
                grouping_sets(GroupSelection::Cliques, config, read, apart)?
            };
            groups.extend(cover_attributes(apart, &sets, &dependence, &change_alike, MAX_GUARDED));
            growth.replace_groups(groups);
        }
        GroupSelection::Cliques | GroupSelection::Border => {
            let sets = grouping_sets(config.plan.groups, config, read, &quasi)?;
            let mut groups = growth.take_merged_groups();
            let left: Vec<usize> = quasi.iter().copied().filter(|a| !groups.concat().contains(a)).collect();
            groups.extend(cover_attributes(&left, &sets, &dependence, &change_alike, MAX_GUARDED));
            growth.replace_groups(groups);
        }
    }
    let groups = growth.groups();
    let mut shapes: Vec<GroupShape> = groups.iter().map(|group| quasi_shape(group.attributes.clone())).collect();
    let mut why: Vec<Option<MergedGroup>> = groups.into_iter().map(Some).collect();
    let placement =
        AttributePlacement { schema, wishes: &wishes, dependence: &dependence, is_static: &is_static, shared };
    for attribute in beside {
        if placement.place(attribute, &mut shapes) {
            why.push(None);
        }
    }
    add_shared_attributes(&mut shapes, shared, &is_static)?;
    name_groups(schema, &mut shapes);
    let wishes =
        wishes.into_iter().zip(answers).map(|(wish, answer)| resolve_wish(wish, &answer, &shapes, &is_static, apart));
    Ok(ChosenGroups { how: config.plan.groups, wishes: wishes.collect(), shapes, why, records: read.batch.rows() })
}

fn add_shared_attributes(
    shapes: &mut [GroupShape],
    shared: &[usize],
    is_static: &dyn Fn(usize) -> bool,
) -> Result<(), GroupChoiceError> {
    let mut groups = 0;
    for shape in shapes.iter_mut().filter(|shape| !shared.is_empty() && !shape.quasi.is_empty()) {
        if shape.quasi.iter().chain(&shape.sensitive).any(|&a| !is_static(a)) {
            // The first attribute names the group.
            shape.quasi.extend_from_slice(shared);
            groups += 1;
        }
    }
    if shared.is_empty() || groups > 1 { Ok(()) } else { Err(GroupChoiceError::NothingShared) }
}

/// Cliques of attributes without a common quasi-identifier, or maximal sets that are no quasi-identifier.
fn grouping_sets(
    how: GroupSelection,
    config: &Config,
    read: &SampledRecords,
    quasi: &[usize],
) -> Result<Vec<Vec<usize>>, GroupChoiceError> {
    if how == GroupSelection::Cliques && quasi.len() > MAX_CLIQUE_ATTRIBUTES {
        return Err(GroupChoiceError::TooMany { attributes: quasi.len() });
    }
    let found = find_qid_borders(config, read, quasi)?;
    if !found.complete {
        return Err(GroupChoiceError::SearchTimeout(QID_SEARCH_LIMIT));
    }
    let own = |set: &AttributeSet| -> Vec<usize> { set.iter().map(|place| quasi[place]).collect() };
    Ok(match how {
        GroupSelection::Cliques => {
            let qids: Vec<AttributeSet> = found.minimal_qids.iter().map(|set| own(set).into_iter().collect()).collect();
            find_compartments(quasi, &qids)
        }
        _ => found.maximal_non_qids.iter().map(own).collect(),
    })
}

/// Finds the quasi-identifiers, as positions in `quasi`. Rare values of flat attributes, always released as `*`, are
/// merged.
fn find_qid_borders(config: &Config, read: &SampledRecords, quasi: &[usize]) -> Result<QidBorders, ColumnsError> {
    let mut batch = read.batch.clone();
    let somebodys: Vec<bool> = batch.subjects.iter().map(|subject| *subject != NO_SUBJECT).collect();
    batch.retain_rows(&somebodys);
    let mut numbers = BTreeMap::new();
    let mut number = |subject: u64| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(subject).or_insert(next)
    };
    let subjects = batch.subjects.iter().map(|subject| number(*subject)).collect();
    let k = u32::try_from(config.privacy.required_subjects()).unwrap_or(u32::MAX);
    let columns: Vec<Vec<Code>> = quasi.iter().map(|&a| std::mem::take(&mut batch.columns[a])).collect();
    let table = CountedTable::new(columns, Some(subjects))?;
    let masked = table.masked(k);
    let column = |(place, &a): (usize, &usize)| {
        let is_flat = read.books[a].levels() == 2;
        (if is_flat { masked.column(place) } else { table.column(place) }).to_vec()
    };
    let columns = quasi.iter().enumerate().map(column).collect();
    let table = CountedTable::new(columns, table.subject_numbers().map(<[u32]>::to_vec))?;
    let question = QidSearchRequest {
        k,
        strategy: QidStrategy::default(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        budget: Some(QID_SEARCH_LIMIT),
        memory: None,
        columns: (0..table.width()).collect(),
    };
    Ok(qid::search(&table, &question, &|_| {}))
}

fn quasi_shape(quasi: Vec<usize>) -> GroupShape {
    GroupShape { name: String::new(), quasi, sensitive: Vec::new(), insensitive: Vec::new(), ranges: false }
}

fn resolve_wish(
    wish: GroupingWish,
    answer: &WishResult,
    shapes: &[GroupShape],
    is_static: &dyn Fn(usize) -> bool,
    compartmented: &[usize],
) -> (GroupingWish, WishResult) {
    let part = |shape: &GroupShape| -> Vec<usize> {
        let all = [&shape.quasi[..], &shape.sensitive, &shape.insensitive].concat();
        wish.attributes.iter().copied().filter(|a| all.contains(a)).collect()
    };
    // On a tie, the first.
    let largest = shapes.iter().map(part).reduce(|best, next| if next.len() > best.len() { next } else { best });
    let together = largest.unwrap_or_default();
    let pace = together.first().map(|&a| is_static(a));
    let why = |a: usize| {
        let known = answer.separated_attributes.iter().find(|(apart, _)| *apart == a);
        let is_divided = |a: &usize| compartmented.contains(a);
        let otherwise = if is_divided(&a) || together.first().is_some_and(is_divided) {
            SeparationReason::Compartment
        } else if pace == Some(is_static(a)) {
            SeparationReason::StrongerDependence
        } else {
            SeparationReason::ChangeRate
        };
        (a, known.map_or(otherwise, |(_, why)| *why))
    };
    let apart = wish.attributes.iter().filter(|a| !together.contains(a)).map(|&a| why(a)).collect();
    (wish, WishResult { grouped_attributes_of_wish: together, separated_attributes: apart, loss: answer.loss })
}

/// Attributes constant within a subject; empty if no release is delayed, because it has no effect then.
fn constant_attributes(config: &Config, schema: &Schema, read: &SampledRecords, attributes: &[usize]) -> Vec<usize> {
    if schema.subject.is_none() || config.privacy.longest_delay().is_zero() {
        return Vec::new();
    }
    let mut window = RecordWindow::new(schema.attributes.len(), read.batch.rows().max(1));
    window.push(&read.batch);
    let paces =
        measure_change_rates(schema, attributes, &window, config.privacy.required_subjects(), config.privacy.colluders);
    paces.into_iter().filter(|pace| pace.changes != ChangeFrequency::Always).map(|pace| pace.attribute).collect()
}

/// The first attribute of the group, if its name is plain.
fn group_name(schema: &Schema, shape: &GroupShape, number: usize) -> String {
    let first = shape.quasi.iter().chain(&shape.sensitive).chain(&shape.insensitive).next();
    let name = first.map_or("", |&a| schema.attributes[a].name.as_str());
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    if (1..=50).contains(&name.len()) && name.bytes().all(plain) {
        name.to_owned()
    } else {
        format!("group-{}", number + 1)
    }
}
