//! One item of a Responses answer: a message, a thought, a call, or something that only the server understands.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::record::{Part, ProposedCall};

/// The field of the opaque part that stands before a text and keeps the phase of its message, which newer models want
/// back.
pub(super) const PHASE_MARK: &str = "phase";

/// An item while it streams: what the server said of it, and what came in pieces.
#[derive(Debug, Default)]
pub(super) struct Item {
    /// The item as the server last sent it.
    pub(super) value: Value,
    /// Whether that was its end.
    pub(super) done: bool,
    /// The pieces of its text, of its thoughts, or of its arguments.
    pub(super) text: String,
    /// Which part of its text or thoughts the last piece belonged to.
    pub(super) section: Option<u64>,
    /// Whether a piece has named the call's tool.
    pub(super) announced: bool,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Thought,
    Call,
    Other,
}

impl Item {
    /// Makes an item that ended.
    pub(super) fn whole(value: Value) -> Self {
        Self { value, done: true, ..Self::default() }
    }

    pub(super) fn kind(&self) -> Kind {
        match self.value.get("type").and_then(Value::as_str) {
            Some("message") => Kind::Message,
            Some("reasoning") => Kind::Thought,
            Some("function_call") => Kind::Call,
            _ => Kind::Other,
        }
    }

    /// Returns the tool's name, for a call.
    pub(super) fn name(&self) -> Option<&str> {
        self.value.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
    }

    /// Returns how many parts the item becomes as far as it is known.
    pub(super) fn parts(&self) -> u32 {
        match self.kind() {
            Kind::Message => u32::from(!self.message_text().is_empty()) + u32::from(self.phase().is_some()),
            Kind::Thought | Kind::Call | Kind::Other => 1,
        }
    }

    /// Returns how many parts stand before the one that streams.
    pub(super) fn parts_before_stream(&self) -> u32 {
        u32::from(self.kind() == Kind::Message && self.phase().is_some())
    }

    /// Turns the item into its parts, and adds its call to `calls`.
    pub(super) fn into_parts(self, calls: &mut Vec<ProposedCall>) -> Vec<Part> {
        match self.kind() {
            Kind::Message => {
                let mark = self.phase().map(|phase| Part::Opaque { data: json!({ PHASE_MARK: phase }) });
                let text = Some(self.message_text()).filter(|text| !text.is_empty()).map(|text| Part::Text { text });
                mark.into_iter().chain(text).collect()
            }
            Kind::Thought => {
                let text = self.thought_text();
                vec![Part::Reasoning { text, data: sendable_thought(self.value) }]
            }
            Kind::Call => {
                let index = u32::try_from(calls.len()).unwrap_or(u32::MAX);
                calls.push(self.into_call());
                vec![Part::Call { index }]
            }
            Kind::Other => vec![Part::Opaque { data: self.value }],
        }
    }

    /// Returns the text that its pieces add up to.
    pub(super) fn whole_text(&self) -> Option<String> {
        match self.kind() {
            Kind::Message => Some(self.message_text()),
            Kind::Thought => Some(self.thought_text()),
            Kind::Call => self.value.get("arguments").and_then(Value::as_str).map(str::to_owned),
            Kind::Other => None,
        }
    }

    fn phase(&self) -> Option<&Value> {
        self.value.get("phase").filter(|phase| phase.is_string())
    }

    fn message_text(&self) -> String {
        let texts = self.value.get("content").and_then(Value::as_array).into_iter().flatten();
        let text: String =
            texts.filter_map(|part| part.get("text").or_else(|| part.get("refusal"))?.as_str()).collect();
        if text.is_empty() { self.text.clone() } else { text }
    }

    fn thought_text(&self) -> String {
        let texts = |name: &str| -> Vec<&str> {
            let parts = self.value.get(name).and_then(Value::as_array).into_iter().flatten();
            parts.filter_map(|part| part.get("text")?.as_str()).collect()
        };
        let summary = texts("summary");
        let known = if summary.is_empty() { texts("content") } else { summary }.join("\n\n");
        if known.is_empty() { self.text.clone() } else { known }
    }

    fn into_call(self) -> ProposedCall {
        let text = |name: &str| self.value.get(name).and_then(Value::as_str).map(str::to_owned);
        let arguments =
            text("arguments").filter(|arguments| !arguments.is_empty()).unwrap_or_else(|| self.text.clone());
        ProposedCall {
            provider_id: text("call_id").or_else(|| text("id")),
            name: text("name").unwrap_or_default(),
            arguments: if arguments.trim().is_empty() { "{}".to_owned() } else { arguments },
            data: None,
        }
    }
}

/// The items that ask their receiver to do something, or a person to decide. Tools here answer function calls alone.
const ASKING: [&str; 6] =
    ["apply_patch_call", "computer_call", "custom_tool_call", "local_shell_call", "mcp_approval_request", "shell_call"];

/// Returns the type of the first item that waits for an answer which nothing here can give. The server itself has answered
/// an item whose output is among the items.
pub(super) fn unanswerable(items: &BTreeMap<u64, Item>) -> Option<String> {
    fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
        item.value.get(name)?.as_str()
    }
    let is_asking = |item: &&Item| match text(item, "type") {
        Some("tool_search_call") => text(item, "execution") == Some("client"),
        kind => kind.is_some_and(|kind| ASKING.contains(&kind)),
    };
    let is_open = |item: &&Item| {
        let output = text(item, "type").map(|kind| format!("{kind}_output"));
        let id = text(item, "call_id");
        let answers = |other: &Item| text(other, "type") == output.as_deref() && text(other, "call_id") == id;
        id.is_none() || !items.values().any(answers)
    };
    let open = items.values().filter(is_asking).find(is_open)?;
    text(open, "type").map(str::to_owned)
}

/// Keeps of a thought what goes back. A thought that is neither encrypted nor in plain text is only known to a server
/// that stores it, and none does.
fn sendable_thought(value: Value) -> Option<Value> {
    let Value::Object(mut fields) = value else { return None };
    fields.remove("status");
    for name in ["encrypted_content", "content"] {
        if fields.get(name).is_some_and(|value| value.is_null() || value.as_array().is_some_and(Vec::is_empty)) {
            fields.remove(name);
        }
    }
    let value = Value::Object(fields);
    is_sendable_thought(&value).then_some(value)
}

/// Says whether a thought's data is an item of this dialect that a server can use.
pub(super) fn is_sendable_thought(data: &Value) -> bool {
    data.get("type").is_some_and(|kind| kind == "reasoning")
        && ["encrypted_content", "content"].iter().any(|name| data.get(*name).is_some_and(|value| !value.is_null()))
}
