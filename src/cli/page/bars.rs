//! Horizontal bars as inline SVG: no script, sized by the page, coloured by its style sheet.

use super::escape::escape;

/// One row of a chart of horizontal bars.
pub struct Bar {
    /// Named so.
    pub label: String,
    /// Lengths of the pieces from left to right, as shares of the longest bar, and their colours.
    pub pieces: Vec<(f64, &'static str)>,
    /// Written behind the bar.
    pub value: String,
    /// Told when the pointer rests on it.
    pub tells: String,
}

/// Horizontal bars, one below the other: texts of the page's own size beside bars as long as there is room.
#[must_use]
pub fn bars(rows: &[Bar], name: &str) -> String {
    let mut out = format!("<ul class=\"bars\" aria-label=\"{}\">", escape(name));
    for row in rows {
        out += &format!(
            "<li title=\"{}\"><span class=\"name\">{}</span><svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" \
             aria-hidden=\"true\"><rect class=\"track\" width=\"100\" height=\"10\"/>",
            escape(&row.tells),
            escape(&row.label)
        );
        let mut left = 0.0;
        for (share, colour) in &row.pieces {
            // Something is never drawn as nothing.
            let long = if *share > 0.0 { (share * 100.0).max(0.5).min(100.0 - left) } else { 0.0 };
            if long > 0.0 {
                out += &format!("<rect class=\"{colour}\" x=\"{left:.2}\" width=\"{long:.2}\" height=\"10\"/>");
            }
            left += long;
        }
        out += &format!("</svg><span class=\"value\">{}</span></li>", escape(&row.value));
    }
    out + "</ul>"
}
