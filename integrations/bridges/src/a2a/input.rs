//! What a client sends: requests of JSON-RPC, and messages.

use positronic_server::extension::MessageFile;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::card::MODES;
use super::error::Refusal;
use super::push::PushConfig;

/// A request of JSON-RPC.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "A2aRequest")]
pub(super) struct RpcRequest {
    /// `2.0`. A request without it gets an error of JSON-RPC, and not a problem.
    #[serde(default)]
    pub(super) jsonrpc: String,
    #[serde(default)]
    pub(super) id: Value,
    #[serde(default)]
    pub(super) method: String,
    #[serde(default)]
    pub(super) params: Value,
}

impl RpcRequest {
    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// `INVALID_PARAMS` if they do not fit the method.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        T::deserialize(&self.params).map_err(|error| Refusal::invalid_params(format!("invalid `params`: {error}")))
    }
}

/// The parameters of `SendMessage` and `SendStreamingMessage`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SendParams {
    pub(super) message: ClientMessage,
    #[serde(default)]
    pub(super) configuration: Configuration,
}

/// How a client wants the answer.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Configuration {
    pub(super) return_immediately: bool,
    pub(super) history_length: Option<usize>,
    /// The media types that the client takes; all if there are none.
    accepted_output_modes: Vec<String>,
    pub(super) task_push_notification_config: Option<PushConfig>,
}

impl Configuration {
    /// Refuses a client that takes none of the media types of an agent's answers.
    ///
    /// # Errors
    ///
    /// `CONTENT_TYPE_NOT_SUPPORTED`
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let is_taken = |mode: &String| {
            let mode = mode.split(';').next().unwrap_or_default().trim();
            matches!(mode, "*/*" | "text/*" | "text" | "application/*") || MODES.contains(&mode)
        };
        if self.accepted_output_modes.is_empty() || self.accepted_output_modes.iter().any(is_taken) {
            return Ok(());
        }
        let modes = MODES.map(|mode| format!("`{mode}`")).join(" and ");
        Err(Refusal::content_type(format!("`acceptedOutputModes` has neither of {modes}, which answers are of")))
    }
}

/// A message of a client. Its history is not a part of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientMessage {
    pub(super) message_id: String,
    #[serde(default)]
    pub(super) context_id: String,
    #[serde(default)]
    pub(super) task_id: String,
    role: String,
    parts: Vec<ClientPart>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientPart {
    text: Option<String>,
    data: Option<Value>,
    /// The bytes of a file, in base 64.
    raw: Option<String>,
    /// The address of a file.
    url: Option<String>,
    #[serde(default)]
    filename: String,
    #[serde(default)]
    media_type: String,
}

/// What a message says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Said {
    /// Its texts.
    pub(super) text: Option<String>,
    /// The answers to questions: the ids, and the payloads.
    pub(super) answers: Vec<(String, Value)>,
    /// The options of a new run.
    pub(super) options: Option<Value>,
    /// Its files.
    pub(super) files: Vec<MessageFile>,
}

impl ClientMessage {
    /// Returns the skill that the message names.
    pub(super) fn skill(&self) -> Option<&str> {
        self.metadata.get("skill").and_then(Value::as_str)
    }

    /// Reads the parts.
    ///
    /// # Errors
    ///
    /// `INVALID_PARAMS` for a message of an agent, without parts, or with a file and no text.
    pub(super) fn said(&self) -> Result<Said, Refusal> {
        if self.role != "ROLE_USER" {
            return Err(Refusal::invalid_params(format!(
                "`message.role` is `{}`; a client sends `ROLE_USER`",
                self.role
            )));
        }
        let (mut said, mut texts) = (Said::default(), Vec::new());
        for (index, part) in self.parts.iter().enumerate() {
            match (&part.text, &part.data, &part.raw, &part.url) {
                (Some(text), None, None, None) => texts.push(text.trim()),
                (None, Some(data), None, None) => said.add(index, data)?,
                (None, None, Some(_), None) | (None, None, None, Some(_)) => said.files.push(part.file()),
                _ => {
                    let text = format!("`message.parts[{index}]` has to have one of `text`, `data`, `raw` and `url`");
                    return Err(Refusal::invalid_params(text));
                }
            }
        }
        texts.retain(|text| !text.is_empty());
        said.text = (!texts.is_empty()).then(|| texts.join("\n\n"));
        if said == Said::default() {
            return Err(Refusal::invalid_params("`message.parts` is empty"));
        }
        if said.text.is_none() && !said.files.is_empty() {
            return Err(Refusal::invalid_params("a message with files needs a text that says what they are for"));
        }
        Ok(said)
    }
}

impl ClientPart {
    fn file(&self) -> MessageFile {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        let mut file = MessageFile::default();
        file.name = given(&self.filename);
        file.media_type = given(&self.media_type).unwrap_or_else(|| "application/octet-stream".to_owned());
        (file.base64, file.url) = (self.raw.clone(), self.url.clone());
        file
    }
}

impl Said {
    fn add(&mut self, index: usize, data: &Value) -> Result<(), Refusal> {
        let place = format!("message.parts[{index}].data");
        if let Some(question) = data.get("question") {
            let question = question.as_str();
            let question =
                question.ok_or_else(|| Refusal::invalid_params(format!("`{place}.question` is not a text")))?;
            let response = data.get("response");
            let response = response.ok_or_else(|| Refusal::invalid_params(format!("`{place}.response` is missing")))?;
            self.answers.push((question.to_owned(), whole_numbers(response)));
            return Ok(());
        }
        if self.options.is_some() {
            return Err(Refusal::invalid_params(format!("`{place}` is a second value of options")));
        }
        self.options = Some(whole_numbers(data));
        Ok(())
    }
}

/// Returns a value with whole numbers as integers: the protocol's own libraries send all numbers as floating-point ones.
fn whole_numbers(value: &Value) -> Value {
    /// Up to here every whole number has its own floating-point one.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(items) => items.iter().map(whole_numbers).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), whole_numbers(value))).collect(),
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole, and in the range of exact integers")]
            Some(float) if float.fract() == 0.0 && float.abs() <= EXACT => Value::from(float as i64),
            _ => value.clone(),
        },
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(role: &str, parts: &Value) -> Result<Said, Refusal> {
        let message: ClientMessage =
            serde_json::from_value(json!({ "messageId": "m", "role": role, "parts": parts })).unwrap();
        message.said()
    }

    #[test]
    fn parts_are_texts_answers_and_options() {
        let parts = json!([
            { "text": "Hello." },
            { "data": { "question": "q", "response": { "approved": true } } },
            { "data": { "order": 7.0, "price": 7.5 } },
        ]);

        let read = said("ROLE_USER", &parts).unwrap();

        assert_eq!(read.text.as_deref(), Some("Hello."));
        assert_eq!(read.answers, [("q".to_owned(), json!({ "approved": true }))]);
        assert_eq!(read.options, Some(json!({ "order": 7, "price": 7.5 })));
    }

    #[test]
    fn messages_of_agents_files_alone_and_unclear_parts_are_refused() {
        let code = |role, parts: &Value| match said(role, parts) {
            Err(Refusal::Protocol(error)) => error.code(),
            _ => 0,
        };

        assert_eq!(code("ROLE_AGENT", &json!([{ "text": "I said so." }])), -32602);
        assert_eq!(code("ROLE_USER", &json!([])), -32602);
        assert_eq!(code("ROLE_USER", &json!([{ "text": "a", "data": {} }])), -32602);
        assert_eq!(code("ROLE_USER", &json!([{ "data": { "question": "q" } }])), -32602);
        assert_eq!(code("ROLE_USER", &json!([{ "url": "https://example.org/a.png" }])), -32602);
        assert_eq!(code("ROLE_USER", &json!([{ "text": "a", "raw": "AAAA" }])), -32602);
    }

    #[test]
    fn client_takes_a_media_type_of_answers() {
        let takes = |modes: Value| {
            let read: Configuration = serde_json::from_value(json!({ "acceptedOutputModes": modes })).unwrap();
            read.check().is_ok()
        };

        for modes in
            [json!([]), json!(["image/png", "text/plain; charset=utf-8"]), json!(["application/json"]), json!(["*/*"])]
        {
            assert!(takes(modes.clone()), "{modes}");
        }
        assert!(!takes(json!(["image/png", "audio/ogg"])));
    }
}
