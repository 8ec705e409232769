//! Detection of direct identifiers by form, narrower than the rules that hide them: a match means that hiding failed.

/// Detects an e-mail address, link, international telephone number or UUID in ASCII JSON text.
pub(super) fn has_identifier_form(json: &str) -> bool {
    let Some(text) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return false };
    let bare = ["mailto:", "tel:", "urn:uuid:"].into_iter().find_map(|scheme| text.strip_prefix(scheme));
    let text = bare.unwrap_or(text);
    is_address(text) || is_link(text) || is_telephone(text) || is_uuid(text)
}

fn is_word(text: &str, also: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

fn is_address(text: &str) -> bool {
    let mut parts = text.split('@');
    let (Some(local), Some(domain), None) = (parts.next(), parts.next(), parts.next()) else { return false };
    let labels: Vec<&str> = domain.split('.').collect();
    let top = labels.last().is_some_and(|top| top.len() >= 2 && top.bytes().all(|b| b.is_ascii_alphabetic()));
    text.len() <= 200
        && local.len() <= 60
        && is_word(local, "._-")
        && labels.len() >= 2
        && top
        && labels.iter().all(|l| is_word(l, ""))
}

fn is_link(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    text.len() <= 200 && rest.is_some_and(|rest| is_word(rest, "./-_"))
}

fn is_telephone(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or("");
    (8..=15).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::identifier_shapes;
    use proptest::prelude::*;

    #[test]
    fn identifier_forms_are_detected() {
        for text in [
            "anna@example.org",
            "https://example.org/u/7",
            "+41446321111",
            "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
            "mailto:anna@example.org",
            "tel:+41446321111",
            "urn:uuid:3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        ] {
            assert!(has_identifier_form(&format!("\"{text}\"")), "{text}");
            assert!(!has_identifier_form(text), "a number is none");
        }
        for text in ["", "*", "Zug", "a@b", "2021-05-24", "30-39", "null"] {
            assert!(!has_identifier_form(&format!("\"{text}\"")), "{text}");
        }
    }

    proptest! {
        #[test]
        fn identifier_forms_are_subset_of_hidden_shapes(
            text in "(mailto:|tel:|urn:uuid:)?([a-z._-]{1,6}@[a-z0-9]{1,4}(\\.[a-z0-9]{1,4}){0,2}|https?://[a-z./_-]{0,9}|\\+[0-9]{6,16}|[0-9a-fA-F]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[ -~]{0,30})"
        ) {
            let json = crate::values::json::quoted(&text);
            if has_identifier_form(&json) {
                prop_assert!(identifier_shapes::nested_shape(&json).is_some(), "{}", json);
            }
        }
    }
}
