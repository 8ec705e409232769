//! HTML of all pages: one layout and style sheet, no external resources. `maud` escapes every text.

pub mod series_chart;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

/// Style sheet.
pub const STYLE: &str = include_str!("style.css");

/// Returns a self-contained document; `more` extends the head.
#[must_use]
pub fn document(title: &str, more: &Markup, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                (more)
                title { (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            (body)
        }
    };
    page.into_string().chars().map(|c| if c != '\n' && is_control_character(c) { '\u{fffd}' } else { c }).collect()
}

/// Returns the Content-Security-Policy of [`document`]: its style sheet and `data:` images.
#[must_use]
pub fn style_policy() -> String {
    format!("default-src 'none'; style-src {}; img-src data:", csp_source_hash(STYLE))
}

/// Returns the CSP hash of a style sheet or script.
#[must_use]
pub fn csp_source_hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Returns `true` for control of a terminal or the text direction.
#[must_use]
pub fn is_control_character(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_documents() {
        let name = "<b a=\"2\">&\u{0}b\u{202e}";
        let page = document(name, &html! {}, &html! { body title=(name) { (name) } });
        let escaped = "&lt;b a=&quot;2&quot;&gt;&amp;\u{fffd}b\u{fffd}";
        assert_eq!(page.matches(escaped).count(), 3, "{page}");
        assert!(!page.contains("<b "));
    }
}
