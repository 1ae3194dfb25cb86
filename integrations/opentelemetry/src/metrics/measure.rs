//! What a span adds to the metrics.

use positronic_core::record::{CODE, ResponseMetadata};

use super::catalog::{Label, Metric};
use crate::spans::{Chat, Operation, Span, Tool, Wait};

/// The labels of a value, in the same order for each value of a metric.
pub(crate) type Labels = Vec<(Label, String)>;

/// Calls `record` for each value of a span.
pub(crate) fn measure(span: &Span, mut record: impl FnMut(Metric, f64, Labels)) {
    let error = || span.outcome.error().unwrap_or_default().to_owned();
    match &span.operation {
        Operation::Agent(agent) => {
            if let Some(status) = agent.status.filter(|_| span.path.is_root()) {
                let labels = vec![(Label::Brain, agent.title.to_string()), (Label::Status, status.as_str().to_owned())];
                record(Metric::RunsEnded, 1.0, labels);
            }
        }
        Operation::Step { retried, .. } if *retried => record(Metric::Retries, 1.0, kind("step")),
        Operation::Chat(chat) => chat_values(span, chat, &error(), &mut record),
        Operation::Tool(tool) => tool_values(span, tool, error(), &mut record),
        Operation::Wait(wait) => {
            let Wait { kind, verdict, .. } = &**wait;
            let labels = vec![(Label::Kind, kind.as_str().to_owned()), (Label::Verdict, (*verdict).to_owned())];
            record(Metric::WaitDuration, span.duration().as_secs_f64(), labels);
        }
        Operation::Step { .. } | Operation::Loop { .. } | Operation::Iteration { .. } => {}
    }
}

fn kind(kind: &str) -> Labels {
    vec![(Label::Kind, kind.to_owned())]
}

fn chat_values(span: &Span, chat: &Chat, error: &str, record: &mut impl FnMut(Metric, f64, Labels)) {
    let model = || vec![(Label::Provider, provider(&chat.provider).to_owned()), (Label::Model, chat.model.clone())];
    let with = |label, value: &str| {
        let mut labels = model();
        labels.push((label, value.to_owned()));
        labels
    };
    let duration = chat.measured.unwrap_or_else(|| span.duration());
    record(Metric::ModelDuration, duration.as_secs_f64(), with(Label::Error, error));
    if chat.retried {
        record(Metric::Retries, 1.0, kind("model"));
    }
    if let Some(first) = chat.answer.as_ref().and_then(|answer| answer.first_chunk) {
        record(Metric::FirstChunk, first.as_secs_f64(), model());
    }
    for answer in chat.broken.iter().chain(&chat.answer).filter(|answer| answer.provider != CODE) {
        let ResponseMetadata { usage, cost, .. } = answer;
        record(Metric::Tokens, number(usage.input), with(Label::TokenType, "input"));
        record(Metric::Tokens, number(usage.output), with(Label::TokenType, "output"));
        record(Metric::CachedTokens, number(usage.cached), model());
        match cost {
            Some(cost) => record(Metric::Cost, money(cost.amount.nanos()), with(Label::Currency, &cost.currency)),
            None if answer.is_free() => {}
            None => record(Metric::UnpricedAnswers, 1.0, model()),
        }
    }
}

fn tool_values(span: &Span, tool: &Tool, error: String, record: &mut impl FnMut(Metric, f64, Labels)) {
    // A model can invent any name.
    let name = if tool.started { tool.name.clone() } else { "unknown".to_owned() };
    record(Metric::ToolDuration, span.duration().as_secs_f64(), vec![(Label::Tool, name), (Label::Error, error)]);
    if tool.retried {
        record(Metric::Retries, 1.0, kind("tool"));
    }
}

/// Returns the provider's name in the GenAI conventions.
pub(crate) fn provider(name: &str) -> &str {
    match name {
        "azure" => "azure.ai.openai",
        "bedrock" => "aws.bedrock",
        "gemini" | "google" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        name => name,
    }
}

#[expect(clippy::cast_precision_loss, reason = "metrics are floating-point numbers")]
const fn number(count: u64) -> f64 {
    count as f64
}

/// Returns units of a currency from billionths.
fn money(nanos: u64) -> f64 {
    number(nanos) / 1e9
}
