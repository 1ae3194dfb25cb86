//! A content block of an answer: text, thinking, a call, what a tool of the provider did, or an item that only the provider
//! understands.

use positronic_core::record::{DeltaKind, Part, ProposedCall};
use positronic_model_http::lenient::{Json, any, json_text};
use serde_json::{Map, Value, json};

use crate::provider_use;
use crate::wire::ITEM;

/// The field of the opaque part after a text that stores the text's citations.
pub(crate) const CITATIONS: &str = "citations";

/// The fields of a call that are parts of the record; the others are provider data.
const CALL_FIELDS: [&str; 4] = ["type", "id", "name", "input"];

/// A block as it streams in.
#[derive(Debug, Default)]
pub(crate) struct StreamedBlock {
    /// The block with all fields but those that stream.
    value: Map<String, Value>,
    /// The text, the thinking, or the JSON of a tool's input so far.
    text: String,
    /// What deltas have repeated of the text with which the block began, as long as they may repeat all of it.
    echo: Option<String>,
    /// The input with which the block began; deltas replace it.
    input: Option<String>,
    /// Whether a piece has named the tool.
    pub(crate) announced: bool,
    /// Whether its end has come.
    has_ended: bool,
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Text,
    Thinking,
    Call,
    /// A call of a tool of the provider.
    ProviderCall,
    /// The result of such a call.
    ProviderResult,
    Other,
}

impl StreamedBlock {
    /// Creates a block from its first version, or from the complete block of an answer that is not streamed.
    pub(crate) fn new(value: Map<String, Value>) -> Self {
        let mut block = Self { value, ..Self::default() };
        if let Some(Value::String(text)) = block.field().and_then(|field| block.value.remove(field)) {
            block.echo = (!text.is_empty()).then(String::new);
            block.text = text;
        }
        // A call that streams begins with an empty input.
        block.input = match block.value.get("input") {
            None | Some(Value::Null) => None,
            Some(Value::Object(fields)) if fields.is_empty() => None,
            Some(input) => Some(json_text(input).into_owned()),
        };
        block
    }

    pub(crate) fn kind(&self) -> BlockKind {
        match self.value.get("type").and_then(Value::as_str) {
            Some("text") => BlockKind::Text,
            Some("thinking") => BlockKind::Thinking,
            Some("tool_use") => BlockKind::Call,
            Some(kind) if provider_use::is_use(kind) => BlockKind::ProviderCall,
            Some(kind) if kind.ends_with(provider_use::RESULT) => BlockKind::ProviderResult,
            _ => BlockKind::Other,
        }
    }

    /// Returns the field whose text streams.
    fn field(&self) -> Option<&'static str> {
        match self.kind() {
            BlockKind::Text => Some("text"),
            BlockKind::Thinking => Some("thinking"),
            BlockKind::Call | BlockKind::ProviderCall | BlockKind::ProviderResult | BlockKind::Other => None,
        }
    }

    pub(crate) fn streamed(&self) -> Option<DeltaKind> {
        match self.kind() {
            BlockKind::Text => Some(DeltaKind::Text),
            BlockKind::Thinking => Some(DeltaKind::Reasoning),
            BlockKind::Call => Some(DeltaKind::Arguments),
            BlockKind::ProviderCall | BlockKind::ProviderResult | BlockKind::Other => None,
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.value.get("name").and_then(Value::as_str)
    }

    /// Adds a delta and returns its text, if people read it.
    pub(crate) fn add<J: Json>(&mut self, delta: &J) -> Option<String> {
        let text = |name: &str| delta.get(name).and_then(J::as_str);
        let kind = text("type")?;
        if let ("text_delta" | "thinking_delta", Some(piece)) = (kind, text("text").or_else(|| text("thinking"))) {
            return self.add_text(piece);
        }
        if let ("input_json_delta", Some(piece)) = (kind, any(delta, "partial_json")) {
            let piece = json_text(piece).into_owned();
            self.text.push_str(&piece);
            return Some(piece);
        }
        if kind == "citations_delta" {
            let citation = delta.get("citation")?.to_value();
            match self.value.get_mut(CITATIONS) {
                Some(Value::Array(list)) if list.contains(&citation) => {}
                Some(Value::Array(list)) => list.push(citation),
                _ => _ = self.value.insert(CITATIONS.to_owned(), json!([citation])),
            }
            return None;
        }
        // `signature_delta` has a `signature`; deltas of later versions are read in the same way.
        let field = kind.strip_suffix("_delta")?;
        let more = text(field)?;
        match self.value.get_mut(field) {
            Some(Value::String(known)) if known == more => {}
            Some(Value::String(known)) => known.push_str(more),
            _ => _ = self.value.insert(field.to_owned(), more.into()),
        }
        None
    }

    /// Adds a piece of text, and returns what is new: some servers repeat the text with which a block began.
    fn add_text(&mut self, piece: &str) -> Option<String> {
        let Some(before) = self.echo.take() else {
            self.text.push_str(piece);
            return Some(piece.to_owned());
        };
        let read = before + piece;
        if self.text.len() > read.len() && self.text.starts_with(&read) {
            self.echo = Some(read);
            return None;
        }
        let new = read.strip_prefix(&*self.text).unwrap_or(&read).to_owned();
        self.text.push_str(&new);
        Some(new).filter(|new| !new.is_empty())
    }

    /// Ends the deltas, and returns the text or input that they leave to add.
    pub(crate) fn end(&mut self) -> Option<String> {
        self.has_ended = true;
        let rest = match self.kind() {
            BlockKind::Call if self.text.trim().is_empty() => self.input.take(),
            _ => self.echo.take(),
        };
        let rest = rest.filter(|rest| !rest.is_empty())?;
        self.text.push_str(&rest);
        Some(rest)
    }

    /// Returns whether another block begins under its index. A block that is repeated under its id is the same one.
    pub(crate) fn is_before(&self, next: &Map<String, Value>) -> bool {
        match (self.value.get("id"), next.get("id")) {
            (Some(id), Some(next)) => id != next,
            _ => self.has_ended || self.value.get("type") != next.get("type"),
        }
    }

    /// Returns whether this is the result of the provider's call in the block before, with which it becomes one part.
    pub(crate) fn is_result_of(&self, before: &Self) -> bool {
        (before.kind(), self.kind()) == (BlockKind::ProviderCall, BlockKind::ProviderResult)
            && self.value.get("tool_use_id") == before.value.get("id")
    }

    /// Returns the number of parts that the block becomes.
    pub(crate) fn parts(&self) -> u32 {
        match self.kind() {
            BlockKind::Text if self.text.is_empty() => 0,
            BlockKind::Text => 1 + u32::from(self.citations().is_some()),
            BlockKind::Thinking
            | BlockKind::Call
            | BlockKind::ProviderCall
            | BlockKind::ProviderResult
            | BlockKind::Other => 1,
        }
    }

    fn citations(&self) -> Option<&[Value]> {
        self.value.get(CITATIONS)?.as_array().map(Vec::as_slice).filter(|list| !list.is_empty())
    }

    /// Converts the block into parts, with the result of the provider's call if it follows, and adds a call to `calls`.
    pub(crate) fn into_parts(mut self, result: Option<Self>, calls: &mut Vec<ProposedCall>) -> Vec<Part> {
        self.end();
        match self.kind() {
            // An empty text block cannot be sent back.
            BlockKind::Text if self.text.is_empty() => Vec::new(),
            BlockKind::Text => {
                let citations = self.citations().map(|list| Part::Citations {
                    citations: provider_use::citations(list),
                    data: Some(json!({ CITATIONS: list })),
                });
                [Part::Text { text: self.text }].into_iter().chain(citations).collect()
            }
            BlockKind::Thinking => vec![Part::Reasoning { text: self.text, data: Some(Value::Object(self.value)) }],
            BlockKind::Call => {
                let index = u32::try_from(calls.len()).unwrap_or(u32::MAX);
                calls.push(self.into_call());
                vec![Part::Call { index }]
            }
            BlockKind::Other if self.value.get("type").and_then(Value::as_str) == Some("redacted_thinking") => {
                vec![Part::Reasoning { text: String::new(), data: Some(Value::Object(self.value)) }]
            }
            BlockKind::ProviderCall | BlockKind::ProviderResult => vec![self.into_provider_tool(result)],
            BlockKind::Other => {
                self.put_input();
                let kind = self.value.get("type").cloned();
                vec![Part::Opaque { data: json!({ "type": kind, ITEM: self.value }) }]
            }
        }
    }

    /// Converts a call of the provider's own tools, its result, or both into an entry.
    fn into_provider_tool(mut self, result: Option<Self>) -> Part {
        self.put_input();
        let (kind, is_call) = (self.value.get("type").cloned(), self.kind() == BlockKind::ProviderCall);
        let (block, result) = (Value::Object(self.value), result.map(|result| Value::Object(result.value)));
        let mut used = if is_call {
            provider_use::read(Some(&block), result.as_ref())
        } else {
            provider_use::read(None, Some(&block))
        };
        let item = match result {
            Some(result) => json!([block, result]),
            None => block,
        };
        used.data = Some(json!({ "type": kind, ITEM: item }));
        Part::ProviderTool(Box::new(used))
    }

    /// Puts the streamed input into a call of the provider's own tools.
    fn put_input(&mut self) {
        if let Ok(input) = serde_json::from_str(&self.text) {
            self.value.insert("input".to_owned(), input);
        }
    }

    fn into_call(mut self) -> ProposedCall {
        let text = |name: &str| self.value.get(name).and_then(Value::as_str).map(str::to_owned);
        let (provider_id, name) = (text("id"), text("name").unwrap_or_default());
        let arguments = if self.text.trim().is_empty() { "{}".to_owned() } else { self.text };
        self.value.retain(|field, _| !CALL_FIELDS.contains(&field.as_str()));
        let data = (!self.value.is_empty()).then(|| json!({ ITEM: self.value }));
        ProposedCall { provider_id, name, arguments, data }
    }
}
