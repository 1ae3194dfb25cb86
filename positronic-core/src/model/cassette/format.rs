//! The format of a cassette: its lines, and how they are read and written.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::scrub::Scrubber;
use crate::record::encoding::base64;
use crate::record::encoding::skip::is_default;
use crate::record::{
    ActionFormat, ContextItem, Finish, Message, ModelError, ModelResponse, Part, ProposedCall, ResponseMetadata,
    Settings, SignalKind, ToolDecl, Usage,
};

/// The version of the format.
const VERSION: u64 = 1;

/// The reason why a cassette cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// The first line is not a header.
    #[error("the first line is not a cassette header such as {{\"cassette\": 1}}")]
    NoHeader,
    /// The format has another version.
    #[error("unsupported cassette format {0}; this version reads format {VERSION}")]
    Version(u64),
    /// A line is invalid.
    #[error("invalid line {line} of the cassette: {reason}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// The reason.
        reason: String,
    },
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

impl CassetteError {
    pub(super) fn file(path: &std::path::Path, source: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }
}

/// The header of a cassette.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// The origin of the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The name of the recorded model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The goal of the recorded run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Value>,
    /// The options of the recorded run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Value>,
    /// The action format of the recorded model.
    #[serde(skip_serializing_if = "is_default")]
    pub action_format: ActionFormat,
    /// Whether the cassette is only valid for runs with exactly these options.
    #[serde(skip_serializing_if = "is_default")]
    pub exact: bool,
}

impl Header {
    /// Returns the first option of a run that the cassette does not cover, and the recorded value. A cassette without
    /// [`exact`](Self::exact) covers all options.
    #[must_use]
    pub fn unanswered(&self, options: &Value) -> Option<(&str, &Value)> {
        let recorded = self.options.as_ref().filter(|_| self.exact)?.as_object()?;
        let other = recorded.iter().find(|(name, value)| options.get(name.as_str()) != Some(*value))?;
        Some((other.0, other.1))
    }
}

/// The content of a cassette.
pub(super) struct CassetteFile {
    pub(super) header: Header,
    pub(super) exchanges: Vec<(usize, RecordedExchange)>,
    pub(super) signals: Vec<SignalLine>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RecordedExchange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<RequestLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reply: Option<ReplyLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ModelError>,
}

/// The difference of a request from the previous one of the same loop.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RequestLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<Vec<ContextItem>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<Vec<ToolDecl>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) settings: Option<Settings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<Message>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReplyLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The text of an answer with a structured action, as a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<Part>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<CallLine>,
    /// The bytes of the files that the model made, in Base64, by their hashes.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    files: IndexMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<ResponseMetadata>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: String,
    /// The arguments: a document, or a string that need not be JSON.
    #[serde(default)]
    arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignalLine {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) after: String,
    pub(super) signal: SignalKind,
}

impl ReplyLine {
    /// Attributes a reply with hand-written usage to the header's model, so that it has a price.
    fn answered_by(&mut self, model: &str) {
        if self.usage.is_some() && self.metadata.is_none() {
            let (provider, model) = model.split_once('/').unwrap_or(("", model));
            let (provider, model) = (provider.to_owned(), model.to_owned());
            let finish = if self.calls.is_empty() { Finish::Stop } else { Finish::Calls };
            self.metadata = Some(ResponseMetadata { provider, model, finish, ..ResponseMetadata::default() });
        }
    }
}

impl From<&ModelResponse> for ReplyLine {
    fn from(response: &ModelResponse) -> Self {
        let calls = response.calls.iter().map(|call| CallLine {
            id: call.provider_id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone().into(),
            data: call.data.clone(),
        });
        let files =
            response.files().filter_map(|file| Some((file.file().blob()?.to_owned(), base64::encode(file.bytes()?))));
        Self {
            parts: Some(response.parts.clone()),
            files: files.collect(),
            calls: calls.collect(),
            metadata: Some(response.metadata.clone()),
            ..Self::default()
        }
    }
}

impl From<ReplyLine> for ModelResponse {
    fn from(line: ReplyLine) -> Self {
        let calls: Vec<_> = line.calls.into_iter().map(CallLine::into_call).collect();
        let parts = line.parts.unwrap_or_else(|| {
            let text = line.text.or_else(|| line.structured.map(|answer| answer.to_string()));
            let text = text.into_iter().map(|text| Part::Text { text });
            text.chain((0..).zip(&calls).map(|(index, _)| Part::Call { index })).collect()
        });
        let plain = || ResponseMetadata {
            provider: "cassette".to_owned(),
            finish: if calls.is_empty() { Finish::Stop } else { Finish::Calls },
            ..ResponseMetadata::default()
        };
        let mut metadata = line.metadata.unwrap_or_else(plain);
        metadata.usage = line.usage.unwrap_or(metadata.usage);
        let response = Self { parts, calls, metadata };
        for file in response.files() {
            let data = file.file().blob().and_then(|hash| line.files.get(hash));
            if let Some(bytes) = data.and_then(|data| base64::decode(data)) {
                file.load(bytes.into());
            }
        }
        response
    }
}

impl CallLine {
    fn into_call(self) -> ProposedCall {
        let arguments = match self.arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text,
            document => document.to_string(),
        };
        ProposedCall { provider_id: self.id, name: self.name, arguments, data: self.data }
    }
}

/// Reads a cassette's text.
pub(super) fn read(text: &str) -> Result<CassetteFile, CassetteError> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with("//"));
    let first: Value = lines
        .next()
        .and_then(|(_, line)| serde_json::from_str(line).ok())
        .filter(|first: &Value| first.get("cassette").is_some())
        .ok_or(CassetteError::NoHeader)?;
    match first.get("cassette").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(version) => return Err(CassetteError::Version(version)),
        None => return Err(CassetteError::NoHeader),
    }
    let header: Header =
        serde_json::from_value(first).map_err(|error| CassetteError::Line { line: 1, reason: error.to_string() })?;
    let (mut exchanges, mut signals) = (Vec::new(), Vec::new());
    for (line, text) in lines {
        let refuse = |error: serde_json::Error| CassetteError::Line { line, reason: error.to_string() };
        let document: Value = serde_json::from_str(text).map_err(refuse)?;
        if document.get("signal").is_some() {
            signals.push(serde_json::from_value(document).map_err(refuse)?);
            continue;
        }
        let mut exchange: RecordedExchange = serde_json::from_value(document).map_err(refuse)?;
        if let (Some(reply), Some(model)) = (&mut exchange.reply, &header.model) {
            reply.answered_by(model);
        }
        if exchange.reply.is_some() == exchange.error.is_some() {
            return Err(CassetteError::Line { line, reason: "it requires either a `reply` or an `error`".to_owned() });
        }
        exchanges.push((line, exchange));
    }
    Ok(CassetteFile { header, exchanges, signals })
}

/// Writes a cassette: the header and the lines.
pub(super) fn text(header: &Header, lines: &[String], scrubber: &Scrubber) -> String {
    let mut text = header_line(header, scrubber);
    for line in lines {
        text.push('\n');
        text.push_str(line);
    }
    text.push('\n');
    text
}

fn header_line(header: &Header, scrubber: &Scrubber) -> String {
    let mut line = serde_json::to_value(header).unwrap_or_default();
    if let Value::Object(fields) = &mut line {
        fields.insert("cassette".to_owned(), VERSION.into());
    }
    scrubber.scrub(&mut line);
    line.to_string()
}

/// Encodes a line without secrets.
pub(super) fn encode(line: &impl Serialize, scrubber: &Scrubber) -> String {
    let mut line = serde_json::to_value(line).unwrap_or_default();
    scrubber.scrub(&mut line);
    line.to_string()
}
