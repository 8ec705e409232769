//! Columns of an output file.

use std::collections::BTreeSet;

use throng_core::values::cell_bounds::BoundType;
use throng_core::values::schema::Attribute;

/// Type of an output column; only Parquet has types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8.
    Text,
    /// UTF-8, followed by the columns `NAME_min` and `NAME_max` of this type.
    TextWithBounds(BoundType),
    /// INT64.
    Count,
    /// DOUBLE.
    Number,
    /// TIMESTAMP in milliseconds, UTC.
    Time,
}

/// Column of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    /// Name in the output.
    pub name: String,
    /// Type in Parquet.
    pub kind: ColumnType,
}

impl OutputColumn {
    /// Creates a column of texts.
    pub fn text(name: &str) -> Self {
        Self { name: name.to_owned(), kind: ColumnType::Text }
    }

    /// Returns the columns of fragments with these attributes.
    ///
    /// The types depend on the schema alone, not on the released levels: files of one schema have equal columns.
    /// An attribute has no bounds if another attribute has the name of one of them, in any case (SQL).
    pub fn of_attributes<'a>(attributes: impl Iterator<Item = &'a Attribute> + Clone) -> Vec<Self> {
        let taken: BTreeSet<String> = attributes.clone().map(|attribute| attribute.name.to_lowercase()).collect();
        let column = |attribute: &Attribute| {
            let is_free = bound_names(&attribute.name).iter().all(|name| !taken.contains(&name.to_lowercase()));
            let kind = BoundType::of(attribute).filter(|_| is_free);
            let kind = kind.map_or(ColumnType::Text, ColumnType::TextWithBounds);
            Self { name: attribute.name.clone(), kind }
        };
        attributes.map(column).collect()
    }

    /// Returns the type and names of the bounds.
    pub fn bounds(&self) -> Option<(BoundType, [String; 2])> {
        match self.kind {
            ColumnType::TextWithBounds(kind) => Some((kind, bound_names(&self.name))),
            ColumnType::Text | ColumnType::Count | ColumnType::Number | ColumnType::Time => None,
        }
    }
}

fn bound_names(name: &str) -> [String; 2] {
    ["min", "max"].map(|end| format!("{name}_{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use throng_core::values::schema::Schema;

    #[test]
    fn bounds_never_take_the_name_of_an_attribute() {
        let names = ["pulse", "temp", "Temp_MAX", "pulse_avg", "city"];
        let attribute = |name: &str| {
            let kind = if name == "city" { "string" } else { "float" };
            format!("[[attribute]]\nname = {name:?}\ntype = {kind:?}\n")
        };
        let text = format!("name = \"t\"\n{}", names.map(attribute).concat());
        let schema = Schema::parse(&text, "s.toml", Path::new(".")).expect("a schema");
        let columns = OutputColumn::of_attributes(schema.attributes.iter().map(AsRef::as_ref));
        let bounds: Vec<_> = columns.iter().map(|column| column.bounds().map(|(_, names)| names.join(" "))).collect();
        let expected = [
            Some("pulse_min pulse_max"),
            None,
            Some("Temp_MAX_min Temp_MAX_max"),
            Some("pulse_avg_min pulse_avg_max"),
            None,
        ];
        assert_eq!(bounds.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    }
}
