//! One item of a Responses answer: a message, a thought, a call, or something that only the server understands.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::record::{Part, ProposedCall};

/// The field of the opaque part that stands before a text and keeps what else its message had: its id, status and phase,
/// and whether it refuses. A message goes back as it came.
pub(super) const MESSAGE_MARK: &str = "message";

/// The field in which older logs keep the phase of a message alone.
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
    /// Whether its pieces are those of a refusal.
    pub(super) refuses: bool,
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
            Kind::Message => {
                let (text, refusal) = self.message_texts();
                u32::from(!text.is_empty()) + u32::from(!refusal.is_empty()) + u32::from(self.mark().is_some())
            }
            Kind::Thought | Kind::Call | Kind::Other => 1,
        }
    }

    /// Returns how many parts stand before the one that streams.
    pub(super) fn parts_before_stream(&self) -> u32 {
        u32::from(self.kind() == Kind::Message && self.mark().is_some())
    }

    /// Turns the item into its parts, and adds its call to `calls`.
    pub(super) fn into_parts(self, calls: &mut Vec<ProposedCall>) -> Vec<Part> {
        match self.kind() {
            Kind::Message => {
                let (text, refusal) = self.message_texts();
                let mark = self.mark().map(|mark| Part::Opaque { data: json!({ MESSAGE_MARK: mark }) });
                let text = Some(text).filter(|text| !text.is_empty()).map(|text| Part::Text { text });
                let refusal = Some(refusal).filter(|text| !text.is_empty()).map(|text| Part::Refusal { text });
                mark.into_iter().chain(text).chain(refusal).collect()
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
            Kind::Message => {
                let (text, refusal) = self.message_texts();
                Some(text + &refusal)
            }
            Kind::Thought => Some(self.thought_text()),
            Kind::Call => self.value.get("arguments").and_then(Value::as_str).map(str::to_owned),
            Kind::Other => None,
        }
    }

    /// Returns what a message has beside its text.
    fn mark(&self) -> Option<Map<String, Value>> {
        let known = ["id", "status", "phase"].into_iter();
        let mut mark: Map<String, Value> = known
            .filter_map(|name| Some((name.to_owned(), self.value.get(name).filter(|value| value.is_string())?.clone())))
            .collect();
        let (text, refusal) = self.message_texts();
        if !mark.is_empty() && text.is_empty() && !refusal.is_empty() {
            mark.insert("refuses".to_owned(), true.into());
        }
        // A status alone is nothing that could go back.
        (mark.contains_key("id") || mark.contains_key("phase")).then_some(mark)
    }

    /// Returns what a message says, and with what it refuses.
    fn message_texts(&self) -> (String, String) {
        let contents = || self.value.get("content").and_then(Value::as_array).into_iter().flatten();
        let all = |name: &str| contents().filter_map(|part| part.get(name)?.as_str()).collect::<String>();
        match (all("text"), all("refusal")) {
            (text, refusal) if text.is_empty() && refusal.is_empty() && self.refuses => (text, self.text.clone()),
            (text, refusal) if text.is_empty() && refusal.is_empty() => (self.text.clone(), refusal),
            both => both,
        }
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
            data: call_data(&self.value),
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

/// The fields of a call, beside those that every dialect has, which go back as they came.
pub(super) const CALL_FIELDS: [&str; 4] = ["id", "status", "namespace", "caller"];

fn call_data(item: &Value) -> Option<Value> {
    let field = |name: &str| Some((name.to_owned(), item.get(name).filter(|value| !value.is_null())?.clone()));
    let kept: Map<String, Value> = CALL_FIELDS.into_iter().filter_map(field).collect();
    (!kept.is_empty()).then_some(kept.into())
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
