//! Reader of messages from servers that deviate from JSON-RPC.
//!
//! A reply that is lost would leave its request waiting for the whole timeout. A reply that cannot be read therefore becomes an
//! error of its request. A number of a tool's result that a [`Value`] would round becomes a string with its digits: the tool has
//! acted, so a refusal would lose its result.

use std::borrow::Cow;

use positronic_core::record::quote_inexact_numbers;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, NumberOrString, RequestId, ServerJsonRpcMessage};
use serde_json::Value;

/// The code of the error that an unreadable reply becomes; no server uses it.
pub(crate) const UNREADABLE: i32 = i32::MIN;

/// Reads a message; `None` if it is something else, such as a log line of the server's program.
pub(super) fn read(text: &[u8]) -> Option<ServerJsonRpcMessage> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text).trim_ascii();
    if text.is_empty() {
        return None;
    }
    let exact = std::str::from_utf8(text).map(exact);
    let text = exact.as_ref().map_or(text, |exact| exact.as_bytes());
    let error = match serde_json::from_slice(text) {
        Ok(message) => return Some(with_number(message)),
        Err(error) => error,
    };
    match serde_json::from_slice::<Value>(text) {
        Ok(document) => repaired(document, &error),
        Err(_) => id_in(&String::from_utf8_lossy(text)).map(|id| unreadable(id, &error)),
    }
}

/// Quotes the numbers of a tool's result that would be rounded. Other messages stay as they are: the bounds in a schema have to be
/// numbers.
pub(super) fn exact(message: &str) -> Cow<'_, str> {
    if message.contains("\"structuredContent\"") { quote_inexact_numbers(message) } else { Cow::Borrowed(message) }
}

/// Reads JSON that is not a message as it stands.
fn repaired(document: Value, error: &serde_json::Error) -> Option<ServerJsonRpcMessage> {
    let mut fields = match document {
        Value::Object(fields) => fields,
        Value::Array(mut batch) if batch.len() == 1 => match batch.pop() {
            Some(Value::Object(fields)) => fields,
            _ => return None,
        },
        _ => return None,
    };
    fields.insert("jsonrpc".to_owned(), Value::from("2.0"));
    let is_reply = ["result", "error"].iter().any(|field| fields.contains_key(*field));
    let id = fields.get("id").and_then(number);
    match serde_json::from_value(Value::Object(fields)) {
        Ok(message) => Some(with_number(message)),
        Err(_) => id.filter(|_| is_reply).map(|id| unreadable(id, error)),
    }
}

/// Replaces an id that a server has turned into a text: all of ours are numbers.
fn with_number(mut message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    let id = match &mut message {
        JsonRpcMessage::Response(response) => Some(&mut response.id),
        JsonRpcMessage::Error(error) => error.id.as_mut(),
        _ => None,
    };
    if let Some(id) = id
        && let NumberOrString::String(text) = id
        && let Ok(number) = text.parse()
    {
        *id = NumberOrString::Number(number);
    }
    message
}

fn number(id: &Value) -> Option<RequestId> {
    let number = id.as_i64().or_else(|| id.as_str()?.parse().ok())?;
    Some(NumberOrString::Number(number))
}

/// Finds the id of a reply that is not JSON, if there is only one in it.
fn id_in(text: &str) -> Option<RequestId> {
    let is_reply = text.starts_with('{') && (text.contains("\"result\"") || text.contains("\"error\""));
    let mut ids = text.split("\"id\"").skip(1).filter_map(|after| {
        let digits = after.trim_start().strip_prefix(':')?.trim_start();
        let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
        digits.get(..end)?.parse::<i64>().ok()
    });
    let first = ids.next().filter(|_| is_reply)?;
    ids.all(|id| id == first).then_some(NumberOrString::Number(first))
}

fn unreadable(id: RequestId, error: &serde_json::Error) -> ServerJsonRpcMessage {
    let error = ErrorData::new(ErrorCode(UNREADABLE), format!("it cannot be read: {error}"), None);
    JsonRpcMessage::error(error, Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Option<(String, Option<i32>)> {
        let (id, code) = match read(text.as_bytes())? {
            JsonRpcMessage::Response(response) => (response.id.to_string(), None),
            JsonRpcMessage::Error(error) => (error.id?.to_string(), Some(error.error.code.0)),
            _ => return Some(("a request or a notification".to_owned(), None)),
        };
        Some((id, code))
    }

    #[test]
    fn reply_that_cannot_be_read_is_an_error_of_its_request() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"n":NaN}}"#,
            r#"{"jsonrpc":"2.0","id": 7, "result":{"content":[{"type":"te"#,
            r#"{"jsonrpc":"2.0","id":7,"result":"\x41"}"#,
            r#"{"id":7,"error":"no"}"#,
            r#"{"id":"7","error":{"code":"x"}}"#,
        ] {
            assert_eq!(seen(text), Some(("7".to_owned(), Some(UNREADABLE))), "{text}");
        }
    }

    #[test]
    fn reply_with_a_small_deviation_is_read() {
        for text in [
            r#"{"id":7,"result":{}}"#,
            r#"{"jsonrpc":"1.0","id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
            r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\r\n",
        ] {
            assert_eq!(seen(text), Some(("7".to_owned(), None)), "{text}");
        }
    }

    #[test]
    fn output_other_than_replies_is_skipped() {
        for text in [
            "",
            "server listening on stdio",
            "{\"level\":\"info\",\"id\":7}",
            "{ id: 7 }",
            "[1]",
            "7",
            r#"{"id":7,"result":{"id":8"#,
        ] {
            assert_eq!(seen(text), None, "{text}");
        }
    }
}
