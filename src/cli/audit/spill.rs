//! Columns as they are judged, in memory or in a file.

use super::args::{AuditArgs, BackendArg, of_table};
use crate::cli::outcome::Failure;
use crate::io::file::Format;
use crate::io::table::{Spill, Spilled, TableColumn, WholeTable};
use anyhow::anyhow;
use std::path::Path;
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::schema::Role;
use throng_risk::audit::{AuditColumn, AuditError, GivenUp, ReadColumns};
use throng_risk::counting::codes::WrittenColumns;

/// Refuses what a table in a file cannot be asked, before anything is read.
pub(super) fn check(args: &AuditArgs) -> Result<(), Failure> {
    if args.temp.is_none() {
        return Ok(());
    }
    if args.backend == BackendArg::Cuda {
        let why =
            "--backend cuda: a table in a file (--temp) is counted on this machine's cores; leave one of the two out";
        return Err(Failure::Usage(anyhow!(why)));
    }
    if args.schema.is_none() && args.format().map_err(of_table)? == Format::Ndjson {
        let why = "--temp: NDJSON may bring new columns to its last line, and a table in a file has those that it begins with; give a \
                   --schema, or convert it to Parquet";
        return Err(Failure::Usage(anyhow!(why)));
    }
    Ok(())
}

/// A column as it is judged.
fn audit_column(column: TableColumn) -> AuditColumn {
    AuditColumn {
        role: column.attribute.as_ref().map(|a| match a.role {
            // Another column was named to count people by: this one still names them.
            Role::Subject => Role::Identifier,
            role => role,
        }),
        // The raw values and `*` are levels too.
        recodable: column.attribute.as_ref().is_some_and(|a| a.hierarchy.levels() > 2),
        name: column.name,
        codes: column.codes,
        dictionary: column.dictionary,
    }
}

impl AuditArgs {
    /// What becomes of the table: three eighths of the memory for its different values.
    pub(super) fn spill<'a>(&self, directory: &'a Path, people: Option<&'a str>) -> Spill<'a> {
        let identifier_cardinality = self.identifier_cardinality;
        Spill { directory, dictionaries: self.memory / 8 * 3, identifier_cardinality, people }
    }

    /// Memory for judging a table in a file: what its different values leave.
    pub(super) fn beside_values(&self) -> u64 {
        self.memory / 8 * 5
    }

    /// The columns of a table; column number `subject` counts people.
    pub(super) fn columns_of(&self, read: WholeTable, subject: Option<usize>) -> Result<ReadColumns, AuditError> {
        let Some(Spilled { writer, numbers }) = read.spilled else {
            let columns = read.columns.into_iter().map(audit_column).collect();
            return ReadColumns::held(columns, read.numbers, subject);
        };
        let rows = usize::try_from(read.rows).unwrap_or(usize::MAX);
        let directory = self.temp.clone();
        let people = subject.map(|at| (numbers[at], FIRST_VALUE));
        let memory = self.beside_values() / 2;
        let mut written = WrittenColumns { writer, columns: Vec::new(), rows, people, directory, memory };
        let (mut columns, mut given_up): (Vec<AuditColumn>, Vec<(AuditColumn, GivenUp)>) = (Vec::new(), Vec::new());
        let mut name = None;
        for (at, (mut column, number)) in read.columns.into_iter().zip(numbers).enumerate() {
            if Some(at) == subject {
                name = Some(column.name);
            } else if let Some(so_far) = column.given_up.take() {
                given_up.push((audit_column(column), so_far));
            } else {
                written.columns.push(number);
                columns.push(audit_column(column));
            }
        }
        Ok(ReadColumns { columns, given_up, written, numbers: read.numbers, subject: name })
    }
}
