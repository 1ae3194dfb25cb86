//! The end of a frame: status, usage and outcome of the run.

use positronic_core::projection::timeline::{Ending, NodeId};
use serde_json::Value;

use super::cost_line::cost;
use super::figures::{duration, many, seconds, tokens};
use super::lines::NodeRenderer;
use super::sentences::is_cut_off;
use super::view::ROOT;
use super::words::ended;
use super::{Line, Sign, Tone, one_line, sanitise, shorten, width};

impl NodeRenderer<'_> {
    /// Renders the last lines of a frame: status and usage, and finally the result.
    pub(super) fn summary(&self, id: NodeId) -> Vec<Line> {
        let view = self.view;
        let Some(root) = view.node(id).filter(|root| root.started.is_some()) else { return Vec::new() };
        let started = root.started.unwrap_or_default();
        let (tone, sign, word) = match view.timeline.ending() {
            None if view.timeline.is_paused() => (Tone::Warn, Sign::Waiting, "paused"),
            None if view.is_waiting(ROOT) => (Tone::Warn, Sign::Waiting, "waiting"),
            None => (Tone::Active, self.spinner(), "running"),
            Some(Ending::Completed { .. }) if is_cut_off(&view.timeline) => {
                (Tone::Warn, Sign::Limited, "completed, cut off")
            }
            Some(Ending::Completed { .. }) => (Tone::Good, Sign::Done, "completed"),
            Some(Ending::Failed(_)) => (Tone::Bad, Sign::Failed, "failed"),
            Some(_) => (Tone::Warn, Sign::Cut, "cancelled"),
        };
        let took = match root.ended {
            Some(ended) => duration(ended.since(started)),
            None => seconds(view.now.since(started)),
        };
        let mut metadata: Vec<String> = view
            .at_work()
            .filter(|_| !view.is_ended())
            .map(|(name, iteration)| format!("{} iteration {}", one_line(name), u64::from(iteration) + 1))
            .into_iter()
            .collect();
        metadata.push(took);
        if view.timeline.usage.total() > 0 {
            metadata.push(tokens(&view.timeline.usage));
        }
        if view.timeline.answers > 0 {
            metadata.push(cost(&view.timeline));
        }
        let mut lines = self.packed((tone, sign), word, &metadata);
        match view.timeline.ending() {
            // The stage that failed has said why.
            Some(Ending::Failed(failure)) if view.has_shown_failure(&failure.message) => {}
            Some(ending @ (Ending::Failed(_) | Ending::Cancelled { .. })) => {
                let why = ended(ending).map(|(_, rest)| rest).unwrap_or_default();
                lines.extend(self.remark(tone, Sign::Result, why.trim_start_matches([':', ' ']), 2));
            }
            Some(Ending::Completed { result }) => lines.extend(self.result(result)),
            _ => {}
        }
        lines
    }

    /// Fills lines with as much metadata as fits.
    fn packed(&self, (tone, sign): (Tone, Sign), word: &str, metadata: &[String]) -> Vec<Line> {
        let between = " · ";
        let mut lines = Vec::new();
        let mut line = Line::new(0).with(tone, sign.text()).with(tone, format!(" {word}"));
        for fact in metadata {
            if line.width() + width(between) + width(fact) > self.style.width {
                lines.push(std::mem::replace(&mut line, Line::new(2)));
                line = line.with(Tone::Dim, shorten(fact, self.room(2)));
            } else {
                line = line.with(Tone::Dim, format!("{between}{fact}"));
            }
        }
        lines.push(line);
        lines
    }

    pub(super) fn result(&self, result: &Value) -> Vec<Line> {
        let limit = self.style.result_lines;
        if limit == 0 || result.is_null() {
            return Vec::new();
        }
        let text = serde_json::to_string_pretty(result).unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        let mut lines: Vec<Line> = all
            .iter()
            .take(if all.len() > limit { limit.saturating_sub(1) } else { limit })
            .map(|line| {
                let line = shorten(&sanitise(line), self.room(2));
                Line::new(2).with(Tone::Plain, line)
            })
            .collect();
        let hidden = u64::try_from(all.len() - lines.len()).unwrap_or(0);
        if hidden > 0 {
            let text = format!("({} more)", many(hidden, "line"));
            lines.push(Line::new(2).with(Tone::Dim, text));
        }
        lines
    }
}
