//! Builds the schemas of the scenarios from a head and common attributes.

/// `schema!("visits"; person, text "city", more "[[attribute]]\n…")`: the text of a schema, as a constant.
///
/// | part | attribute |
/// |---|---|
/// | `person` | text, the subject |
/// | `text "city"` | text, quasi |
/// | `number "age"` | whole number, quasi |
/// | `hundred "age"` | whole number of 0 to 100 in intervals of 10 and 50, quasi |
/// | `sensitive "illness"` | text, sensitive |
/// | `more "…"` | additional TOML of the schema |
#[allow(unused_macros, reason = "every scenario is a crate of its own and uses a part of what is here")]
macro_rules! schema {
    (@person) => { "[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n" };
    (@text $name:literal) => { concat!("[[attribute]]\nname = \"", $name, "\"\ntype = \"string\"\n") };
    (@number $name:literal) => { concat!("[[attribute]]\nname = \"", $name, "\"\ntype = \"integer\"\n") };
    (@hundred $name:literal) => {
        concat!(
            "[[attribute]]\nname = \"", $name, "\"\ntype = \"integer\"\n[attribute.hierarchy]\nkind = \"intervals\"\n",
            "min = 0\nmax = 100\nwidths = [10, 50]\n"
        )
    };
    (@sensitive $name:literal) => {
        concat!("[[attribute]]\nname = \"", $name, "\"\ntype = \"string\"\nrole = \"sensitive\"\n")
    };
    (@more $text:literal) => { $text };
    ($name:literal; $($kind:ident $($argument:literal)?),+ $(,)?) => {
        concat!("name = \"", $name, "\"\n", $(schema!(@$kind $($argument)?)),+)
    };
}

#[allow(unused_imports, reason = "as above")]
pub(crate) use schema;

pub const PERSON: &str = schema!(@person);
pub const AGE: &str = schema!(@hundred "age");
pub const CITY: &str = schema!(@text "city");
pub const MOOD: &str = schema!(@text "mood");
pub const ILLNESS: &str = schema!(@sensitive "illness");

pub const VISITS: &str = schema!("visits"; person, text "city", text "ward");
