//! Parser for `<think>` and `<tool_call>` in texts, which become thinking and calls, for servers that do not separate them.
//!
//! The marks are those of the templates of Qwen, Hermes and DeepSeek: a text may begin with `<think>…</think>`, and each call is
//! `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, or in the [form of Qwen3-Coder](super::function_mark). A mark whose content
//! is something else stays text.

use parking_lot::Mutex;
use positronic_core::model::{DeltaSink, Piece};
use positronic_core::record::{DeltaKind, Finish, ModelResponse, Part, ProposedCall, ToolSet};
use serde_json::{Map, Value};

use super::function_mark;
use super::responses_item::MESSAGE_MARK;

const THINK: &str = "<think>";
const THINK_END: &str = "</think>";
const CALL: &str = "<tool_call>";
const CALL_END: &str = "</tool_call>";

/// Replaces the marks in the texts of an answer. If the answer already has calls, its texts are not searched for more.
pub(super) fn read(response: ModelResponse, tools: &ToolSet) -> ModelResponse {
    let ModelResponse { parts, mut calls, mut metadata } = response;
    let (reads_calls, mut may_think) = (calls.is_empty(), true);
    let mut read = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Part::Text { text } => {
                let has_marks = (may_think && text.contains(THINK_END)) || (reads_calls && text.contains(CALL));
                // Only an unchanged message may go back with its id.
                if has_marks && read.last().is_some_and(is_message_mark) {
                    read.pop();
                }
                let rest = if may_think { thinking(&text, &mut read) } else { &text };
                may_think = false;
                if reads_calls {
                    texts_and_calls(rest, tools, &mut read, &mut calls);
                } else {
                    push_text(rest, &mut read);
                }
            }
            other => read.push(other),
        }
    }
    if reads_calls && !calls.is_empty() && metadata.finish == Finish::Stop {
        metadata.finish = Finish::Calls;
    }
    ModelResponse { parts: read, calls, metadata }
}

/// Returns whether a part has the other fields of the message whose text follows, in an answer of the Responses API.
fn is_message_mark(part: &Part) -> bool {
    matches!(part, Part::Opaque { data } if data.get(MESSAGE_MARK).is_some())
}

/// Takes the thinking from the beginning of a text, and returns the rest. Some templates begin the thinking themselves, so that the
/// text has only its end.
fn thinking<'t>(text: &'t str, parts: &mut Vec<Part>) -> &'t str {
    let (thought, rest) = match text.trim_start().strip_prefix(THINK) {
        Some(thought) => thought.split_once(THINK_END).unwrap_or((thought, "")),
        None => match text.split_once(THINK_END) {
            Some((thought, rest)) if !thought.contains(THINK) => (thought, rest),
            _ => return text,
        },
    };
    if !thought.trim().is_empty() {
        parts.push(Part::Reasoning { text: thought.trim().to_owned(), data: None });
    }
    rest.trim_start()
}

fn texts_and_calls(text: &str, tools: &ToolSet, parts: &mut Vec<Part>, calls: &mut Vec<ProposedCall>) {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(CALL) {
        // The end of the last call may be the token that ends the answer.
        let (inner, next) = after.split_once(CALL_END).unwrap_or((after, ""));
        let Some(call) = function_mark::call(inner, tools).or_else(|| call(inner)) else { break };
        push_text(before.trim_end(), parts);
        parts.push(Part::Call { index: u32::try_from(calls.len()).unwrap_or(u32::MAX) });
        calls.push(call);
        rest = next.trim_start();
    }
    push_text(rest, parts);
}

fn push_text(text: &str, parts: &mut Vec<Part>) {
    if !text.trim().is_empty() {
        parts.push(Part::Text { text: text.to_owned() });
    }
}

fn call(inner: &str) -> Option<ProposedCall> {
    let mut fields: Map<String, Value> = serde_json::from_str(inner.trim()).ok()?;
    let Some(Value::String(name)) = fields.remove("name") else { return None };
    let arguments = match fields.remove("arguments").or_else(|| fields.remove("parameters")) {
        Some(Value::String(text)) => text,
        Some(arguments) => arguments.to_string(),
        None => "{}".to_owned(),
    };
    Some(ProposedCall { provider_id: None, name, arguments, data: None })
}

/// Shows the pieces of an answer without its marks, and its thinking as such.
pub(super) struct WithoutMarks<'a> {
    show: &'a dyn DeltaSink,
    reader: Mutex<MarkReader>,
}

/// A reader of marks in a stream: where in the answer the next piece of text is.
#[derive(Default)]
struct MarkReader {
    within: Section,
    /// The last characters, which may be the beginning of a mark.
    pending: String,
    has_thought: bool,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Section {
    #[default]
    Start,
    Thinking,
    Text,
    Call,
}

impl<'a> WithoutMarks<'a> {
    pub(super) fn new(show: &'a dyn DeltaSink) -> Self {
        Self { show, reader: Mutex::default() }
    }
}

impl DeltaSink for WithoutMarks<'_> {
    fn piece(&self, piece: Piece) {
        let mut reader = self.reader.lock();
        if piece.kind != DeltaKind::Text {
            let part = piece.part + u32::from(reader.has_thought);
            self.show.piece(Piece { part, ..piece });
            return;
        }
        for (kind, text) in reader.feed(&piece.text) {
            let is_after = kind == DeltaKind::Text && reader.has_thought;
            let part = piece.part + u32::from(is_after);
            self.show.piece(Piece { part, kind, text, call: None, tool: None });
        }
    }

    fn restart(&self) {
        *self.reader.lock() = MarkReader::default();
        self.show.restart();
    }

    fn has_reader(&self) -> bool {
        self.show.has_reader()
    }
}

impl MarkReader {
    /// Takes a piece of text, and returns what can be shown.
    fn feed(&mut self, piece: &str) -> Vec<(DeltaKind, String)> {
        let mut text = std::mem::take(&mut self.pending) + piece;
        let mut shown = Vec::new();
        loop {
            let (mark, kind, after) = match self.within {
                Section::Start => {
                    let begun = text.trim_start();
                    if let Some(thought) = begun.strip_prefix(THINK) {
                        (self.within, self.has_thought) = (Section::Thinking, true);
                        text = thought.trim_start().to_owned();
                    } else if THINK.starts_with(begun) {
                        self.pending = text;
                        return shown;
                    } else {
                        self.within = Section::Text;
                    }
                    continue;
                }
                Section::Thinking => (THINK_END, Some(DeltaKind::Reasoning), Section::Text),
                Section::Text => (CALL, Some(DeltaKind::Text), Section::Call),
                Section::Call => (CALL_END, None, Section::Text),
            };
            let (before, rest) = match text.split_once(mark) {
                Some((before, rest)) => (before.to_owned(), Some(rest.trim_start().to_owned())),
                None => {
                    let held = beginning_of(mark, &text);
                    let before = text.split_off(text.len() - held);
                    self.pending = before;
                    (std::mem::take(&mut text), None)
                }
            };
            if let Some(kind) = kind.filter(|_| !before.is_empty()) {
                shown.push((kind, before));
            }
            let Some(rest) = rest else { return shown };
            (self.within, text) = (after, rest);
        }
    }
}

/// Returns how many bytes at the end of a text may begin a mark.
fn beginning_of(mark: &str, text: &str) -> usize {
    (1..mark.len()).rev().find(|length| mark.get(..*length).is_some_and(|begun| text.ends_with(begun))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::Text { text: text.to_owned() }
    }

    fn thought(text: &str) -> Part {
        Part::Reasoning { text: text.to_owned(), data: None }
    }

    fn read_text(said: &str) -> (Vec<Part>, Vec<(String, String)>) {
        let response = read(ModelResponse { parts: vec![text(said)], ..ModelResponse::default() }, &ToolSet::default());
        (response.parts, response.calls.into_iter().map(|call| (call.name, call.arguments)).collect())
    }

    #[test]
    fn thinking_at_the_beginning_is_a_part_of_its_own() {
        for said in ["<think>hm</think>Yes.", "\n<think>\nhm\n</think>\n\nYes.", "hm\n</think>\n\nYes."] {
            assert_eq!(read_text(said), (vec![thought("hm"), text("Yes.")], vec![]), "{said}");
        }
        assert_eq!(read_text("<think>\n\n</think>\n\nYes."), (vec![text("Yes.")], vec![]));
        assert_eq!(read_text("<think>cut off"), (vec![thought("cut off")], vec![]));
        for said in ["Write <think>hm</think> before it.", "Yes.", "a </thin"] {
            assert_eq!(read_text(said), (vec![text(said)], vec![]));
        }
    }

    #[test]
    fn calls_in_a_text_are_calls() {
        let look = |city: &str| ("look".to_owned(), format!("{{\"city\":\"{city}\"}}"));
        let said = "<think>two</think>I look.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n\
                    <tool_call>{\"name\": \"look\", \"parameters\": \"{\\\"city\\\":\\\"Rome\\\"}\"}";
        assert_eq!(
            read_text(said),
            (
                vec![thought("two"), text("I look."), Part::Call { index: 0 }, Part::Call { index: 1 }],
                vec![look("Oslo"), look("Rome")]
            )
        );
        for said in ["<tool_call>{\"name\": 7}</tool_call>", "<tool_call>look</tool_call>", "Use <tool_call> for it."] {
            assert_eq!(read_text(said), (vec![text(said)], vec![]), "what is no call stays text");
        }
    }

    #[test]
    fn answer_with_calls_of_its_own_keeps_them_alone() {
        let said = "<tool_call>{\"name\": \"look\"}</tool_call>";
        let own = ProposedCall { provider_id: None, name: "send".to_owned(), arguments: "{}".to_owned(), data: None };
        let parts = vec![text(said), Part::Call { index: 0 }];
        let response = ModelResponse { parts: parts.clone(), calls: vec![own.clone()], ..ModelResponse::default() };

        let read = read(response, &ToolSet::default());

        assert_eq!((read.parts, read.calls), (parts, vec![own]));
    }

    #[test]
    fn pieces_are_shown_without_marks_wherever_the_stream_is_cut() {
        let said = "<think>hm <b></think>\nI look.<tool_call>{}</tool_call>Done <i>.";
        for size in 1..said.len() {
            let (mut reader, mut thought, mut text) = (MarkReader::default(), String::new(), String::new());
            for piece in said.as_bytes().chunks(size) {
                for (kind, shown) in reader.feed(std::str::from_utf8(piece).unwrap()) {
                    if kind == DeltaKind::Reasoning { thought.push_str(&shown) } else { text.push_str(&shown) }
                }
            }
            assert_eq!((thought.as_str(), text.trim_start()), ("hm <b>", "I look.Done <i>."), "{size}");
        }
    }
}
