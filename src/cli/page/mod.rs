//! What the pages of all commands share: one self-contained document with no script and nothing fetched, light and dark, made to be
//! printed and handed on; its style, its tables and its bars.

pub mod bars;
mod escape;

pub use escape::escape;

use super::text::number;

const STYLE: &str = include_str!("page.css");

/// A page; `title` is text of HTML, `head` and `body` are its parts.
#[must_use]
pub fn document(title: &str, head: &str, body: &str) -> String {
    let foot = format!("<footer>throng {}</footer>", env!("CARGO_PKG_VERSION"));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>{STYLE}</style>\n</head>\n<body>\n{head}\n<main>\n{body}\n</main>\n{foot}\n</body>\n</html>\n"
    )
}

/// A table that scrolls where it must and is a list of cards where it is narrow. The first cell of a row names it.
#[must_use]
pub fn table(label: &str, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let (mut head, mut body) = (String::new(), String::new());
    for (at, name) in heads.iter().enumerate() {
        let class = if at == 0 { "" } else { " class=\"n\"" };
        head += &format!("<th scope=\"col\" role=\"columnheader\"{class}>{name}</th>");
    }
    for row in rows {
        body += "<tr role=\"row\">";
        for (at, cell) in row.iter().enumerate() {
            body += &match (at, heads.get(at)) {
                (0, _) => format!("<th scope=\"row\" role=\"rowheader\" class=\"set\">{cell}</th>"),
                (_, name) => {
                    let name = name.copied().unwrap_or_default();
                    format!("<td role=\"cell\" class=\"n\" data-name=\"{name}\">{cell}</td>")
                }
            };
        }
        body += "</tr>";
    }
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table class=\"long\" role=\"table\">\
         <thead role=\"rowgroup\"><tr role=\"row\">{head}</tr></thead><tbody role=\"rowgroup\">{body}</tbody></table></div>"
    )
}

/// A part of a page, with its title and what it shows.
#[must_use]
pub fn card(title: &str, sub: &str, content: &str) -> String {
    format!("<section class=\"card\"><h2>{title}</h2><p class=\"sub\">{sub}</p>{content}</section>")
}

/// Names of a set, each in a box of its own.
#[must_use]
pub fn set(names: &[String]) -> String {
    names.iter().map(|name| format!("<span>{}</span>", escape(name))).collect()
}

/// Says how many are not shown.
#[must_use]
pub fn more(all: usize, shown: usize) -> String {
    match all.checked_sub(shown).filter(|rest| *rest > 0) {
        None => String::new(),
        Some(rest) => format!("<p class=\"more\">… and {} more; the JSON report has them all</p>", number(rest as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escape("<b a='1' c=\"2\">&"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
        assert_eq!(escape("a\u{0}b\u{202e}"), "a\u{fffd}b\u{fffd}");
    }
}
