//! The status page: one file that carries its style and script, and the policy that admits just these two.

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

const FRAME: &str = include_str!("status.html");
const STYLE: &str = include_str!("status.css");
const SCRIPT: &str = include_str!("status.js");

pub(super) struct Page {
    pub html: String,
    /// Content-Security-Policy: this style, this script, answers of this server, nothing else.
    pub policy: String,
}

pub(super) static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    Page {
        html: FRAME.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", SCRIPT),
        policy: format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; img-src data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            hash(STYLE),
            hash(SCRIPT)
        ),
    }
});

#[cfg(test)]
mod tests {
    use super::PAGE;

    #[test]
    fn the_page_needs_nobody_else() {
        let html = &PAGE.html;
        for foreign in
            ["https:", "http://", "//cdn", "@import", "url(", "<img", "<iframe", "src=", "eval(", "innerHTML"]
        {
            assert!(!html.contains(foreign), "the page contains {foreign}");
        }
        for (start, _) in html.match_indices("href=\"") {
            let link = &html[start + 6..];
            let own = ["data:,", "metrics", "plan", "status.json", "readyz"];
            assert!(own.iter().any(|page| link.starts_with(&format!("{page}\""))), "{}", &link[..20]);
        }
        assert!(!html.contains("/*STYLE*/") && !html.contains("/*SCRIPT*/"));
        assert!(!html.contains(" style=\"") && !html.contains(" onclick="), "the policy would refuse it");
    }

    /// What a keyboard and a screen reader need, and words that a newcomer knows.
    #[test]
    fn the_page_can_be_read_by_everybody() {
        let html = &PAGE.html;
        assert!(html.contains("<main>") && html.contains("max-width: 32rem"));
        assert_eq!(html.matches("<th ").count(), html.matches("<th scope=").count());
        assert_eq!(
            html.matches("class=\"scroll\"").count(),
            html.matches("class=\"scroll\" tabindex=\"0\" role=\"region\"").count()
        );
        for jargon in ["triage", "by chance", "ladder", "prosecutor", "entropy"] {
            assert!(!html.contains(jargon), "{jargon} is explained nowhere");
        }
        // Every chart is explained where it is drawn.
        let charts = html.matches("chart(\"flow\"").count() + html.matches("  risk(\"").count();
        assert!(charts >= 9 && html.matches("says: \"").count() == charts, "{charts} charts");
    }
}
