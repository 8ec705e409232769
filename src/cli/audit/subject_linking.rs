//! `throng audit --link`.

use super::args::{AuditArgs, MAX_AUDIT_COLUMNS, table_failure};
use crate::cli::input_formats::detect_record_format;
use crate::cli::outcome::Failure;
use crate::io::table::{self, LoadedTable, TableColumn, TableRequest};
use anyhow::anyhow;
use hashbrown::HashMap;
use std::path::Path;
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::schema::Schema;
use throng_formats::DecodeLimits;
use throng_risk::linking::{SharedColumn, SubjectLinkReport, link};

/// Links `read` to the subjects in `file`.
pub(super) fn link_to_known_subjects(
    args: &AuditArgs,
    file: &Path,
    schema: Option<&Schema>,
    read: &LoadedTable,
) -> Result<SubjectLinkReport, Failure> {
    let subject = args.subject_name(schema);
    let wanted = |schema: Option<&Schema>, columns: Option<&[String]>| {
        let request = TableRequest {
            path: file,
            more: &[],
            format: detect_record_format(file, None, None).map_err(table_failure)?,
            schema,
            selects: false,
            columns,
            limits: DecodeLimits::for_whole_files(),
            max_columns: MAX_AUDIT_COLUMNS,
            max_bytes: args.memory,
            max_records: None,
            skip_unreadable: args.skip_unreadable,
        };
        table::read(&request, &mut |_| ()).map_err(table_failure)
    };
    // The schema applies only to shared columns, so names are read first.
    let named = wanted(None, None)?;
    let shared: Vec<String> = read
        .columns
        .iter()
        .map(|column| column.name.clone())
        .filter(|name| Some(name) != subject.as_ref() && named.columns.iter().any(|theirs| theirs.name == *name))
        .collect();
    if shared.is_empty() {
        let said =
            format!("--link: {} shares no column with {} except the subject column", file.display(), args.input_name());
        return Err(Failure::Usage(anyhow!(said)));
    }
    let without_unit = schema.into_iter().flat_map(|schema| &schema.attributes).find_map(|attribute| {
        let companion = attribute.companion().filter(|_| shared.contains(&attribute.name))?;
        let has = named.columns.iter().any(|theirs| theirs.name == companion);
        (!has).then(|| format!("{:?} needs the column {companion:?}", attribute.name))
    });
    if let Some(column) = without_unit {
        let said = format!("--link: {} lacks a column: attribute {column}; add it to the file", file.display());
        return Err(Failure::Usage(anyhow!(said)));
    }
    let known = if schema.is_some() { wanted(schema, Some(&shared))? } else { named };
    let of = |table: &'_ LoadedTable, name: &str| table.columns.iter().position(|column| column.name == name);
    let mut columns = Vec::with_capacity(shared.len());
    for name in &shared {
        if let (Some(own), Some(theirs)) = (of(read, name), of(&known, name)) {
            columns.push(recode_shared_column(&read.columns[own], &known.columns[theirs]));
        }
    }
    let subject = subject.and_then(|name| of(read, &name)).map(|at| &read.columns[at].codes);
    let people: Option<Vec<Option<u32>>> =
        subject.map(|codes| codes.iter().map(|&code| (code >= FIRST_VALUE).then_some(code)).collect());
    Ok(link(&file.display().to_string(), &columns, people.as_deref(), args.k))
}

/// Converts to the codes of the first file.
fn recode_shared_column(own: &TableColumn, theirs: &TableColumn) -> SharedColumn {
    let codes = |column: &TableColumn| FIRST_VALUE..FIRST_VALUE + column.dictionary.values() as u32;
    let by_text: HashMap<&str, u32> = codes(own).filter_map(|code| Some((own.dictionary.text(code)?, code))).collect();
    let mut in_own: Vec<Option<u32>> = vec![None; FIRST_VALUE as usize];
    in_own.extend(codes(theirs).map(|code| by_text.get(theirs.dictionary.text(code)?).copied()));
    SharedColumn {
        name: own.name.clone(),
        record_codes: own.codes.clone(),
        known_codes: theirs.codes.iter().map(|&code| in_own[code as usize]).collect(),
    }
}
