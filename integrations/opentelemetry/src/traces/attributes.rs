//! Names and attributes of exported spans.

use opentelemetry::{Array, KeyValue, StringValue, Value};
use positronic_core::record::{Finish, ResponseMetadata};

use super::names;
use crate::metrics::provider;
use crate::spans::{Agent, Chat, Operation, Outcome, Span, Tool, Wait};

/// Returns the name of a span: of few values, as the conventions require.
pub(super) fn name(operation: &Operation) -> String {
    match operation {
        Operation::Agent(agent) => format!("invoke_agent {}", agent.title),
        Operation::Step { name, .. } => format!("step {name}"),
        Operation::Loop { name, .. } => format!("loop {name}"),
        Operation::Iteration { .. } => "iteration".to_owned(),
        Operation::Chat(chat) => format!("chat {}", chat.model),
        Operation::Tool(tool) if !tool.started => "execute_tool".to_owned(),
        Operation::Tool(tool) => format!("execute_tool {}", tool.name),
        Operation::Wait(wait) => format!("wait {}", wait.kind.as_str()),
    }
}

/// Returns the attributes of a span, without content.
pub(super) fn of(span: &Span) -> Vec<KeyValue> {
    let segment = &span.segment;
    let mut to = Attributes(vec![
        KeyValue::new(names::RUN, segment.run.to_string()),
        KeyValue::new(names::EVENT, integer(span.seq.0)),
    ]);
    to.text(names::PATH, span.path.as_str());
    match &span.operation {
        Operation::Agent(agent) => to.agent(span, agent),
        Operation::Step { name, attempt, retried } => {
            to.text(names::STAGE, name);
            to.tries(*attempt, *retried);
        }
        Operation::Loop { name, outcome } => {
            to.text(names::STAGE, name);
            to.text(names::OUTCOME, outcome.unwrap_or_default());
        }
        Operation::Iteration { number } => to.put(names::ITERATION, i64::from(*number)),
        Operation::Chat(chat) => to.chat(span, chat),
        Operation::Tool(tool) => to.tool(tool),
        Operation::Wait(wait) => to.wait(wait),
    }
    match &span.outcome {
        Outcome::Failed { error, .. } => to.text(names::ERROR_TYPE, error),
        Outcome::Suspended => to.put(names::SUSPENDED, true),
        Outcome::Done => {}
    }
    to.0
}

struct Attributes(Vec<KeyValue>);

impl Attributes {
    fn put(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.push(KeyValue::new(name, value));
    }

    /// Adds a text that is not empty.
    fn text(&mut self, name: &'static str, text: &str) {
        if !text.is_empty() {
            self.put(name, text.to_owned());
        }
    }

    fn texts(&mut self, name: &'static str, texts: impl IntoIterator<Item = String>) {
        let texts: Vec<StringValue> = texts.into_iter().map(Into::into).collect();
        if !texts.is_empty() {
            self.put(name, Value::Array(Array::String(texts)));
        }
    }

    fn tries(&mut self, attempt: u32, retried: bool) {
        if attempt > 0 {
            self.put(names::ATTEMPT, i64::from(attempt));
        }
        if retried {
            self.put(names::RETRIED, true);
        }
    }

    /// A run has several traces; the conversation, or else the run, joins them.
    fn conversation(&mut self, span: &Span) {
        let segment = &span.segment;
        self.text(names::CONVERSATION_ID, segment.conversation.as_deref().unwrap_or(segment.run.as_str()));
    }

    fn agent(&mut self, span: &Span, agent: &Agent) {
        self.put(names::OPERATION_NAME, "invoke_agent");
        self.text(names::AGENT_NAME, &agent.title);
        if agent.version > 0 {
            self.put(names::AGENT_VERSION, agent.version.to_string());
        }
        self.text(names::PROVIDER_NAME, agent.provider.as_deref().map_or("", provider));
        self.text(names::STAGE, agent.stage.as_deref().unwrap_or_default());
        self.text(names::STATUS, agent.status.map_or("", |status| status.as_str()));
        self.conversation(span);
        if span.path.is_root() {
            self.put(names::SEGMENT, integer(span.segment.number));
            self.text(names::WORKER, span.segment.worker.as_deref().unwrap_or_default());
            self.text(names::USER_ID, span.segment.user.as_deref().unwrap_or_default());
        }
    }

    fn chat(&mut self, span: &Span, chat: &Chat) {
        self.put(names::OPERATION_NAME, "chat");
        self.text(names::PROVIDER_NAME, provider(&chat.provider));
        self.text(names::REQUEST_MODEL, &chat.model);
        self.conversation(span);
        if let Some(temperature) = chat.temperature {
            self.put(names::REQUEST_TEMPERATURE, temperature);
        }
        if let Some(max_tokens) = chat.max_tokens {
            self.put(names::REQUEST_MAX_TOKENS, i64::from(max_tokens));
        }
        self.tries(chat.attempt, chat.retried);
        if let Some(status) = chat.error.as_ref().and_then(|error| error.status) {
            self.put(names::HTTP_STATUS, i64::from(status));
        }
        let Some(answer) = &chat.answer else { return };
        let ResponseMetadata { answered_by, response_id, finish, first_chunk, usage, cost, .. } = answer;
        self.text(names::RESPONSE_MODEL, answered_by.as_deref().unwrap_or(&chat.model));
        self.text(names::RESPONSE_ID, response_id.as_deref().unwrap_or_default());
        self.texts(names::RESPONSE_FINISH_REASONS, [reason(finish).to_owned()]);
        if let Some(first) = first_chunk {
            self.put(names::RESPONSE_FIRST_CHUNK, first.as_secs_f64());
        }
        self.put(names::USAGE_INPUT, integer(usage.input));
        self.put(names::USAGE_OUTPUT, integer(usage.output));
        for (name, tokens) in [(names::USAGE_CACHED, usage.cached), (names::USAGE_REASONING, usage.reasoning)] {
            if tokens > 0 {
                self.put(name, integer(tokens));
            }
        }
        if let Some(cost) = cost {
            // As a number, so that a backend can add it up.
            self.put(names::COST, cost.amount.to_string().parse::<f64>().unwrap_or_default());
            self.text(names::CURRENCY, &cost.currency);
        }
    }

    fn tool(&mut self, tool: &Tool) {
        self.put(names::OPERATION_NAME, "execute_tool");
        self.text(names::TOOL_NAME, &tool.name);
        self.text(names::TOOL_CALL_ID, &tool.call);
        self.put(names::TOOL_TYPE, "function");
        self.tries(tool.attempt, tool.retried);
    }

    fn wait(&mut self, wait: &Wait) {
        self.put(names::WAIT_KIND, wait.kind.as_str());
        self.put(names::WAIT_VERDICT, wait.verdict);
        self.text(names::TOOL_NAME, &wait.tool);
        self.text(names::WAIT_ACTOR, wait.actor.by.as_deref().unwrap_or_default());
        self.text(names::WAIT_CHANNEL, wait.actor.channel.as_deref().unwrap_or_default());
        self.texts(names::WAIT_WEBHOOKS, wait.webhooks.iter().cloned());
        if wait.edited {
            self.put(names::WAIT_EDITED, true);
        }
        if let Some(limit) = wait.limit {
            self.text(names::WAIT_LIMIT, &crate::spans::word(&limit));
        }
    }
}

fn reason(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "stop",
        Finish::Calls => "tool_call",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        Finish::Refused => "refusal",
        Finish::Paused => "pause",
        Finish::Other(reason) => reason,
        _ => "other",
    }
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
