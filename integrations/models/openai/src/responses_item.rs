//! An item of a Responses answer: a message, reasoning, a call, or data that only the server understands.

use std::borrow::Cow;
use std::collections::BTreeMap;

use positronic_core::record::{Citation, Part, ProposedCall};
use positronic_model_http::lenient::{Json, any, json_text, text};
use serde_json::{Map, Value, json};

use super::responses_files::made_image;
use super::responses_tools::{citations, is_cited, tool_use};

/// The field of the opaque part before a text that stores the message's other fields: its id, status and phase, and whether
/// it is a refusal. So the message can be sent back unchanged.
pub(super) const MESSAGE_MARK: &str = "message";

/// A streaming item: the server's last version, and its pieces.
#[derive(Debug, Default)]
pub(super) struct Item {
    /// The last version of the item.
    pub(super) value: Value,
    /// Whether that version is final.
    pub(super) done: bool,
    /// The streamed text, reasoning or arguments.
    pub(super) text: String,
    /// The section of the text or reasoning that the last piece belonged to.
    pub(super) section: Option<u64>,
    /// Whether the pieces are a refusal.
    pub(super) refuses: bool,
    /// Whether a piece has announced the tool's name.
    pub(super) announced: bool,
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Thought,
    Call,
    Other,
}

impl Item {
    /// Creates a final item.
    pub(super) fn complete(value: Value) -> Self {
        Self { value, done: true, ..Self::default() }
    }

    pub(super) fn kind(&self) -> ItemKind {
        match self.value.get("type").and_then(Value::as_str) {
            Some("message") => ItemKind::Message,
            Some("reasoning") => ItemKind::Thought,
            Some("function_call") => ItemKind::Call,
            _ => ItemKind::Other,
        }
    }

    /// Returns whether an event brings another item: in its first or its final version.
    pub(super) fn is_before<J: Json>(&self, item: &J, is_first: bool) -> bool {
        let own = |name: &str| self.value.get(name).and_then(Value::as_str);
        match (own("call_id"), text(item, "call_id")) {
            (Some(id), Some(next)) => id != next,
            _ => (self.done && is_first) || text(item, "type").is_some_and(|kind| own("type") != Some(kind)),
        }
    }

    /// Returns the tool's name, for a call.
    pub(super) fn name(&self) -> Option<&str> {
        self.value.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
    }

    /// Returns the number of parts of the item so far.
    pub(super) fn parts(&self) -> u32 {
        match self.kind() {
            ItemKind::Message => {
                let (text, refusal) = self.message_texts();
                let texts = u32::from(!text.is_empty()) + u32::from(!refusal.is_empty());
                texts + u32::from(self.mark().is_some()) + u32::from(self.contents().any(is_cited))
            }
            ItemKind::Thought | ItemKind::Call | ItemKind::Other => 1,
        }
    }

    /// Returns the number of parts before the streaming one.
    pub(super) fn parts_before_stream(&self) -> u32 {
        u32::from(self.kind() == ItemKind::Message && self.mark().is_some())
    }

    /// Converts the item into parts, and adds its call to `calls`. `number` counts the items, from 1.
    pub(super) fn into_parts(self, number: usize, calls: &mut Vec<ProposedCall>) -> Vec<Part> {
        match self.kind() {
            ItemKind::Message => {
                let (text, refusal) = self.message_texts();
                let mark = self.mark().map(|mark| Part::Opaque { data: json!({ MESSAGE_MARK: mark }) });
                let text = Some(text).filter(|text| !text.is_empty()).map(|text| Part::Text { text });
                let refusal = Some(refusal).filter(|text| !text.is_empty()).map(|text| Part::Refusal { text });
                let citations = Some(self.citations()).filter(|citations| !citations.is_empty());
                let citations = citations.map(|citations| Part::Citations { citations, data: None });
                mark.into_iter().chain(text).chain(citations).chain(refusal).collect()
            }
            ItemKind::Thought => {
                let text = self.thought_text();
                vec![Part::Reasoning { text, data: sendable_thought(self.value) }]
            }
            ItemKind::Call => {
                let index = u32::try_from(calls.len()).unwrap_or(u32::MAX);
                calls.push(self.into_call());
                vec![Part::Call { index }]
            }
            ItemKind::Other => vec![other(self.value, number)],
        }
    }

    /// Returns the sources of a message.
    fn citations(&self) -> Vec<Citation> {
        self.contents().flat_map(citations).collect()
    }

    fn contents(&self) -> impl Iterator<Item = &Value> {
        self.value.get("content").and_then(Value::as_array).into_iter().flatten()
    }

    /// Returns the full text of the pieces.
    pub(super) fn full_text(&self) -> Option<String> {
        match self.kind() {
            ItemKind::Message => {
                let (text, refusal) = self.message_texts();
                Some(text + &refusal)
            }
            ItemKind::Thought => Some(self.thought_text()),
            ItemKind::Call => any(&self.value, "arguments").map(|arguments| json_text(arguments).into_owned()),
            ItemKind::Other => None,
        }
    }

    /// Returns a message's fields other than its text.
    fn mark(&self) -> Option<Map<String, Value>> {
        let known = ["id", "status", "phase"].into_iter();
        let mut mark: Map<String, Value> = known
            .filter_map(|name| Some((name.to_owned(), self.value.get(name).filter(|value| value.is_string())?.clone())))
            .collect();
        let (text, refusal) = self.message_texts();
        if !mark.is_empty() && text.is_empty() && !refusal.is_empty() {
            mark.insert("refuses".to_owned(), true.into());
        }
        // A status alone cannot be sent back.
        (mark.contains_key("id") || mark.contains_key("phase")).then_some(mark)
    }

    /// Returns a message's text and its refusal.
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
        let arguments = any(&self.value, "arguments").map(json_text).filter(|arguments| !arguments.is_empty());
        let arguments = arguments.map_or_else(|| self.text.clone(), Cow::into_owned);
        ProposedCall {
            provider_id: text("call_id").or_else(|| text("id")),
            name: text("name").unwrap_or_default(),
            arguments: if arguments.trim().is_empty() { "{}".to_owned() } else { arguments },
            data: call_data(&self.value),
        }
    }
}

/// Converts an item that is neither a message nor reasoning nor a call.
fn other(item: Value, number: usize) -> Part {
    if let Some((file, data)) = made_image(&item, number) {
        return Part::File { file, data: Some(data) };
    }
    match tool_use(&item) {
        Some(used) => Part::ProviderTool(Box::new(used)),
        None => Part::Opaque { data: item },
    }
}

/// The types of items that expect a response from the client or a person. Our tools only answer function calls.
const ASKING: [&str; 6] =
    ["apply_patch_call", "computer_call", "custom_tool_call", "local_shell_call", "mcp_approval_request", "shell_call"];

/// Returns the type of the first item that expects a response which we cannot give. Items with an output among the items
/// were answered by the server.
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

/// The fields of a call that only this API has and that are sent back unchanged.
pub(super) const CALL_FIELDS: [&str; 4] = ["id", "status", "namespace", "caller"];

fn call_data(item: &Value) -> Option<Value> {
    let field = |name: &str| Some((name.to_owned(), item.get(name).filter(|value| !value.is_null())?.clone()));
    let kept: Map<String, Value> = CALL_FIELDS.into_iter().filter_map(field).collect();
    (!kept.is_empty()).then_some(kept.into())
}

/// Returns the part of a reasoning item that is sent back. One without encrypted or plain text is only known to a server
/// that stores it, and we store none.
fn sendable_thought(value: Value) -> Option<Value> {
    let Value::Object(mut fields) = value else { return None };
    fields.remove("status");
    for name in ["encrypted_content", "content"] {
        if fields
            .get(name)
            .is_some_and(|value| value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty))
        {
            fields.remove(name);
        }
    }
    let value = Value::Object(fields);
    is_sendable_thought(&value).then_some(value)
}

/// Returns whether reasoning data is an item of this API that a server accepts.
pub(super) fn is_sendable_thought(data: &Value) -> bool {
    data.get("type").is_some_and(|kind| kind == "reasoning")
        && ["encrypted_content", "content"]
            .iter()
            .any(|name| data.get(*name).is_some_and(|value| !value.is_null() && value != ""))
}
