//! Lines of a model's answer, while it streams and when it is complete.

use positronic_core::projection::timeline::{AnswerNode, AnswerOutcome, Stream, StreamPart};
use positronic_core::record::DeltaKind;

use super::lines::Pen;
use super::routing::{failed_over, way};
use super::view::shown_text;
use super::{Line, Sign, Tone, one_line, sanitise, shorten, width, wrap};

/// Number of visible lines of reasoning.
const THOUGHT_LINES: usize = 3;

impl Pen<'_> {
    /// Renders the failures of a request before its answer.
    pub(super) fn answer_head(&self, answer: &AnswerNode, indent: usize) -> Vec<Line> {
        let (answered, refused) = match &answer.outcome {
            Some(AnswerOutcome::Answered(answer)) => (answer, None),
            Some(AnswerOutcome::Refused { message, answer }) => (answer, Some(message)),
            Some(AnswerOutcome::Failed { error, due }) => {
                return self.retry(answer.attempt, &error.to_string(), *due, indent);
            }
            _ => return Vec::new(),
        };
        let tone = if failed_over(&answered.metadata) { Tone::Warn } else { Tone::Dim };
        let way = way(&answered.metadata).map(|way| self.remark(tone, Sign::Result, &way, indent));
        let refused = refused.map(|message| format!("invalid structured action: {message}"));
        let refused = refused.map(|text| self.remark(Tone::Warn, Sign::Result, &text, indent));
        way.into_iter().chain(refused).flatten().collect()
    }

    /// Renders an answer: its stream, or its complete text.
    pub(super) fn answer_text(&self, answer: &AnswerNode, indent: usize) -> Vec<Line> {
        match (&answer.outcome, &answer.stream) {
            (Some(AnswerOutcome::Answered(answer)), _) => {
                let texts = answer.parts.iter().filter_map(shown_text);
                let tone = |reason| if reason { Tone::Dim } else { Tone::Plain };
                texts.flat_map(|(text, reason)| self.text_lines(text, tone(reason), usize::MAX, indent)).collect()
            }
            (None, Some(stream)) => self.stream(stream, indent),
            _ => Vec::new(),
        }
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
