//! Defines the attributes of random schemas, and their possible cells.

/// Name, table, and JSON spellings of the cells of a possible attribute. Frequent cells are repeated; `""` is an absent
/// cell.
pub struct Attribute {
    pub name: &'static str,
    pub table: &'static str,
    pub cells: &'static [&'static str],
}

pub const ATTRIBUTES: &[Attribute] = &[
    Attribute {
        name: "age",
        table: "type = \"integer\"\n[attribute.hierarchy]\nkind = \"intervals\"\nmin = 0\nmax = 100\nwidths = [5, 20]\n",
        cells: &["31", "32", "\"31\"", "31.0", "33", "34", "71", "99", "150", "null", "", "\"old\""],
    },
    Attribute {
        name: "city",
        table: "type = \"string\"\n[attribute.hierarchy]\nkind = \"tree\"\n[attribute.hierarchy.tree]\n\
                \"CH\" = [\"Zug\", \"Bern\"]\n\"FR\" = [\"Paris\", \"Lyon\"]\n",
        cells: &[
            "\"Zug\"",
            "\"Zug\"",
            "\"Bern\"",
            "\"Bern\"",
            "\"Paris\"",
            "\"Lyon\"",
            "\"CH\"",
            "\"\"",
            "\"*\"",
            "null",
            "",
        ],
    },
    Attribute {
        name: "zip",
        table: "type = \"string\"\n[attribute.hierarchy]\nkind = \"prefix\"\nkeep = [3, 1]\n",
        cells: &[
            "\"60617\"",
            "\"60617\"",
            "\"60618\"",
            "\"60699\"",
            "\"10001\"",
            "\"606**\"",
            "\"6\"",
            "\"*\"",
            "\"\"",
            "null",
            "",
        ],
    },
    Attribute {
        name: "mood",
        table: "type = \"string\"\n",
        cells: &[
            "\"calm\"",
            "\"calm\"",
            "\"calm\"",
            "\"tired\"",
            "\"*\"",
            "\"\\\\*\"",
            "\"\"",
            "\"null\"",
            "{\"a\":1}",
            "null",
            "",
        ],
    },
    Attribute {
        name: "day",
        table: "type = \"date\"\nrole = \"time\"\n[attribute.hierarchy]\nkind = \"truncate\"\nlevels = [\"month\", \"year\"]\n",
        cells: &[
            "\"2021-05-24\"",
            "\"2021-05-24T10:00:00Z\"",
            "\"2021-05-25\"",
            "\"2021-06-01\"",
            "\"2022-01-01\"",
            "null",
            "",
        ],
    },
    Attribute {
        name: "steps",
        table: "type = \"float\"\nround = 0.5\n",
        cells: &["1.2", "1.3", "0.9", "0", "-0.0", "0.1", "2", "1e400", "null", ""],
    },
    Attribute {
        name: "illness",
        table: "type = \"string\"\nrole = \"sensitive\"\n[attribute.hierarchy]\nkind = \"tree\"\n[attribute.hierarchy.tree]\n\
                \"mild\" = [\"flu\", \"cold\"]\n\"grave\" = [\"hiv\"]\n",
        cells: &["\"flu\"", "\"flu\"", "\"cold\"", "\"cold\"", "\"hiv\"", "\"*\"", "\"\"", "null", ""],
    },
    Attribute {
        name: "device",
        table: "type = \"string\"\nrole = \"insensitive\"\n",
        cells: &["\"watch\"", "\"ring\"", "null", ""],
    },
];
