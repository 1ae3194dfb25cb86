//! Writer for request bodies, assembled from fragments that were encoded once.
//!
//! Fields keep the order in which they are written, so a request begins with the same bytes as the previous one, up to the
//! first differing message. A field in the request's own `extra` overrides the adapter's.

use std::borrow::Cow;
use std::io;

use positronic_core::record::{ModelRequest, Settings};
use serde::Serialize;

/// The room in bytes for the fields beside prompts, messages and tools.
const OTHER_FIELDS: usize = 512;

/// The length in bytes of a usual message of an agent, a call or its result.
const USUAL_MESSAGE: usize = 256;

/// The length in bytes of the usual tools of a loop.
const USUAL_TOOLS: usize = 2048;

/// The size in bytes of the steps in which large bodies grow. glibc maps blocks of 128 KiB by themselves, and would map that of each
/// request anew if the freed one were smaller than the next.
const STEP: usize = 128 * 1024;

/// A partially written request body, a JSON object.
///
/// ```
/// use positronic_model_http::RequestBody;
/// use positronic_core::record::Settings;
///
/// let settings = Settings::default();
/// let mut body = RequestBody::new(&settings);
/// body.field("model", "m");
/// body.list("messages", |push| push(r#"{"role":"user"}"#));
/// assert_eq!(body.end(), r#"{"model":"m","messages":[{"role":"user"}]}"#);
/// ```
#[derive(Debug)]
pub struct RequestBody<'a> {
    out: String,
    settings: &'a Settings,
}

impl<'a> RequestBody<'a> {
    /// Begins the body of a request with these settings.
    #[must_use]
    pub fn new(settings: &'a Settings) -> Self {
        Self::with_capacity(settings, OTHER_FIELDS)
    }

    /// Begins the body of a request, with room for its prompts, messages and tools: a body that grows is copied each time, and
    /// room that it does not need is taken as long as its request lasts.
    #[must_use]
    pub fn of(request: &'a ModelRequest) -> Self {
        let messages = request.messages.read();
        let messages = messages.iter().map(|entry| entry.wire_len().map_or(USUAL_MESSAGE, |bytes| bytes + 1));
        let prompts = request.system.len() + request.context.len();
        // Line breaks and quotes take two characters.
        let prompts = prompts + prompts / 8;
        let tools = request.tools.wire_len().unwrap_or(USUAL_TOOLS);
        let bytes = OTHER_FIELDS + prompts + tools + messages.sum::<usize>();
        Self::with_capacity(&request.settings, if bytes < STEP { bytes } else { bytes.next_multiple_of(STEP) })
    }

    fn with_capacity(settings: &'a Settings, bytes: usize) -> Self {
        let mut out = String::with_capacity(bytes);
        out.push('{');
        Self { out, settings }
    }

    /// Writes a field.
    pub fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        if self.key(name) {
            encode(&mut self.out, value);
        }
    }

    /// Writes a field if it is set.
    pub fn some<T: Serialize>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.field(name, &value);
        }
    }

    /// Writes a field that is already encoded.
    pub fn raw(&mut self, name: &str, text: &str) {
        if self.key(name) {
            self.out.push_str(text);
        }
    }

    /// Writes a list field; `items` calls its argument with each encoded element.
    pub fn list(&mut self, name: &str, items: impl FnOnce(&mut dyn FnMut(&str))) {
        if !self.key(name) {
            return;
        }
        self.out.push('[');
        let out = &mut self.out;
        let mut first = true;
        items(&mut |item| {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            out.push_str(item);
        });
        self.out.push(']');
    }

    /// Writes the request's `extra` fields and closes the object.
    #[must_use]
    pub fn end(mut self) -> String {
        for (name, value) in &self.settings.extra {
            separate(&mut self.out, name);
            encode(&mut self.out, value);
        }
        self.out.push('}');
        self.out
    }

    fn key(&mut self, name: &str) -> bool {
        let ours = !self.settings.extra.contains_key(name);
        if ours {
            separate(&mut self.out, name);
        }
        ours
    }
}

fn separate(out: &mut String, name: &str) {
    if out.len() > 1 {
        out.push(',');
    }
    encode(out, name);
    out.push(':');
}

/// Appends a value as JSON.
fn encode<T: Serialize + ?Sized>(out: &mut String, value: &T) {
    // Only maps with keys that are not strings fail to encode, and a body has none.
    _ = serde_json::to_writer(Appended(out), value);
}

/// Writes to the end of a text.
struct Appended<'a>(&'a mut String);

impl io::Write for Appended<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The encoder writes whole characters.
        self.0.push_str(std::str::from_utf8(bytes).map_err(io::Error::other)?);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds elements to an encoded list, such as tools of the provider to a brain's own.
///
/// ```
/// use positronic_model_http::extend_list;
///
/// assert_eq!(extend_list("[1]", ["2".to_owned()]), "[1,2]");
/// assert_eq!(extend_list("[]", ["2".to_owned()]), "[2]");
/// ```
#[must_use]
pub fn extend_list(list: &str, more: impl IntoIterator<Item = String>) -> Cow<'_, str> {
    let mut extended = Cow::Borrowed(list);
    for element in more {
        let list = extended.to_mut();
        // The closing bracket.
        list.pop();
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(&element);
        list.push(']');
    }
    extended
}

/// Returns arguments that every server accepts. Some parse them for a template and reject the full request if they are
/// not JSON, so malformed arguments are wrapped.
#[must_use]
pub fn sendable_arguments(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        return "{}".into();
    }
    if serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok() {
        return arguments.into();
    }
    malformed(arguments).into()
}

/// Returns arguments for an API that takes a JSON object instead of text; anything else is wrapped in one.
#[must_use]
pub fn sendable_object(arguments: &str) -> Cow<'_, str> {
    let sendable = sendable_arguments(arguments);
    if sendable.trim_start().starts_with('{') { sendable } else { malformed(arguments).into() }
}

fn malformed(arguments: &str) -> String {
    serde_json::json!({ "malformed_arguments": arguments }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_always_sent_as_json() {
        assert_eq!(sendable_arguments(r#"{"a": 1}"#), r#"{"a": 1}"#);
        assert_eq!(sendable_arguments(" "), "{}");
        assert_eq!(sendable_arguments(r#"{"a""#), r#"{"malformed_arguments":"{\"a\""}"#);
        assert_eq!(sendable_object(" [1]"), r#"{"malformed_arguments":" [1]"}"#);
    }
}
