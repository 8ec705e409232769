//! What a start settles before anything is built: treatments by rules, and groups that the planner chooses.

use super::composition::{Treated, compartmented, compose, composed, treatments};
use super::sampling::{Read, typical};
use super::shapes::MAX_GUARDED;
use crate::anonymity::planner::compartments::{MOST_ATTRIBUTES, cliques, cover};
use crate::anonymity::planner::dependence::Dependence;
use crate::anonymity::planner::grouping::{Apart, Ground, GrownGroup, Growth, Wish, WishAnswer, wished};
use crate::anonymity::planner::pace::paces;
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::planner::shared::choose;
use crate::anonymity::planner::{GroupShape, PlannerSettings};
use crate::config::{Config, Group, Grouping, Plan, Problem};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use throng_core::values::codebook::Code;
use throng_core::values::schema::{Changes, Role, Schema};
use throng_core::values::subject::NO_SUBJECT;
use throng_core::values::window::Window;
use throng_risk::counting::{AttributeSet, ColumnsError, CountedTable};
use throng_risk::qid::{self, Borders, Question, Strategy};

/// Records that groups are chosen from at most: the first of the file.
const READ: usize = 50_000;

/// What a start has settled that a configuration leaves open.
#[derive(Default)]
pub struct Settled {
    /// What the rules of `[treatment]` have come to; nothing where there are none.
    pub treated: Vec<Treated>,
    /// Why these groups, where the planner chose them.
    pub grown: Option<Grown>,
}

/// A configuration whose treatments and groups are settled: by its rules, and chosen where it leaves them to the planner; else as they are
/// given.
///
/// # Errors
/// Where there is no file to choose them from, or nothing can be learned of it; where a rule or a wish cannot be understood; and where the
/// chosen groups cannot leave as the configuration says.
pub fn settle(config: Config, schema: &Schema, file: &str) -> Result<(Config, Settled), Vec<Problem>> {
    let shared = shared(&config, schema, file)?;
    let treated = compose(&config, schema, file)?;
    let apart = compartmented(&treated);
    let schema = &schema.with_treatments(&treatments(&treated));
    let config = composed(config, schema, &treated);
    if config.plan.groups == Grouping::Given && apart.is_empty() {
        return Ok((config, Settled { treated, grown: None }));
    }
    let wishes = wishes(&config, schema, file)?;
    let aside = Aside { apart: &apart, shared: &shared };
    let grown = grow(&config, schema, file, wishes, aside)?;
    let group = |shape: &GroupShape| {
        let attributes = [&shape.quasi[..], &shape.sensitive, &shape.insensitive].concat();
        let attributes = attributes.into_iter().map(|a| schema.attributes[a].name.clone()).collect();
        Group { name: shape.name.clone(), attributes, ..Group::default() }
    };
    let groups = grown.shapes.iter().map(group).collect();
    // They are given from here on: what is asked for has been done.
    let plan = Plan { groups: Grouping::Given, ..config.plan.clone() };
    let config = Config { plan, keep: Vec::new(), ..config }.with_groups(groups, file)?;
    Ok((config, Settled { treated, grown: Some(grown) }))
}

/// The attributes of `plan.shared` in terms of a schema, ascending.
fn shared(config: &Config, schema: &Schema, file: &str) -> Result<Vec<usize>, Vec<Problem>> {
    let (mut shared, mut problems) = (Vec::new(), Vec::new());
    for name in &config.plan.shared {
        let (message, remedy) = match schema.position(name).map(|a| (a, &schema.attributes[a])) {
            None => (format!("the schema has no attribute {name:?}"), "correct the name, or add it to the schema"),
            Some((_, attribute)) if !attribute.role.is_quasi() => (
                format!("{name:?} has the role {}: only quasi attributes are shared", attribute.role.name()),
                "take it out of plan.shared",
            ),
            Some((_, attribute)) if attribute.changes != Some(Changes::Always) => (
                format!(
                    "{name:?} is not said to change: beside everything that changes it would be said with every record"
                ),
                "set changes = \"always\" in the schema if it does, or take it out of plan.shared",
            ),
            Some((a, _)) => {
                shared.push(a);
                continue;
            }
        };
        problems.push(Problem::new(file, "plan.shared", message, remedy));
    }
    shared.sort_unstable();
    if problems.is_empty() { Ok(shared) } else { Err(problems) }
}

/// The wishes of a configuration in terms of a schema, the weightiest first.
fn wishes(config: &Config, schema: &Schema, file: &str) -> Result<Vec<Wish>, Vec<Problem>> {
    let (mut wishes, mut problems) = (Vec::new(), Vec::new());
    for (index, keep) in config.keep.iter().enumerate() {
        let key = format!("keep[{index}].attributes");
        let mut attributes = Vec::new();
        for name in &keep.attributes {
            let (message, remedy) = match schema.position(name) {
                None => (format!("the schema has no attribute {name:?}"), "correct the name, or add it to the schema"),
                Some(a) if !schema.attributes[a].role.is_releasable() => {
                    let role = schema.attributes[a].role.name();
                    (format!("{name:?} has the role {role}, which never leaves"), "take it out of the wish")
                }
                Some(a) => {
                    attributes.push(a);
                    continue;
                }
            };
            problems.push(Problem::new(file, key.as_str(), message, remedy));
        }
        attributes.sort_unstable();
        wishes.push(Wish { attributes, weight: keep.weight });
    }
    wishes.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    if problems.is_empty() { Ok(wishes) } else { Err(problems) }
}

/// Chooses the groups of a configuration from `plan.prime`, or without it from the source file. The same records give the same
/// groups.
fn grow(
    config: &Config,
    schema: &Schema,
    file: &str,
    wishes: Vec<Wish>,
    aside: Aside<'_>,
) -> Result<Grown, Vec<Problem>> {
    let apart = aside.apart;
    let key = (file, if apart.is_empty() { "plan.groups" } else { "treatment" });
    let wanted = ("groups are chosen", "give [[group]]s and plan.groups = \"given\"");
    let read = typical(config, schema, READ, key, wanted)?;
    from_records(config, schema, &read, wishes, aside).map_err(|unchosen| {
        let remedy = match unchosen {
            Unchosen::Unshared => {
                "remove plan.shared, or say in the schema which attributes change (changes = \"always\")"
            }
            Unchosen::Late(_) | Unchosen::TooMany { .. } | Unchosen::Table(_) if apart.is_empty() => {
                "set plan.groups = \"price\""
            }
            Unchosen::Late(_) | Unchosen::TooMany { .. } | Unchosen::Table(_) => {
                "name other treatments than \"compartment\" in treatment.rule, and fewer attributes"
            }
        };
        vec![Problem::new(key.0, key.1, unchosen.to_string(), remedy)]
    })
}

/// Records, of those that were read, on which groups are tried.
const SAMPLED: usize = 3_000;

/// Groups, and what speaks for each.
#[derive(Clone)]
pub struct Grown {
    /// How they were chosen.
    pub how: Grouping,
    /// The groups, as a configuration would name them.
    pub shapes: Vec<GroupShape>,
    /// By group, its quasi attributes with their expected loss and the bits that they say of each other; nothing for a group
    /// without quasi attributes.
    pub why: Vec<Option<GrownGroup>>,
    /// The wishes, the weightiest first, and what each has come to.
    pub wishes: Vec<(Wish, WishAnswer)>,
    /// Records that they were chosen from.
    pub records: usize,
}

/// Time for the quasi-identifiers of the records: much, since a start that comes too late on a busy machine is none.
const SEARCHING: Duration = Duration::from_mins(2);

/// Why no groups can be chosen.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
enum Unchosen {
    #[error("the quasi-identifiers of the records were not all found within {}", humantime::format_duration(*.0))]
    Late(Duration),
    #[error("{attributes} quasi attributes; at most {MOST_ATTRIBUTES} can be divided into cliques")]
    TooMany { attributes: usize },
    #[error("fewer than two groups change within a person, as far as the records show: nothing is shared")]
    Unshared,
    #[error("the records cannot be searched for quasi-identifiers: {0}")]
    Table(#[from] ColumnsError),
}

/// Attributes that are not divided as the others are.
#[derive(Clone, Copy)]
struct Aside<'a> {
    /// Those that leave in compartments: divided into cliques where the others grow by price.
    apart: &'a [usize],
    /// Those that stand in every group that changes, ascending.
    shared: &'a [usize],
}

/// Chooses groups from records, as the configuration wants them chosen; `wishes` the weightiest first.
///
/// # Errors
/// Where the quasi-identifiers that they are chosen by cannot be found.
fn from_records(
    config: &Config,
    schema: &Schema,
    read: &Read,
    wishes: Vec<Wish>,
    aside: Aside<'_>,
) -> Result<Grown, Unchosen> {
    let Aside { apart, shared } = aside;
    let mut sample = Sample::new(schema.attributes.len(), SAMPLED, read.batch.rows());
    sample.add(&read.batch, 0);
    let settings = PlannerSettings::of(config);
    let of = |wanted: &dyn Fn(Role) -> bool| -> Vec<usize> {
        schema.releasable().filter(|&a| wanted(schema.attributes[a].role)).collect()
    };
    let mut quasi = of(&Role::is_quasi);
    quasi.retain(|a| !shared.contains(a));
    let beside = of(&|role| !role.is_quasi());
    let all = [&quasi[..], &beside].concat();
    let still = still(config, schema, read, &all);
    let is_static = |attribute: usize| still.contains(&attribute);
    // No groups are known yet: as if each attribute were one.
    let alone: Vec<Vec<usize>> = quasi.iter().filter(|a| !is_static(**a)).map(|&a| vec![a]).collect();
    let settings = choose(shared, &[], &alone, &sample, &read.books, &settings).within(settings);
    let dependence = Dependence::of(&all, &sample, &read.books);
    let grows = matches!(config.plan.groups, Grouping::Given | Grouping::Price);
    let growing: Vec<usize> = quasi.iter().copied().filter(|a| !grows || !apart.contains(a)).collect();
    let ground = Ground {
        attributes: &growing,
        is_static: &is_static,
        dependence: &dependence,
        sample: &sample,
        books: &read.books,
        settings: &settings,
        price: config.plan.price,
    };
    let mut growth = Growth::new(&ground, &wishes);
    let answers = growth.serve_wishes();
    match config.plan.groups {
        Grouping::Given | Grouping::Price => {
            growth.grow_all();
            let mut groups = growth.take();
            // What is too wide for cliques to be found leaves one by one.
            let many = apart.len() > MOST_ATTRIBUTES;
            let sets =
                if apart.is_empty() || many { Vec::new() } else { sets(Grouping::Cliques, config, read, apart)? };
            groups.extend(cover(apart, &sets, &dependence, &|a, b| is_static(a) == is_static(b), MAX_GUARDED));
            growth.put(groups);
        }
        Grouping::Cliques | Grouping::Border => {
            let sets = sets(config.plan.groups, config, read, &quasi)?;
            let mut groups = growth.take_wished();
            let left: Vec<usize> = quasi.iter().copied().filter(|a| !groups.concat().contains(a)).collect();
            groups.extend(cover(&left, &sets, &dependence, &|a, b| is_static(a) == is_static(b), MAX_GUARDED));
            growth.put(groups);
        }
    }
    let groups = growth.groups();
    let mut shapes: Vec<GroupShape> = groups.iter().map(|group| shape(group.attributes.clone())).collect();
    let mut why: Vec<Option<GrownGroup>> = groups.into_iter().map(Some).collect();
    for attribute in beside {
        let sensitive = schema.attributes[attribute].role == Role::Sensitive;
        let fits = |shape: &&mut GroupShape| {
            let alike = shape.quasi.first().is_some_and(|&first| is_static(first) == is_static(attribute));
            // What is insensitive says nothing of anybody, however often.
            !sensitive || alike && shape.quasi.len() + shape.sensitive.len() + shared.len() < MAX_GUARDED
        };
        let says = |shape: &GroupShape| {
            let wished: f64 = shape.quasi.iter().map(|&a| wished(&wishes, a, attribute)).sum();
            wished + dependence.said_of(attribute, &shape.quasi)
        };
        // Of equals the first.
        let nearest =
            shapes.iter_mut().filter(fits).reduce(|best, next| if says(next) > says(best) { next } else { best });
        match nearest {
            Some(shape) if sensitive => shape.sensitive.push(attribute),
            Some(shape) => shape.insensitive.push(attribute),
            None => {
                let own = vec![attribute];
                shapes.push(if sensitive {
                    GroupShape { sensitive: own, ..shape(Vec::new()) }
                } else {
                    GroupShape { insensitive: own, ..shape(Vec::new()) }
                });
                why.push(None);
            }
        }
    }
    share(&mut shapes, shared, &is_static)?;
    let mut taken = BTreeSet::new();
    for (number, shape) in shapes.iter_mut().enumerate() {
        shape.sensitive.sort_unstable();
        shape.insensitive.sort_unstable();
        shape.name = name(schema, shape, number);
        while taken.contains(&shape.name) {
            shape.name.insert_str(0, "group-");
        }
        taken.insert(shape.name.clone());
    }
    let wishes =
        wishes.into_iter().zip(answers).map(|(wish, answer)| settled(wish, &answer, &shapes, &is_static, apart));
    Ok(Grown { how: config.plan.groups, wishes: wishes.collect(), shapes, why, records: read.batch.rows() })
}

/// Puts what is shared into every group that changes.
fn share(shapes: &mut [GroupShape], shared: &[usize], is_static: &dyn Fn(usize) -> bool) -> Result<(), Unchosen> {
    let mut groups = 0;
    for shape in shapes.iter_mut().filter(|shape| !shared.is_empty() && !shape.quasi.is_empty()) {
        if shape.quasi.iter().chain(&shape.sensitive).any(|&a| !is_static(a)) {
            // The name of a group is that of its own first attribute.
            shape.quasi.extend_from_slice(shared);
            groups += 1;
        }
    }
    if shared.is_empty() || groups > 1 { Ok(()) } else { Err(Unchosen::Unshared) }
}

/// The sets that groups are made of: cliques of what meets in no quasi-identifier, or the largest sets that are none.
fn sets(how: Grouping, config: &Config, read: &Read, quasi: &[usize]) -> Result<Vec<Vec<usize>>, Unchosen> {
    if how == Grouping::Cliques && quasi.len() > MOST_ATTRIBUTES {
        return Err(Unchosen::TooMany { attributes: quasi.len() });
    }
    let found = borders(config, read, quasi)?;
    if !found.complete {
        return Err(Unchosen::Late(SEARCHING));
    }
    let own = |set: &AttributeSet| -> Vec<usize> { set.iter().map(|place| quasi[place]).collect() };
    Ok(match how {
        Grouping::Cliques => {
            let qids: Vec<AttributeSet> = found.minimal_qids.iter().map(|set| own(set).into_iter().collect()).collect();
            cliques(quasi, &qids)
        }
        _ => found.maximal_non_qids.iter().map(own).collect(),
    })
}

/// The quasi-identifiers of the records, by places in `quasi`. Rare values that can only leave as `*` are one; others are told apart.
fn borders(config: &Config, read: &Read, quasi: &[usize]) -> Result<Borders, ColumnsError> {
    let mut batch = read.batch.clone();
    let somebodys: Vec<bool> = batch.subjects.iter().map(|subject| *subject != NO_SUBJECT).collect();
    batch.retain_rows(&somebodys);
    let mut numbers = BTreeMap::new();
    let mut number = |subject: u64| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(subject).or_insert(next)
    };
    let subjects = batch.subjects.iter().map(|subject| number(*subject)).collect();
    let k = u32::try_from(config.privacy.crowd()).unwrap_or(u32::MAX);
    let columns: Vec<Vec<Code>> = quasi.iter().map(|&a| std::mem::take(&mut batch.columns[a])).collect();
    let table = CountedTable::new(columns, Some(subjects))?;
    let masked = table.masked(k);
    let column = |(place, &a): (usize, &usize)| {
        let is_flat = read.books[a].levels() == 2;
        (if is_flat { masked.column(place) } else { table.column(place) }).to_vec()
    };
    let columns = quasi.iter().enumerate().map(column).collect();
    let table = CountedTable::new(columns, table.subject_numbers().map(<[u32]>::to_vec))?;
    let question = Question {
        k,
        strategy: Strategy::default(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        budget: Some(SEARCHING),
        memory: None,
        columns: (0..table.width()).collect(),
    };
    Ok(qid::search(&table, &question, &|_| {}))
}

fn shape(quasi: Vec<usize>) -> GroupShape {
    GroupShape { name: String::new(), quasi, sensitive: Vec::new(), insensitive: Vec::new(), ranges: false }
}

/// What a wish has come to in the groups as they are, what stands beside their classes included.
fn settled(
    wish: Wish,
    answer: &WishAnswer,
    shapes: &[GroupShape],
    is_static: &dyn Fn(usize) -> bool,
    compartmented: &[usize],
) -> (Wish, WishAnswer) {
    let part = |shape: &GroupShape| -> Vec<usize> {
        let all = [&shape.quasi[..], &shape.sensitive, &shape.insensitive].concat();
        wish.attributes.iter().copied().filter(|a| all.contains(a)).collect()
    };
    // Of equals the first.
    let largest = shapes.iter().map(part).reduce(|best, next| if next.len() > best.len() { next } else { best });
    let together = largest.unwrap_or_default();
    let pace = together.first().map(|&a| is_static(a));
    let why = |a: usize| {
        let known = answer.apart.iter().find(|(apart, _)| *apart == a);
        let is_divided = |a: &usize| compartmented.contains(a);
        let otherwise = if is_divided(&a) || together.first().is_some_and(is_divided) {
            Apart::Compartment
        } else if pace == Some(is_static(a)) {
            Apart::Elsewhere
        } else {
            Apart::Pace
        };
        (a, known.map_or(otherwise, |(_, why)| *why))
    };
    let apart = wish.attributes.iter().filter(|a| !together.contains(a)).map(|&a| why(a)).collect();
    (wish, WishAnswer { together, apart, loss: answer.loss })
}

/// The attributes that do not change within a person, where that matters: none where nothing waits for a delay.
fn still(config: &Config, schema: &Schema, read: &Read, attributes: &[usize]) -> Vec<usize> {
    if schema.subject.is_none() || config.privacy.longest_delay().is_zero() {
        return Vec::new();
    }
    let mut window = Window::new(schema.attributes.len(), read.batch.rows().max(1));
    window.push(&read.batch);
    let paces = paces(schema, attributes, &window, config.privacy.crowd(), config.privacy.colluders);
    paces.into_iter().filter(|pace| pace.changes != Changes::Always).map(|pace| pace.attribute).collect()
}

/// A name for files and labels: that of the group's first attribute, where it is plain.
fn name(schema: &Schema, shape: &GroupShape, number: usize) -> String {
    let first = shape.quasi.iter().chain(&shape.sensitive).chain(&shape.insensitive).next();
    let name = first.map_or("", |&a| schema.attributes[a].name.as_str());
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    if (1..=50).contains(&name.len()) && name.bytes().all(plain) {
        name.to_owned()
    } else {
        format!("group-{}", number + 1)
    }
}
