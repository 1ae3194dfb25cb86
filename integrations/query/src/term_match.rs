//! A term of a search, and whether an event of a run matches it.

/// The fields that every event has: their numbers are not searched, since a number of a person would be found in every time.
const NUMBERS: [&str; 3] = ["\"seq\":", "\"at\":", "\"epoch\":"];

/// Something that an event of a run has to contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Needle {
    /// A text, in any case. A number is found as a whole one, so that it is not found in times.
    Text(String),
    /// A field of this name with this value: a number or a truth value as it is, a text by its beginning.
    Field(String, String),
}

impl Needle {
    /// Returns the text that an event's line of JSON contains.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Field(name, _) => format!("\"{name}\":"),
        }
    }

    /// Returns the text or the value that a person has typed.
    pub(super) fn typed(&self) -> &str {
        match self {
            Self::Text(text) | Self::Field(_, text) => text,
        }
    }

    /// Returns whether every line with the text is a match.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Text(text) if !is_number(text))
    }

    /// Returns whether a line of JSON is a match.
    pub(super) fn is_in(&self, line: &str) -> bool {
        let (line, text) = (line.to_lowercase(), self.text().to_lowercase());
        let mut places = line.match_indices(&text).map(|(at, _)| (line.get(..at), line.get(at + text.len()..)));
        match self {
            Self::Text(_) if is_number(&text) => {
                // Nor in an id of hexadecimal digits.
                let joins = |letter: char| letter.is_ascii_alphanumeric();
                places.any(|(before, after)| {
                    let before = before.unwrap_or_default();
                    !before.ends_with(joins)
                        && !NUMBERS.iter().any(|field| before.ends_with(field))
                        && !after.unwrap_or_default().starts_with(joins)
                })
            }
            Self::Text(_) => places.next().is_some(),
            Self::Field(_, value) => {
                let value = value.to_lowercase();
                places.any(|(_, after)| is_value(after.unwrap_or_default(), &value))
            }
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether JSON begins with a value.
fn is_value(json: &str, value: &str) -> bool {
    if let Some(text) = json.strip_prefix('"') {
        return text.starts_with(value);
    }
    json.strip_prefix(value).is_some_and(|rest| rest.starts_with([',', '}', ']']))
}
