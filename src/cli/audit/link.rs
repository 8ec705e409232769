//! `throng audit --link`: which records can be tied to people of whom something is known.

use super::args::{AuditArgs, MAX_COLUMNS, of_table};
use crate::cli::outcome::Failure;
use crate::cli::written_down::format_of;
use crate::io::table::{self, Request, TableColumn, WholeTable};
use anyhow::anyhow;
use hashbrown::HashMap;
use std::path::Path;
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::schema::Schema;
use throng_formats::Limits;
use throng_risk::linking::{Linked, SharedColumn, link};

/// Ties the records of `read` to the people of `file`.
pub(super) fn tie(
    args: &AuditArgs,
    file: &Path,
    schema: Option<&Schema>,
    read: &WholeTable,
) -> Result<Linked, Failure> {
    let subject = args.subject_name(schema);
    let wanted = |schema: Option<&Schema>, columns: Option<&[String]>| {
        let request = Request {
            path: file,
            more: &[],
            format: format_of(file, None, None).map_err(of_table)?,
            schema,
            columns,
            limits: Limits::of_whole_files(),
            max_columns: MAX_COLUMNS,
            max_bytes: args.memory,
            max_records: None,
            skip_unreadable: args.skip_unreadable,
        };
        table::read(&request, &mut |_| ()).map_err(of_table)
    };
    // Its columns first: a schema is asked only for those that both files have.
    let named = wanted(None, None)?;
    let shared: Vec<String> = read
        .columns
        .iter()
        .map(|column| column.name.clone())
        .filter(|name| Some(name) != subject.as_ref() && named.columns.iter().any(|theirs| theirs.name == *name))
        .collect();
    if shared.is_empty() {
        let said =
            format!("--link: {} has no column of {} but the one that counts people", file.display(), args.named());
        return Err(Failure::Usage(anyhow!(said)));
    }
    let known = if schema.is_some() { wanted(schema, Some(&shared))? } else { named };
    let of = |table: &'_ WholeTable, name: &str| table.columns.iter().position(|column| column.name == name);
    let mut columns = Vec::with_capacity(shared.len());
    for name in &shared {
        if let (Some(own), Some(theirs)) = (of(read, name), of(&known, name)) {
            columns.push(both(&read.columns[own], &known.columns[theirs]));
        }
    }
    let subject = subject.and_then(|name| of(read, &name)).map(|at| &read.columns[at].codes);
    let people: Option<Vec<Option<u32>>> =
        subject.map(|codes| codes.iter().map(|&code| (code >= FIRST_VALUE).then_some(code)).collect());
    Ok(link(&file.display().to_string(), &columns, people.as_deref(), args.k))
}

/// One column of both files, in the codes of the first.
fn both(own: &TableColumn, theirs: &TableColumn) -> SharedColumn {
    let codes = |column: &TableColumn| FIRST_VALUE..FIRST_VALUE + column.dictionary.values() as u32;
    let by_text: HashMap<&str, u32> = codes(own).filter_map(|code| Some((own.dictionary.text(code)?, code))).collect();
    let mut in_own: Vec<Option<u32>> = vec![None; FIRST_VALUE as usize];
    in_own.extend(codes(theirs).map(|code| by_text.get(theirs.dictionary.text(code)?).copied()));
    SharedColumn {
        name: own.name.clone(),
        own: own.codes.clone(),
        known: theirs.codes.iter().map(|&code| in_own[code as usize]).collect(),
    }
}
