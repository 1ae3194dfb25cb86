//! Conversion of an iteration's request with tools into one for structured actions: pure, message by message, so that
//! a request begins with the bytes of the one before it.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::super::normalize_messages::join;
use super::schema::schema;
use crate::machine::RejectedAnswer;
use crate::record::{
    ActionFormat, Assistant, Message, ModelRequest, OrderedJson, OutputFormat, Part, Settings, StructuredActions,
    ToolChoice, ToolDecl, ToolSet, Transcript,
};

/// The name of the schema among formats.
const NAME: &str = "action";

/// Converts the prepared request and the rejected answers to it.
pub(crate) fn structured_request(
    prepared: ModelRequest,
    actions: &StructuredActions,
    refused: &[RejectedAnswer],
) -> ModelRequest {
    let ModelRequest { path, attempt, system, context, tools, messages, settings } = prepared;
    let form = actions.form.unwrap_or_default();
    let output = match form {
        ActionFormat::Plain => OutputFormat::Text,
        ActionFormat::Schema | ActionFormat::Grammar => OutputFormat::JsonSchema {
            name: NAME.to_owned(),
            schema: schema(tools.tools(), actions.batches, form == ActionFormat::Grammar).into(),
        },
    };
    let instructions = instructions(&tools, actions.batches, form);
    let system = if system.is_empty() {
        instructions
    } else if system.ends_with(&instructions) {
        // The system prompt of a fork begins as one that was sent.
        system.to_string()
    } else {
        format!("{system}\n\n{instructions}")
    };
    let mut said = Said { tools: &tools, batches: actions.batches, messages: Vec::new(), results: 0 };
    for entry in messages.read().iter() {
        said.add(&entry.message);
    }
    for answer in refused {
        said.refused(answer);
    }
    ModelRequest {
        path,
        attempt,
        system: system.into(),
        context,
        messages: Transcript::new(said.messages),
        tools: Arc::default(),
        settings: Arc::new(Settings {
            output,
            structured_actions: None,
            tool_choice: ToolChoice::default(),
            parallel_tool_calls: None,
            ..Settings::clone(&settings)
        }),
    }
}

/// Describes the structured actions. It follows the system prompt, because it is the same in all requests with the
/// same actions.
fn instructions(tools: &ToolSet, batches: bool, form: ActionFormat) -> String {
    let object = if batches {
        "{\"reasoning\": \"why, in a sentence or two\", \"actions\": [{\"action\": \"the name of an action\", \"input\": \
         {its input}}]}\n\nYou read the results of all actions of one answer together, in their order. Put only those \
         into one answer that do not need one another's results."
    } else {
        "{\"reasoning\": \"why, in a sentence or two\", \"action\": \"the name of an action\", \"input\": {its input}}"
    };
    let mut text = format!(
        "Act only by the actions below. Answer with one JSON object of this form and nothing else:\n\n{object}\n\nThe \
         actions:"
    );
    for tool in tools.tools() {
        let end = if tool.flags.exit { " When it succeeds, the task is finished." } else { "" };
        // Writing to a string cannot fail.
        _ = write!(text, "\n\n{}: {}{end}\n{}", tool.id, tool.description, input(tool, form));
    }
    text
}

/// Describes an action's input. If the model reads the schema in the format of the answer, the field names suffice to
/// show which input belongs to which action. A grammar constrains the model without being read by it.
fn input(tool: &ToolDecl, form: ActionFormat) -> String {
    let schema = OrderedJson::of_schema(&tool.parameters);
    if schema.is_bare_object_schema() {
        return "Its input is {}".to_owned();
    }
    match (form, schema.get("properties").and_then(OrderedJson::as_object)) {
        (ActionFormat::Schema, Some(fields)) => {
            let fields: Vec<_> = fields.keys().map(|name| format!("`{name}`")).collect();
            format!("The fields of its input: {}", fields.join(", "))
        }
        _ => format!("Its input fits the JSON schema {schema}"),
    }
}

/// The messages for a model with structured actions.
struct Said<'a> {
    tools: &'a ToolSet,
    batches: bool,
    messages: Vec<Message>,
    /// The number of results in the last message.
    results: usize,
}

impl Said<'_> {
    fn add(&mut self, message: &Message) {
        let results = std::mem::take(&mut self.results);
        match message {
            Message::User { text: more, files: next } => match self.messages.last_mut() {
                Some(Message::User { text, files }) if files.is_empty() && next.is_empty() => {
                    join(text, more);
                }
                _ => self.messages.push(message.clone()),
            },
            Message::Assistant { parts, by } => {
                self.messages.push(Message::Assistant { parts: self.action_text(parts), by: by.clone() });
            }
            Message::Tool { name, text, files: made, .. } => {
                let result = format!("The result of `{}`:\n{text}", self.id_of(name));
                match self.messages.last_mut() {
                    // Many templates require alternating roles.
                    Some(Message::User { text, files }) if results > 0 => {
                        _ = write!(text, "\n\n{result}");
                        files.extend_from_slice(made);
                    }
                    _ => self.messages.push(Message::User { text: result, files: made.clone() }),
                }
                self.results = results + 1;
            }
        }
    }

    fn refused(&mut self, RejectedAnswer { parts, message, guard, by }: &RejectedAnswer) {
        let parts: Vec<_> = parts.iter().filter_map(Part::sent_back).collect();
        let is_silent = !parts.iter().any(|part| matches!(part, Assistant::Text { text } if !text.trim().is_empty()));
        let silence = is_silent.then(|| Assistant::Text { text: "(no answer)".to_owned() });
        let parts = parts.into_iter().filter(|part| !is_silent || !matches!(part, Assistant::Text { .. }));
        self.messages.push(Message::Assistant { parts: parts.chain(silence).collect(), by: by.clone() });
        let what = if guard.is_some() { "was refused" } else { "is not a valid action" };
        let text = format!(
            "That answer {what} and had no effect: {message}. Answer again with one JSON object of the form above and nothing \
             else."
        );
        self.messages.push(Message::user(text));
        self.results = 0;
    }

    /// Writes the structured actions of a reason and its calls.
    fn action_text(&self, parts: &[Assistant]) -> Vec<Assistant> {
        let actions: Vec<_> = parts
            .iter()
            .filter_map(|part| match part {
                Assistant::Call { name, arguments, .. } => Some((text(self.id_of(name)), arguments)),
                _ => None,
            })
            .collect();
        if actions.is_empty() {
            return parts.to_vec();
        }
        let mut reasons: Vec<_> = parts.iter().filter_map(reason).collect();
        if reasons.is_empty() {
            // A call of a loop with tools, earlier in the conversation.
            reasons.extend(parts.iter().filter_map(words));
        }
        let reasoning = text(&reasons.join("\n"));
        let action = |(name, input): &(String, &String)| format!("\"action\":{name},\"input\":{input}");
        let json = match actions.as_slice() {
            [only] if !self.batches => format!("{{\"reasoning\":{reasoning},{}}}", action(only)),
            several => {
                let actions: Vec<_> = several.iter().map(|one| format!("{{{}}}", action(one))).collect();
                format!("{{\"reasoning\":{reasoning},\"actions\":[{}]}}", actions.join(","))
            }
        };
        let kept = parts.iter().filter(|part| match part {
            Assistant::Reasoning { data, .. } => data.is_some(),
            Assistant::Opaque { .. } | Assistant::File { .. } => true,
            Assistant::Text { .. } | Assistant::Call { .. } => false,
        });
        kept.cloned().chain([Assistant::Text { text: json }]).collect()
    }

    fn id_of<'n>(&'n self, name: &'n str) -> &'n str {
        self.tools.find(name).map_or(name, |tool| tool.id.as_str())
    }
}

fn text(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns the reason; what a provider wants back is not part of it.
fn reason(part: &Assistant) -> Option<&str> {
    match part {
        Assistant::Reasoning { text, data: None } => Some(text),
        _ => None,
    }
}

fn words(part: &Assistant) -> Option<&str> {
    match part {
        Assistant::Text { text } => Some(text),
        _ => None,
    }
}
