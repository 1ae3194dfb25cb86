//! Lines of a model's answer, while it streams and when it is complete.

use positronic_core::projection::timeline::{AnswerNode, AnswerOutcome, NodeId, Stream, StreamPart};
use positronic_core::record::{Citation, DeltaKind, ProviderToolUse};

use super::lines::NodeRenderer;
use super::model_routing::{failed_over, routing_summary};
use super::shown_answer::{ShownAnswer, ShownPart};
use super::{Line, Sign, Tone, one_line, sanitise, shorten, width, wrap};
use super::{sentences, words};

/// Number of visible lines of reasoning.
const THOUGHT_LINES: usize = 3;

impl NodeRenderer<'_> {
    /// Renders the failures of a request before its answer.
    pub(super) fn answer_head(&self, id: NodeId, answer: &AnswerNode, indent: usize) -> Vec<Line> {
        let (answered, refused) = match &answer.outcome {
            Some(AnswerOutcome::Answered(answer)) => (answer, None),
            Some(AnswerOutcome::Refused { guard, message, answer }) => (answer, Some((guard, message))),
            Some(AnswerOutcome::Failed { error, .. }) if self.is_repeated(id, &error.to_string()) => return Vec::new(),
            Some(AnswerOutcome::Failed { error, due }) => {
                return self.retry(answer.attempt, &error.to_string(), *due, indent);
            }
            _ => return Vec::new(),
        };
        let tone = if failed_over(&answered.metadata) { Tone::Warn } else { Tone::Dim };
        let way = routing_summary(&answered.metadata).map(|way| self.remark(tone, Sign::Result, &way, indent));
        let refused = refused.map(|(guard, message)| sentences::refused_answer(guard.as_deref(), message));
        let refused = refused.map(|text| self.remark(Tone::Warn, Sign::Result, &text, indent));
        way.into_iter().chain(refused).flatten().collect()
    }

    /// Renders an answer: its stream, or its visible parts with the notes about its files.
    pub(super) fn answer_text(&self, id: NodeId, answer: &AnswerNode, indent: usize) -> Vec<Line> {
        match (&answer.outcome, &answer.stream) {
            (Some(AnswerOutcome::Answered(answer)), _) => {
                let shown = ShownAnswer::of(&answer.parts);
                let mut lines: Vec<Line> = shown.parts.iter().flat_map(|part| self.part(part, indent)).collect();
                lines.extend(self.notes(id, indent));
                lines.extend(self.source_lines(&shown.sources, indent));
                lines
            }
            (None, Some(stream)) => self.stream(stream, indent),
            _ => Vec::new(),
        }
    }

    fn part(&self, part: &ShownPart<'_>, indent: usize) -> Vec<Line> {
        match part {
            ShownPart::Text(text) => self.text_lines(text, Tone::Plain, usize::MAX, indent),
            ShownPart::Reason(text) => self.text_lines(text, Tone::Dim, usize::MAX, indent),
            ShownPart::Tool(used) => self.provider_tool(used, indent),
            ShownPart::File(file) => self.remark(Tone::Plain, Sign::Output, &words::file(file), indent),
        }
    }

    /// Renders what a tool of the provider did as a call is rendered.
    fn provider_tool(&self, used: &ProviderToolUse, indent: usize) -> Vec<Line> {
        let sign = if used.error.is_some() { (Tone::Bad, Sign::Failed) } else { (Tone::Good, Sign::Done) };
        let input = one_line(used.input.as_deref().unwrap_or_default().trim());
        let mut lines = self.headline(indent, sign, (Tone::Plain, &used.tool), &input, &[]);
        let below = indent + 2;
        if let Some(error) = &used.error {
            lines.extend(self.remark(Tone::Bad, Sign::Result, error, below));
        }
        if let Some(output) = used.output.as_deref().filter(|output| !output.trim().is_empty()) {
            lines.push(self.short_line(output.trim(), below));
        }
        lines.extend(self.source_lines(&used.sources.iter().collect::<Vec<_>>(), below));
        lines
    }

    /// Renders the first sources, each in one line.
    fn source_lines(&self, sources: &[&Citation], indent: usize) -> Vec<Line> {
        words::sources(sources).iter().map(|source| self.short_line(source, indent)).collect()
    }

    fn short_line(&self, text: &str, indent: usize) -> Line {
        let sign = Sign::Result.text();
        let text = shorten(&one_line(text), self.room(indent + width(sign) + 1));
        Line::new(indent).with(Tone::Dim, format!("{sign} {text}"))
    }

    fn stream(&self, stream: &Stream, indent: usize) -> Vec<Line> {
        let mut lines: Vec<Line> = stream.parts.iter().flat_map(|part| self.stream_part(part, indent)).collect();
        if stream.gap {
            let text = "a part is missing until the answer is complete";
            lines.extend(self.remark(Tone::Dim, Sign::Result, text, indent));
        }
        lines
    }

    fn stream_part(&self, part: &StreamPart, indent: usize) -> Vec<Line> {
        match part.kind {
            DeltaKind::Text => self.text_lines(&part.text, Tone::Plain, self.style.stream_lines, indent),
            DeltaKind::Reasoning => self.text_lines(&part.text, Tone::Dim, THOUGHT_LINES, indent),
            DeltaKind::Arguments => {
                let line = Line::new(indent).with(Tone::Active, self.spinner().text());
                let tool = one_line(part.tool.as_deref().unwrap_or_default());
                let text = shorten(&one_line(&part.text), self.room(indent + 3 + width(&tool)));
                vec![line.with(Tone::Plain, format!(" {tool} ")).with(Tone::Dim, text)]
            }
            _ => Vec::new(),
        }
    }

    /// Writes the last lines of a text, at most `limit`.
    fn text_lines(&self, text: &str, tone: Tone, limit: usize, indent: usize) -> Vec<Line> {
        let text = sanitise(text.trim());
        let lines = wrap(&text, self.room(indent));
        let hidden = lines.len().saturating_sub(limit);
        lines
            .iter()
            .skip(hidden)
            .map(|line| Line::new(if line.is_empty() { 0 } else { indent }).with(tone, line.clone()))
            .collect()
    }
}
