//! The calls of a chat answer, from their pieces.
//!
//! A piece belongs to the call with its `index`, else to the one with its `id`, else to the last call. Servers are not strict about
//! either: some give every call index 0, with or without ids, and some change the id of a call with every piece. So a piece with a
//! name begins another call where the call's arguments are whole, or where id or name tell that it is another one; and continues
//! it where the arguments are incomplete, since calls do not interleave under one index.

use std::borrow::Cow;

use positronic_core::record::ProposedCall;
use positronic_model_http::MAX_ITEMS;
use positronic_model_http::lenient::{Json, any, object, text};
use serde::de::IgnoredAny;
use serde_json::{Number, Value, json};

use super::chat_chunk::arguments;

/// The calls of an answer so far.
#[derive(Debug, Default)]
pub(super) struct ChatCalls {
    calls: Vec<OpenCall>,
    /// Whether the id of a call has changed between its pieces.
    rotates: bool,
    /// Whether there were more calls than an answer may have.
    pub(super) has_too_many: bool,
}

#[derive(Debug, Default)]
struct OpenCall {
    index: Option<u64>,
    /// Its place among the parts of the answer.
    part: usize,
    id: Option<String>,
    name: String,
    /// The name that a piece has announced.
    announced: String,
    arguments: String,
    /// Whether the name was repeated after whole arguments: the next ones are those of another call.
    is_repeated: bool,
    data: Option<Value>,
}

/// A piece of a call.
struct CallPiece<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    arguments: Cow<'a, str>,
    /// Whether it has what only the first piece of a call has: an empty id, a type.
    is_first: bool,
    extra: Option<Value>,
}

/// What a piece has added.
pub(super) struct AddedText {
    /// The number of the call.
    pub(super) number: usize,
    /// Its place among the parts of the answer.
    pub(super) part: usize,
    /// The name, where it is new.
    pub(super) tool: Option<String>,
    /// The arguments.
    pub(super) text: String,
}

/// What a piece is to the call that it may belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Belongs {
    Continues,
    Begins,
    /// It repeats the call.
    Repeats,
}

impl ChatCalls {
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn into_calls(self) -> Vec<ProposedCall> {
        self.calls.into_iter().map(OpenCall::into_call).collect()
    }

    /// Adds a piece. A new call becomes the part at this place.
    pub(super) fn add<J: Json>(&mut self, delta: &J, part: usize) -> Option<AddedText> {
        let piece = CallPiece::of(delta);
        let candidate = self.candidate(&piece);
        let belongs = candidate.and_then(|number| self.calls.get(number)).map(|call| self.belongs(call, &piece));
        let number = match (candidate, belongs) {
            (_, Some(Belongs::Repeats)) => return None,
            (Some(number), Some(Belongs::Continues)) => number,
            _ => self.begin(candidate, &piece, part)?,
        };
        let call = self.calls.get_mut(number)?;
        self.rotates |= call.is_under_another_id(&piece);
        let text = call.append(piece);
        call.added(number, text)
    }

    /// Completes the calls by those of a whole message, which repeats what was streamed.
    pub(super) fn complete<J: Json>(&mut self, number: usize, whole: &J, part: usize) -> Option<AddedText> {
        let piece = CallPiece::of(whole);
        let Some(call) = self.calls.get_mut(number) else {
            let number = self.begin(None, &piece, part)?;
            let call = self.calls.get_mut(number)?;
            let text = call.append(piece);
            return call.added(number, text);
        };
        if call.id.is_none() {
            call.id = piece.id.map(str::to_owned);
        }
        piece.name.unwrap_or(&call.name.clone()).clone_into(&mut call.name);
        let rest = piece.arguments.strip_prefix(call.arguments.as_str()).unwrap_or_default().to_owned();
        call.arguments.push_str(&rest);
        call.added(number, rest)
    }

    fn candidate(&self, piece: &CallPiece<'_>) -> Option<usize> {
        let last = || self.calls.len().checked_sub(1);
        let by_id = || self.calls.iter().rposition(|call| piece.id.is_some() && call.id.as_deref() == piece.id);
        match piece.index {
            Some(_) => self.calls.iter().rposition(|call| call.index == piece.index),
            None => by_id().or_else(last),
        }
    }

    fn belongs(&self, call: &OpenCall, piece: &CallPiece<'_>) -> Belongs {
        let is_blank = piece.arguments.trim().is_empty();
        let Some(name) = piece.name.filter(|_| !call.name.is_empty()) else {
            let begins = call.is_repeated && !is_blank && call.is_whole();
            return if begins { Belongs::Begins } else { Belongs::Continues };
        };
        let is_same_id = piece.id.is_some() && call.id.as_deref() == piece.id;
        let has_other_id = piece.id.is_some() && call.id.is_some() && !is_same_id;
        let is_same_name = call.name == name;
        let begins = if call.is_whole() {
            if is_same_id && is_same_name {
                if call.is_placeholder() || is_blank {
                    return Belongs::Continues;
                }
                if call.arguments.trim() == piece.arguments.trim() {
                    return Belongs::Repeats;
                }
            }
            !(is_same_name && is_blank && (!has_other_id || self.rotates))
        } else if call.has_begun() {
            !is_same_name
        } else if is_same_name {
            // Without an index, only an id tells that the name is repeated.
            is_blank && !is_same_id && piece.index.is_none()
        } else {
            // The name may come in pieces.
            !is_same_id && (has_other_id || piece.is_first || piece.index.is_none())
        };
        if begins { Belongs::Begins } else { Belongs::Continues }
    }

    /// Adds a call, if allowed. One that repeats another one's name takes it over.
    fn begin(&mut self, candidate: Option<usize>, piece: &CallPiece<'_>, part: usize) -> Option<usize> {
        self.has_too_many |= self.calls.len() >= MAX_ITEMS;
        if self.has_too_many {
            return None;
        }
        let before = candidate.and_then(|number| self.calls.get(number));
        let name = before.filter(|_| piece.name.is_none()).map(|call| call.name.clone());
        self.calls.push(OpenCall { index: piece.index, part, name: name.unwrap_or_default(), ..OpenCall::default() });
        Some(self.calls.len() - 1)
    }
}

impl<'a> CallPiece<'a> {
    fn of<J: Json>(delta: &'a J) -> Self {
        let function = object(delta, "function");
        let has_text = |name: &str| delta.get(name).and_then(J::as_str);
        Self {
            index: delta.get("index").and_then(J::as_number).and_then(Number::as_u64),
            id: text(delta, "id"),
            name: function.and_then(|function| text(function, "name")),
            arguments: function.map_or("".into(), arguments),
            is_first: has_text("id") == Some("") || has_text("type").is_some(),
            extra: any(delta, "extra_content").map(J::to_value),
        }
    }
}

impl OpenCall {
    /// Returns whether its arguments are a whole object.
    fn is_whole(&self) -> bool {
        let arguments = self.arguments.trim();
        arguments.starts_with('{') && arguments.ends_with('}') && serde_json::from_str::<IgnoredAny>(arguments).is_ok()
    }

    fn has_begun(&self) -> bool {
        !self.arguments.trim().is_empty()
    }

    /// Returns whether its arguments may stand for those that follow.
    fn is_placeholder(&self) -> bool {
        self.arguments.trim() == "{}"
    }

    fn is_under_another_id(&self, piece: &CallPiece<'_>) -> bool {
        self.id.is_some() && piece.id.is_some() && self.id.as_deref() != piece.id
    }

    /// Adds a piece and returns its arguments.
    fn append(&mut self, piece: CallPiece<'_>) -> String {
        if self.id.is_none() {
            self.id = piece.id.map(str::to_owned);
        }
        match piece.name {
            Some(name) if name == self.name => self.is_repeated = self.is_whole(),
            // Some servers repeat the beginning, most do not.
            Some(name) if name.starts_with(&*self.name) => name.clone_into(&mut self.name),
            Some(name) => self.name.push_str(name),
            None => {}
        }
        if let Some(extra) = piece.extra {
            self.data = Some(json!({ "extra_content": extra }));
        }
        if self.is_placeholder() && piece.arguments.trim_start().starts_with('{') {
            self.arguments.clear();
        }
        self.arguments.push_str(&piece.arguments);
        piece.arguments.into_owned()
    }

    fn added(&mut self, number: usize, text: String) -> Option<AddedText> {
        let tool = (self.announced != self.name).then(|| self.name.clone());
        if let Some(tool) = &tool {
            tool.clone_into(&mut self.announced);
        }
        (tool.is_some() || !text.is_empty()).then_some(AddedText { number, part: self.part, tool, text })
    }

    fn into_call(self) -> ProposedCall {
        let arguments = if self.arguments.trim().is_empty() { "{}".to_owned() } else { self.arguments };
        ProposedCall { provider_id: self.id, name: self.name, arguments, data: self.data }
    }
}
