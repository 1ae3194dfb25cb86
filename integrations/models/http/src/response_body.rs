//! Decoder of an answer's body into events. The first bytes tell its form, since servers and gateways label event streams as JSON,
//! and JSON as event streams or text.
//!
//! ```text
//! bytes ─▶ Unpack ─▶ `{` or `[`: Documents · `<`: a web page, as text · anything else: SseDecoder ─▶ Event
//! ```

use std::collections::VecDeque;

use positronic_core::record::{ModelError, ModelErrorKind};

use super::documents::{Documents, DocumentsEnd};
use super::sse::{SseDecoder, SseError, SseEvent};
use super::unpack::Unpack;
use super::unreachable::root_cause;

/// The maximum sizes in bytes of an answer that is not streamed, and of a stream.
pub(super) const LARGEST_ANSWER: usize = 64 * 1024 * 1024;
const LARGEST_STREAM: usize = 512 * 1024 * 1024;

/// The length in bytes of the beginning of a stream that is kept for an error message, in case it has no events.
const BEGINNING: usize = 1024;

/// The end of a chat completions stream.
const DONE: &str = "[DONE]";

/// The next part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamEvent {
    Chunk(String),
    /// A failure that the server reports by an event named `error`.
    Failure(String),
    /// The last chunk of a stream that ended within it.
    CutOff(String),
    Done,
    /// A complete answer that was not streamed.
    Complete(String),
    /// The whole body, which is neither an event stream nor JSON.
    Text(String),
}

/// The events of an answer whose headers were received.
#[derive(Debug)]
pub(super) struct Events {
    response: Option<reqwest::Response>,
    body: BodyDecoder,
}

impl Events {
    pub(super) fn new(response: reqwest::Response) -> Self {
        let encoding = response.headers().get("content-encoding").and_then(|value| value.to_str().ok());
        Self { body: BodyDecoder::new(Unpack::of(encoding)), response: Some(response) }
    }

    pub(super) async fn next(&mut self) -> Result<Option<StreamEvent>, ModelError> {
        loop {
            if let Some(event) = self.body.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(response) = &mut self.response else { return Ok(None) };
            match response.chunk().await.map_err(|error| broken(&error))? {
                Some(bytes) => self.body.feed(&bytes)?,
                None => {
                    self.response = None;
                    self.body.end();
                }
            }
        }
    }

    /// Reads the body to its end.
    pub(super) async fn drain(&mut self) {
        if let Some(response) = &mut self.response {
            while let Ok(Some(_)) = response.chunk().await {}
        }
    }
}

/// A decoder of a body into events. It does no I/O.
#[derive(Debug)]
struct BodyDecoder {
    unpack: Unpack,
    form: Form,
    ready: VecDeque<StreamEvent>,
    bytes: usize,
}

#[derive(Debug)]
enum Form {
    /// Nothing but blanks so far, and a part of a byte order mark.
    Unknown(Vec<u8>),
    /// With the beginning of the body, until the first event.
    Stream(SseDecoder, Option<Vec<u8>>),
    Documents(Documents),
    Text(Vec<u8>),
}

impl BodyDecoder {
    const fn new(unpack: Unpack) -> Self {
        Self { unpack, form: Form::Unknown(Vec::new()), ready: VecDeque::new(), bytes: 0 }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        let bytes = self.unpack.feed(bytes)?;
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > LARGEST_STREAM {
            return Err(too_large(LARGEST_STREAM));
        }
        let Form::Unknown(before) = &mut self.form else { return self.decode(&bytes) };
        let mut first = std::mem::take(before);
        let first = if first.is_empty() {
            bytes
        } else {
            first.extend_from_slice(&bytes);
            first.into()
        };
        let Some((form, first)) = begin(&first) else {
            self.form = Form::Unknown(first.into_owned());
            return Ok(());
        };
        self.form = form;
        self.decode(first)
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        match &mut self.form {
            Form::Unknown(_) => {}
            Form::Stream(decoder, beginning) => {
                if let Some(known) = beginning {
                    known.extend(bytes.iter().take(BEGINNING.saturating_sub(known.len())));
                }
                let events = decoder.feed(bytes).map_err(|SseError::TooLarge { limit }| too_large(limit))?;
                if !events.is_empty() {
                    *beginning = None;
                }
                self.ready.extend(events.into_iter().map(event));
            }
            Form::Documents(documents) => {
                if documents.len().saturating_add(bytes.len()) > LARGEST_ANSWER {
                    return Err(too_large(LARGEST_ANSWER));
                }
                self.ready.extend(documents.feed(bytes).into_iter().map(StreamEvent::Chunk));
            }
            Form::Text(text) => text.extend(bytes.iter().take(LARGEST_TEXT.saturating_sub(text.len()))),
        }
        Ok(())
    }

    fn end(&mut self) {
        match std::mem::replace(&mut self.form, Form::Unknown(Vec::new())) {
            Form::Unknown(_) => {}
            Form::Stream(decoder, beginning) => {
                let cut_off = |read| match event(read) {
                    StreamEvent::Chunk(chunk) => StreamEvent::CutOff(chunk),
                    other => other,
                };
                let last: Vec<_> = decoder.finish().into_iter().map(cut_off).collect();
                let words =
                    beginning.filter(|_| last.is_empty()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                self.ready.extend(last);
                self.ready.extend(words.filter(|words| !is_event_stream(words)).map(StreamEvent::Text));
            }
            Form::Documents(documents) => self.ready.extend(match documents.finish() {
                DocumentsEnd::Only(answer) => Some(StreamEvent::Complete(answer)),
                DocumentsEnd::Text(text) => Some(StreamEvent::Text(text)),
                DocumentsEnd::Nothing => None,
            }),
            Form::Text(text) => self.ready.push_back(StreamEvent::Text(String::from_utf8_lossy(&text).into_owned())),
        }
    }
}

/// The maximum size in bytes of a text that is shown in a message.
const LARGEST_TEXT: usize = 64 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Recognises the form of a body by its first bytes, and returns them; those of JSON and of text without blanks in front.
fn begin(first: &[u8]) -> Option<(Form, &[u8])> {
    let text = first.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first).trim_ascii_start();
    let form = match text.first()? {
        _ if BYTE_ORDER_MARK.starts_with(text) => return None,
        b'{' | b'[' => Form::Documents(Documents::default()),
        b'<' => Form::Text(Vec::new()),
        _ => Form::Stream(SseDecoder::default(), Some(Vec::new())),
    };
    // An event stream begins with its byte order mark, of which the decoder takes one.
    let first = if matches!(form, Form::Stream(..)) { first } else { text };
    Some((form, first))
}

fn event(SseEvent { data, is_error }: SseEvent) -> StreamEvent {
    match data.trim() {
        DONE => StreamEvent::Done,
        _ if is_error => StreamEvent::Failure(data),
        _ => StreamEvent::Chunk(data),
    }
}

/// Returns whether a text without events is an event stream, such as one of comments.
fn is_event_stream(text: &str) -> bool {
    let line = text.trim_start_matches('\u{feff}').lines().find(|line| !line.is_empty()).unwrap_or_default();
    ["", "data", "event", "id", "retry"].contains(&line.split(':').next().unwrap_or_default())
}

/// Reads a body up to a limit. Returns the received part, and an error if it is incomplete.
pub(super) async fn read(response: &mut reqwest::Response, limit: usize) -> (String, Result<(), ModelError>) {
    let encoding = response.headers().get("content-encoding").and_then(|value| value.to_str().ok());
    let (mut unpack, mut body) = (Unpack::of(encoding), Vec::new());
    let end = loop {
        let bytes = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break Ok(()),
            Err(error) => break Err(broken(&error)),
        };
        match unpack.feed(&bytes) {
            Ok(bytes) if body.len().saturating_add(bytes.len()) <= limit => body.extend_from_slice(&bytes),
            Ok(_) => break Err(too_large(limit)),
            Err(error) => break Err(error),
        }
    };
    (String::from_utf8_lossy(&body).into_owned(), end)
}

fn too_large(limit: usize) -> ModelError {
    ModelError::new(ModelErrorKind::Malformed, format!("the answer exceeds the limit of {limit} bytes"))
}

fn broken(error: &reqwest::Error) -> ModelError {
    let kind = if error.is_timeout() { ModelErrorKind::Timeout } else { ModelErrorKind::Connection };
    ModelError::new(kind, format!("the connection broke during the answer: {}", root_cause(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(body: &[u8], size: usize) -> Vec<StreamEvent> {
        let mut decoded = BodyDecoder::new(Unpack::of(None));
        body.chunks(size).for_each(|bytes| decoded.feed(bytes).unwrap());
        decoded.end();
        decoded.ready.into()
    }

    #[test]
    fn the_first_bytes_tell_the_form_of_a_body() {
        let chunk = |text: &str| StreamEvent::Chunk(text.to_owned());
        for (body, expected) in [
            ("data: {}\n\ndata: [DONE]\n\n", vec![chunk("{}"), StreamEvent::Done]),
            ("\u{feff}\n\ndata: {}\n\n", vec![chunk("{}")]),
            ("\u{feff}data: {}\n\n", vec![chunk("{}")]),
            (": waiting\n\ndata: {}", vec![StreamEvent::CutOff("{}".to_owned())]),
            ("event: error\ndata: full\n\n", vec![StreamEvent::Failure("full".to_owned())]),
            ("\u{feff} {\"a\":1}\n", vec![StreamEvent::Complete("{\"a\":1}".to_owned())]),
            ("[{\"a\":1},\n{\"a\":2}]", vec![chunk("{\"a\":1}"), chunk("{\"a\":2}")]),
            ("{\"a\":1}\n{\"a\":2}\n", vec![chunk("{\"a\":1}"), chunk("{\"a\":2}")]),
            ("upstream is full\n", vec![StreamEvent::Text("upstream is full\n".to_owned())]),
            ("<html>no</html>", vec![StreamEvent::Text("<html>no</html>".to_owned())]),
            ("[]", vec![StreamEvent::Text("[]".to_owned())]),
            (": waiting\n\n", vec![]),
            ("data:\n\n", vec![]),
            (" \n", vec![]),
            ("", vec![]),
        ] {
            for size in 1..=body.len().max(1) {
                assert_eq!(events(body.as_bytes(), size), expected, "{body:?} {size}");
            }
        }
    }
}
