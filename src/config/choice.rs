//! Macro for configuration enumerations that spell each variant once.

/// Declares an enumeration with the given spellings and a `name` method.
macro_rules! choices {
    ($(#[$about:meta])* enum $name:ident { $($(#[$of:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name { $($(#[$of])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Returns the spelling in the configuration.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

pub(super) use choices;
