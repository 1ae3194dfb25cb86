//! The catalog of metrics: names, units, buckets and labels.
//!
//! Labels have few values: brains, models, tools and kinds, but neither runs nor users.

/// A metric of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Metric {
    Tokens,
    CachedTokens,
    ModelDuration,
    FirstChunk,
    Cost,
    UnpricedAnswers,
    Retries,
    ToolDuration,
    WaitDuration,
    RunsEnded,
}

/// How a metric is aggregated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Aggregation {
    Counter,
    Histogram(&'static [f64]),
}

/// A label of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Label {
    Brain,
    Currency,
    Error,
    Kind,
    Model,
    Provider,
    Status,
    TokenType,
    Tool,
    Verdict,
}

/// The buckets of the GenAI conventions for durations, in seconds.
const SECONDS: &[f64] = &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The buckets of the GenAI conventions for tokens.
#[cfg(feature = "otel")]
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// From a second to a week, in seconds.
const WAITS: &[f64] = &[1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0];

impl Metric {
    pub(crate) const ALL: [Self; 10] = [
        Self::Tokens,
        Self::CachedTokens,
        Self::ModelDuration,
        Self::FirstChunk,
        Self::Cost,
        Self::UnpricedAnswers,
        Self::Retries,
        Self::ToolDuration,
        Self::WaitDuration,
        Self::RunsEnded,
    ];

    /// Returns its name for Prometheus, without the suffix of a counter.
    pub(crate) const fn prometheus(self) -> &'static str {
        match self {
            Self::Tokens => "positronic_tokens",
            Self::CachedTokens => "positronic_cached_tokens",
            Self::ModelDuration => "positronic_model_request_duration_seconds",
            Self::FirstChunk => "positronic_model_first_chunk_seconds",
            Self::Cost => "positronic_cost",
            Self::UnpricedAnswers => "positronic_unpriced_answers",
            Self::Retries => "positronic_retries",
            Self::ToolDuration => "positronic_tool_duration_seconds",
            Self::WaitDuration => "positronic_wait_duration_seconds",
            Self::RunsEnded => "positronic_runs_ended",
        }
    }

    /// Returns its name in OpenTelemetry: that of the GenAI conventions, where they have one.
    #[cfg(feature = "otel")]
    pub(crate) const fn otel(self) -> &'static str {
        match self {
            Self::Tokens => "gen_ai.client.token.usage",
            Self::CachedTokens => "positronic.tokens.cached",
            Self::ModelDuration => "gen_ai.client.operation.duration",
            Self::FirstChunk => "gen_ai.client.operation.time_to_first_chunk",
            Self::Cost => "positronic.cost",
            Self::UnpricedAnswers => "positronic.answers.unpriced",
            Self::Retries => "positronic.retries",
            Self::ToolDuration => "positronic.tool.duration",
            Self::WaitDuration => "positronic.wait.duration",
            Self::RunsEnded => "positronic.runs.ended",
        }
    }

    #[cfg(feature = "otel")]
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Tokens | Self::CachedTokens => "{token}",
            Self::ModelDuration | Self::FirstChunk | Self::ToolDuration | Self::WaitDuration => "s",
            Self::Cost => "{money}",
            Self::UnpricedAnswers => "{answer}",
            Self::Retries => "{retry}",
            Self::RunsEnded => "{run}",
        }
    }

    pub(crate) const fn help(self) -> &'static str {
        match self {
            Self::Tokens => "Tokens of requests (input) and answers (output)",
            Self::CachedTokens => "Tokens of requests that the provider read from its cache",
            Self::ModelDuration => "Time from a request to the end of its answer or its failure",
            Self::FirstChunk => "Time from a request to the first chunk of its answer",
            Self::Cost => "Cost of answers, in units of the currency",
            Self::UnpricedAnswers => "Answers whose cost is unknown",
            Self::Retries => "Failed tries that are followed by another one",
            Self::ToolDuration => "Time of a try of a tool",
            Self::WaitDuration => "Time from a request to a person or a webhook to its end",
            Self::RunsEnded => "Runs that have ended",
        }
    }

    /// Returns how Prometheus gets it.
    pub(crate) const fn shape(self) -> Aggregation {
        match self {
            Self::ModelDuration | Self::FirstChunk | Self::ToolDuration => Aggregation::Histogram(SECONDS),
            Self::WaitDuration => Aggregation::Histogram(WAITS),
            Self::Tokens
            | Self::CachedTokens
            | Self::Cost
            | Self::UnpricedAnswers
            | Self::Retries
            | Self::RunsEnded => Aggregation::Counter,
        }
    }

    /// Returns how OpenTelemetry gets it: the conventions want the distribution of tokens.
    #[cfg(feature = "otel")]
    pub(crate) const fn otel_shape(self) -> Aggregation {
        match self {
            Self::Tokens => Aggregation::Histogram(TOKENS),
            _ => self.shape(),
        }
    }
}

impl Label {
    pub(crate) const fn prometheus(self) -> &'static str {
        match self {
            Self::Brain => "brain",
            Self::Currency => "currency",
            Self::Error => "error",
            Self::Kind => "kind",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Status => "status",
            Self::TokenType => "type",
            Self::Tool => "tool",
            Self::Verdict => "verdict",
        }
    }

    #[cfg(feature = "otel")]
    pub(crate) const fn otel(self) -> &'static str {
        match self {
            Self::Brain => "gen_ai.agent.name",
            Self::Currency => "positronic.currency",
            Self::Error => "error.type",
            Self::Kind => "positronic.kind",
            Self::Model => "gen_ai.request.model",
            Self::Provider => "gen_ai.provider.name",
            Self::Status => "positronic.status",
            Self::TokenType => "gen_ai.token.type",
            Self::Tool => "gen_ai.tool.name",
            Self::Verdict => "positronic.verdict",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guide_lists_every_metric() {
        let guide = include_str!("../../../../docs/guide/monitoring.md");
        for metric in Metric::ALL {
            let suffix = if metric.shape() == Aggregation::Counter { "_total" } else { "" };
            let begin = format!("| `{}{suffix}` |", metric.prometheus());
            let row = guide.lines().find(|line| line.starts_with(&begin));
            #[cfg(feature = "otel")]
            assert!(row.is_some_and(|row| row.contains(&format!("`{}`", metric.otel()))), "{metric:?}");
            #[cfg(not(feature = "otel"))]
            assert!(row.is_some(), "{metric:?}");
        }
    }
}
