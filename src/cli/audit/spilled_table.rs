//! Columns in memory or in a temporary file.

use super::args::{AuditArgs, BackendArg, table_failure};
use crate::cli::outcome::Failure;
use crate::io::file::FileFormat;
use crate::io::table::{LoadedTable, SpillSettings, SpilledCodes, TableColumn};
use anyhow::anyhow;
use std::path::Path;
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::schema::Role;
use throng_risk::audit::{AuditColumn, AuditError, PartialColumnCounts, ReadColumns};
use throng_risk::counting::codes::WrittenColumns;

/// Refuses options that a table in a file lacks.
pub(super) fn refuse_unspillable(args: &AuditArgs) -> Result<(), Failure> {
    if args.temp.is_none() {
        return Ok(());
    }
    if args.backend == BackendArg::Cuda {
        let why = "--backend cuda: a table in a file (--temp) is counted on the CPU; remove one of the two options";
        return Err(Failure::Usage(anyhow!(why)));
    }
    if args.schema.is_none() && args.format().map_err(table_failure)? == FileFormat::Ndjson {
        let why = "--temp: NDJSON may add columns up to its last line, but a table in a file has fixed columns: give a --schema, or \
                   convert it to Parquet";
        return Err(Failure::Usage(anyhow!(why)));
    }
    Ok(())
}

fn to_audit_column(column: TableColumn) -> AuditColumn {
    AuditColumn {
        role: column.attribute.as_ref().map(|a| match a.role {
            // It still identifies subjects.
            Role::Subject => Role::Identifier,
            role => role,
        }),
        // Raw values and `*` are two levels.
        recodable: column.attribute.as_ref().is_some_and(|a| a.hierarchy.levels() > 2),
        name: column.name,
        codes: column.codes,
        dictionary: column.dictionary,
    }
}

impl AuditArgs {
    /// Three eighths of the memory are for dictionaries.
    pub(super) fn spill_settings<'a>(&self, directory: &'a Path, people: Option<&'a str>) -> SpillSettings<'a> {
        let identifier_cardinality = self.identifier_cardinality;
        SpillSettings { directory, dictionaries: self.memory / 8 * 3, identifier_cardinality, people }
    }

    /// The other five eighths.
    pub(super) fn memory_beside_dictionaries(&self) -> u64 {
        self.memory / 8 * 5
    }

    /// `subject` counts subjects.
    pub(super) fn collect_columns(&self, read: LoadedTable, subject: Option<usize>) -> Result<ReadColumns, AuditError> {
        let Some(SpilledCodes { writer, numbers }) = read.spilled else {
            let columns = read.columns.into_iter().map(to_audit_column).collect();
            return ReadColumns::from_memory(columns, read.numbers, subject);
        };
        let rows = usize::try_from(read.rows).unwrap_or(usize::MAX);
        let directory = self.temp.clone();
        let people = subject.map(|at| (numbers[at], FIRST_VALUE));
        let memory = self.memory_beside_dictionaries() / 2;
        let mut written =
            WrittenColumns { writer, columns: Vec::new(), rows, subject_column: people, directory, memory };
        let (mut columns, mut given_up): (Vec<AuditColumn>, Vec<(AuditColumn, PartialColumnCounts)>) =
            (Vec::new(), Vec::new());
        let mut name = None;
        for (at, (mut column, number)) in read.columns.into_iter().zip(numbers).enumerate() {
            if Some(at) == subject {
                name = Some(column.name);
            } else if let Some(so_far) = column.given_up.take() {
                given_up.push((to_audit_column(column), so_far));
            } else {
                written.columns.push(number);
                columns.push(to_audit_column(column));
            }
        }
        Ok(ReadColumns { columns, unread_columns: given_up, written, numbers: read.numbers, subject: name })
    }
}
