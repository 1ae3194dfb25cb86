//! What a client of AG-UI posts, as far as it is read.

use positronic_core::record::CallerTool;
use positronic_server::extension::CallResult;
use positronic_server::{FieldError, Problem, ProblemType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::thread::EMPTY_MESSAGE;

/// The input of a leg. Of the messages only those of the user since the last answer are read, or the results of calls of the page's
/// tools; the state and the context are not.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgUiRunAgentInput")]
pub(super) struct RunAgentInput {
    /// The thread: a conversation, or a run that began elsewhere.
    #[schemars(length(min = 1))]
    pub(super) thread_id: String,
    /// The client's id of this leg.
    pub(super) run_id: String,
    #[serde(default)]
    pub(super) messages: Vec<InputMessage>,
    /// The tools of the page, which a loop gets that takes those of its caller.
    #[serde(default)]
    tools: Vec<Value>,
    /// The answers to the interrupts of the leg before.
    #[serde(default)]
    pub(super) resume: Option<Vec<ResumeEntry>>,
    /// `options`: the options of the brain, for a new run.
    #[serde(default)]
    pub(super) forwarded_props: Value,
}

/// A message.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AgUiMessage")]
pub(super) struct InputMessage {
    pub(super) id: String,
    pub(super) role: String,
    /// A text, or a list of parts.
    #[serde(default)]
    pub(super) content: Value,
    /// The call of which a message of the role `tool` is the result.
    #[serde(default, rename = "toolCallId")]
    tool_call_id: Option<String>,
}

/// A tool of the page.
#[derive(Debug, Deserialize)]
struct InputTool {
    name: String,
    #[serde(default)]
    description: String,
    /// The JSON schema of the arguments.
    #[serde(default)]
    parameters: Value,
}

/// The answer to an interrupt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgUiResumeEntry")]
pub(super) struct ResumeEntry {
    pub(super) interrupt_id: String,
    pub(super) status: ResumeStatus,
    /// The answer. Without one, a `resolved` question stays open, and the client waits for what others decide.
    #[serde(default)]
    pub(super) payload: Value,
}

/// Whether a person has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AgUiResumeStatus")]
pub(super) enum ResumeStatus {
    Resolved,
    /// The person has closed the question without an answer: it stays open.
    Cancelled,
}

impl ResumeEntry {
    /// Returns the answer; `None` if there is none.
    pub(super) fn answer(&self) -> Option<&Value> {
        (self.status == ResumeStatus::Resolved && !self.payload.is_null()).then_some(&self.payload)
    }
}

impl RunAgentInput {
    /// Returns whether a question is answered.
    pub(super) fn has_answers(&self) -> bool {
        self.resume.iter().flatten().any(|entry| entry.answer().is_some())
    }

    /// Returns the messages of the user after the last one of an assistant, each with its id: CopilotKit adds the answer to a question
    /// behind them. One before the end of the list that has no text was refused, and is left out.
    ///
    /// # Errors
    ///
    /// `Unprocessable` if the last message is one of the user that has other parts than text, or is empty.
    pub(super) fn said(&self) -> Result<Vec<(&str, String)>, Problem> {
        let mut said = Vec::new();
        let since = self.messages.iter().enumerate().rev().take_while(|(_, message)| message.role != "assistant");
        for (index, message) in since.filter(|(_, message)| message.role == "user") {
            let text = text_of(&message.content).ok_or("a bridge takes messages of text only");
            match text.and_then(|text| if text.trim().is_empty() { Err(EMPTY_MESSAGE) } else { Ok(text) }) {
                Ok(text) => said.push((message.id.as_str(), text)),
                Err(detail) if index + 1 == self.messages.len() => {
                    let errors = vec![FieldError::new(format!("/messages/{index}/content"), detail)];
                    return Err(Problem::new(ProblemType::Unprocessable).detail(detail).errors(errors));
                }
                Err(_) => {}
            }
        }
        said.reverse();
        Ok(said)
    }
}

impl RunAgentInput {
    /// Returns the tools of the page.
    ///
    /// # Errors
    ///
    /// `InvalidBody` if one cannot be taken.
    pub(super) fn caller_tools(&self) -> Result<Vec<CallerTool>, Problem> {
        let tools = self.tools.iter().enumerate().map(|(index, tool)| {
            read_tool(tool).map_err(|detail| {
                let errors = vec![FieldError::new(format!("/tools/{index}"), detail.clone())];
                Problem::new(ProblemType::InvalidBody).detail(detail).errors(errors)
            })
        });
        tools.collect()
    }

    /// Returns the results of these calls among the last messages.
    pub(super) fn results(&self, calls: &[String]) -> Vec<CallResult> {
        let last = self.messages.iter().rev().take_while(|message| message.role == "tool");
        let results = last.filter_map(|message| {
            let call = message.tool_call_id.as_ref().filter(|id| calls.contains(id))?;
            Some(CallResult { call: call.clone(), result: text_of(&message.content)?.into() })
        });
        results.collect()
    }
}

fn read_tool(tool: &Value) -> Result<CallerTool, String> {
    let InputTool { name, description, parameters } =
        InputTool::deserialize(tool).map_err(|error| format!("this is not a tool: {error}"))?;
    let schema = if parameters.is_null() { json!({}) } else { parameters };
    CallerTool::new(&name, &description, schema).map_err(|error| error.to_string())
}

/// Returns the text of a message's content; `None` if it has other parts.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| match part.get("type").and_then(Value::as_str) {
                Some("text") => part.get("text").and_then(Value::as_str),
                _ => None,
            });
            Some(texts.collect::<Option<Vec<_>>>()?.join("\n"))
        }
        _ => None,
    }
}
