//! Writes the lines of single nodes.

use std::time::Duration;

use positronic_core::record::{LoopOutcome, StageKind, Timestamp, ToolResult};
use serde_json::Value;

use super::figures::{duration, many, seconds, size, tokens};
use super::style::{Line, Sign, Style, Tone};
use super::text::{arguments, one_line, sanitise, shorten, value_line, width, wrap};
use super::view::{CallNode, Flow, Node, NodeId, NodeKind, Phase, StageNode, Status, View};

/// How many lines of thoughts stay in sight.
const THOUGHT_LINES: usize = 3;

/// A countdown shows the second that has begun.
const ALMOST_A_SECOND: Duration = Duration::from_millis(999);

/// Writes nodes of a view in a style.
pub(crate) struct Pen<'a> {
    pub(crate) view: &'a View,
    pub(crate) style: &'a Style,
}

/// Leaves out the options that are not set.
fn given(options: &Value) -> Value {
    match options {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        other => other.clone(),
    }
}

impl Pen<'_> {
    pub(crate) fn indent(&self, depth: usize) -> usize {
        (2 * depth).min(self.style.width / 3)
    }

    pub(crate) fn room(&self, used: usize) -> usize {
        self.style.width.saturating_sub(used)
    }

    pub(super) fn sign(&self, id: NodeId, status: Status) -> (Tone, Sign) {
        match status {
            Status::Ahead => (Tone::Dim, Sign::Ahead),
            Status::Running if self.view.paused || self.view.is_waiting(id) => (Tone::Warn, Sign::Waiting),
            Status::Running => (Tone::Active, self.spinner()),
            Status::Waiting => (Tone::Warn, Sign::Waiting),
            Status::Done => (Tone::Good, Sign::Done),
            Status::Failed => (Tone::Bad, Sign::Failed),
            Status::Cut => (Tone::Warn, Sign::Cut),
            Status::Limited => (Tone::Warn, Sign::Limited),
            Status::Skipped => (Tone::Dim, Sign::Ahead),
        }
    }

    pub(crate) fn spinner(&self) -> Sign {
        Sign::Spinner(u64::try_from(self.view.now.0 / 80_000).unwrap_or(0))
    }

    /// Writes what stands above a node's children.
    pub(crate) fn head(&self, id: NodeId, node: &Node, depth: usize) -> Vec<Line> {
        let unicode = self.style.unicode;
        let indent = self.indent(depth);
        match &node.kind {
            NodeKind::Root { title, options } => self.title(title, options),
            NodeKind::Stage(stage) => self.stage_line(id, node, stage, indent, self.sign(id, node.status)),
            NodeKind::Call(call) => self.call_line(node, call, indent, self.sign(id, node.status)),
            NodeKind::Text { text, flow, .. } => self.said(text, *flow, node.status.is_open(), indent),
            NodeKind::Draft { tool, text, .. } if node.status.is_open() => {
                let line = Line::new(indent).with(Tone::Active, self.spinner().text(unicode));
                let tool = one_line(tool, unicode);
                let room = self.room(indent + 3 + width(&tool));
                vec![
                    line.with(Tone::Plain, format!(" {tool} "))
                        .with(Tone::Dim, shorten(&one_line(text, unicode), room, unicode)),
                ]
            }
            NodeKind::Draft { .. } => Vec::new(),
            NodeKind::Message { text, engine: true } => {
                self.remark(Tone::Dim, Sign::Said, &format!("the model was told: {text}"), indent)
            }
            NodeKind::Message { text, engine: false } => self.remark(Tone::Strong, Sign::Said, text, indent),
            NodeKind::Note { text, warn } => {
                self.remark(if *warn { Tone::Warn } else { Tone::Dim }, Sign::Result, text, indent)
            }
            NodeKind::Retry { attempt, message, due } => self.retry(*attempt, message, *due, indent),
            NodeKind::File { name, media_type, size: bytes, uri } => {
                // Where the store keeps it, its hash helps nobody who looks.
                let place = if uri.starts_with("blob:") { "" } else { uri };
                let text = format!("{name} ({media_type}, {}) {place}", size(*bytes));
                self.remark(Tone::Plain, Sign::Output, &text, indent)
            }
            NodeKind::Custom(custom) => self.remark(Tone::Plain, Sign::Output, &custom.fallback, indent),
            NodeKind::Widget(widget) if widget.updates => {
                self.remark(Tone::Plain, Sign::Output, &format!("updated: {}", widget.text), indent)
            }
            NodeKind::Widget(widget) => self.remark(Tone::Plain, Sign::Output, &widget.text, indent),
        }
    }

    /// Writes what stands below a node's children; `closing` says that its head has scrolled away unfinished.
    pub(crate) fn tail(&self, id: NodeId, node: &Node, depth: usize, closing: bool) -> Vec<Line> {
        let indent = self.indent(depth);
        match &node.kind {
            NodeKind::Root { .. } => self.summary(id),
            NodeKind::Stage(stage) => {
                let mut lines = Vec::new();
                if node.status == Status::Running
                    && let Some(asking) = &stage.asking
                    && !self.streams(id)
                {
                    let since = seconds(self.view.now.since(asking.since));
                    let text = format!("{} is answering, {since}", one_line(&asking.model, self.style.unicode));
                    lines.extend(self.remark(Tone::Dim, self.spinner(), &text, self.indent(depth + 1)));
                }
                if !node.status.is_open() && closing {
                    lines.extend(self.stage_line(id, node, stage, indent, self.sign(id, node.status)));
                }
                if let Some(error) = &stage.error {
                    lines.extend(self.remark(Tone::Bad, Sign::Result, error, self.indent(depth + 1)));
                }
                lines
            }
            NodeKind::Call(call) => {
                let mut lines = Vec::new();
                if !node.status.is_open() && closing {
                    lines.extend(self.call_line(node, call, indent, self.sign(id, node.status)));
                }
                lines.extend(self.outcome(call, self.indent(depth + 1)));
                lines.extend(self.behind(id, call, self.indent(depth + 1)));
                lines
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn streams(&self, id: NodeId) -> bool {
        self.view.children(id).iter().filter_map(|child| self.view.node(*child)).any(|child| {
            matches!(child.kind, NodeKind::Text { flow: Flow::Streaming | Flow::Thinking, .. } | NodeKind::Draft { .. })
        })
    }

    fn title(&self, title: &str, options: &Value) -> Vec<Line> {
        if title.is_empty() {
            return Vec::new();
        }
        let unicode = self.style.unicode;
        let title = shorten(&one_line(title, unicode), self.style.width, unicode);
        let options = arguments(&given(options), unicode);
        let room = self.room(width(&title) + 2);
        let line = Line::new(0).with(Tone::Strong, title);
        vec![if options.is_empty() || room < 8 {
            line
        } else {
            line.with(Tone::Dim, format!("  {}", shorten(&options, room, unicode)))
        }]
    }

    pub(super) fn stage_line(
        &self,
        id: NodeId,
        node: &Node,
        stage: &StageNode,
        indent: usize,
        (tone, sign): (Tone, Sign),
    ) -> Vec<Line> {
        let mut metadata = Vec::new();
        // The limit of iterations says how many there were.
        if let Some(iteration) = stage.iteration.filter(|_| stage.outcome != Some(LoopOutcome::MaxIterations)) {
            let iterations = u64::from(iteration) + 1;
            metadata.push(match (node.status.is_open(), stage.max_iterations) {
                (true, Some(limit)) => format!("iteration {iterations}/{limit}"),
                (true, None) => format!("iteration {iterations}"),
                (false, _) => many(iterations, "iteration"),
            });
        }
        metadata.extend(stage.limit.as_ref().map(|limit| format!("ended by its limit of {limit}")));
        if let Some(usage) = stage.usage.as_ref().filter(|usage| usage.total() > 0) {
            metadata.push(tokens(usage));
        }
        match &stage.outcome {
            Some(LoopOutcome::Exited { tool }) => metadata.push(format!("ended by {tool}")),
            Some(LoopOutcome::Cancelled) => metadata.push("cancelled".to_owned()),
            _ => {}
        }
        if let Some(took) = self.took(node, stage.kind == StageKind::Step || !node.status.is_open()) {
            metadata.push(took);
        }
        if node.status == Status::Running && self.view.is_waiting(id) {
            metadata.push("waiting".to_owned());
        }
        let text_tone =
            if node.status == Status::Ahead || node.status == Status::Skipped { Tone::Dim } else { Tone::Strong };
        self.headline(indent, (tone, sign), (text_tone, &stage.name), "", &metadata)
    }

    /// Says how long a node took, or takes so far.
    fn took(&self, node: &Node, shown: bool) -> Option<String> {
        let started = node.started.filter(|_| shown)?;
        Some(match node.ended {
            Some(ended) if ended.since(started).as_millis() == 0 => return None,
            Some(ended) => duration(ended.since(started)),
            None if self.view.now.since(started).as_secs() == 0 => return None,
            None => seconds(self.view.now.since(started)),
        })
    }

    fn call_line(&self, node: &Node, call: &CallNode, indent: usize, sign: (Tone, Sign)) -> Vec<Line> {
        let took = match call.duration {
            Some(micros) if micros < 1_000 => None,
            Some(micros) => Some(duration(Duration::from_micros(micros))),
            None if node.status == Status::Running => self.took(node, true),
            None => None,
        };
        let arguments = arguments(&call.arguments, self.style.unicode);
        let metadata: Vec<String> = took.into_iter().collect();
        self.headline(indent, sign, (Tone::Plain, &call.tool), &arguments, &metadata)
    }

    /// Puts a sign, a name, a detail and metadata on one line; the detail gives way first.
    fn headline(
        &self,
        indent: usize,
        (tone, sign): (Tone, Sign),
        (name_tone, name): (Tone, &str),
        detail: &str,
        metadata: &[String],
    ) -> Vec<Line> {
        let unicode = self.style.unicode;
        let sign = sign.text(unicode);
        let name = shorten(&one_line(name, unicode), self.room(indent + 2), unicode);
        let mut line = Line::new(indent).with(tone, sign).with(name_tone, format!(" {name}"));
        let mut metadata_text = metadata.join(if unicode { " · " } else { ", " });
        if !metadata_text.is_empty() {
            metadata_text.insert_str(0, "  ");
        }
        let room = self.room(line.width());
        let for_detail = room.saturating_sub(width(&metadata_text) + 1);
        if !detail.is_empty() && for_detail >= 4 {
            line = line.with(Tone::Dim, format!(" {}", shorten(detail, for_detail, unicode)));
        }
        let room = self.room(line.width());
        if room >= 6 {
            line = line.with(Tone::Dim, shorten(&metadata_text, room, unicode));
        }
        vec![line]
    }

    pub(super) fn said(&self, text: &str, flow: Flow, open: bool, indent: usize) -> Vec<Line> {
        let (tone, limit) = match (flow, open) {
            (Flow::Thinking, false) => return Vec::new(),
            (Flow::Thinking, true) => (Tone::Dim, THOUGHT_LINES),
            (Flow::Reason, _) => (Tone::Dim, usize::MAX),
            (Flow::Streaming, true) => (Tone::Plain, self.style.stream_lines),
            (Flow::Streaming, false) | (Flow::Whole, _) => (Tone::Plain, usize::MAX),
        };
        let text = sanitise(text.trim(), self.style.unicode);
        let lines = wrap(&text, self.room(indent));
        let hidden = lines.len().saturating_sub(limit);
        lines
            .iter()
            .skip(hidden)
            .map(|line| Line::new(if line.is_empty() { 0 } else { indent }).with(tone, line.clone()))
            .collect()
    }

    /// Wraps a text behind a sign.
    pub(crate) fn remark(&self, tone: Tone, sign: Sign, text: &str, indent: usize) -> Vec<Line> {
        let unicode = self.style.unicode;
        let sign = sign.text(unicode);
        let hang = indent + width(sign) + 1;
        let text = sanitise(text.trim(), unicode);
        wrap(&text, self.room(hang))
            .into_iter()
            .enumerate()
            .map(|(index, text)| {
                let line = if index == 0 {
                    Line::new(indent).with(tone, sign).with(Tone::Plain, " ")
                } else {
                    Line::new(hang)
                };
                line.with(tone, text)
            })
            .collect()
    }

    fn retry(&self, attempt: u32, message: &str, due: Timestamp, indent: usize) -> Vec<Line> {
        let next = u64::from(attempt) + 2;
        let left = due.since(self.view.now);
        let when = if left.is_zero() { String::new() } else { format!(" in {}", seconds(left + ALMOST_A_SECOND)) };
        self.remark(Tone::Warn, Sign::Retry, &format!("{message}; try {next}{when}"), indent)
    }

    fn outcome(&self, call: &CallNode, indent: usize) -> Vec<Line> {
        let unicode = self.style.unicode;
        let mut lines = Vec::new();
        if let Some(decided) = &call.decided {
            lines.extend(self.remark(Tone::Dim, Sign::Result, decided, indent));
        }
        match &call.phase {
            Phase::Queued => {}
            Phase::Running => {
                if let Some(progress) = &call.progress {
                    let progress = shorten(&one_line(progress, unicode), self.room(indent + 2), unicode);
                    lines.extend(self.remark(Tone::Dim, Sign::Result, &progress, indent));
                }
            }
            Phase::Pending { reason, expires } => {
                let until = self.until(*expires);
                lines.extend(self.remark(
                    Tone::Warn,
                    Sign::Result,
                    &format!("needs approval: {reason}{until}"),
                    indent,
                ));
            }
            Phase::Waiting { waits } => {
                for wait in waits {
                    let who = if wait.person { " from a person" } else { "" };
                    let prompt = wait.prompt.as_ref().map_or_else(String::new, |prompt| format!(": {prompt}"));
                    let until = self.until(wait.expires);
                    let text = format!("waits for {} {}{who}{prompt}{until}", wait.webhook, wait.identifier);
                    lines.extend(self.remark(Tone::Warn, Sign::Result, &text, indent));
                }
            }
            Phase::Done(ToolResult::Success { output: Value::Null, .. }) => {}
            Phase::Done(ToolResult::Success { output, .. }) => {
                let output = shorten(&value_line(output, unicode), self.room(indent + 3), unicode);
                lines.extend(self.remark(Tone::Dim, Sign::Result, &output, indent));
            }
            Phase::Done(ToolResult::Error { message }) => {
                lines.extend(self.remark(Tone::Bad, Sign::Result, &format!("error: {message}"), indent));
            }
            Phase::Done(ToolResult::Denied { reason, by }) => {
                let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
                let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
                lines.extend(self.remark(Tone::Bad, Sign::Result, &format!("denied{by}{reason}"), indent));
            }
            Phase::Done(ToolResult::Skipped { reason }) => {
                lines.extend(self.remark(Tone::Dim, Sign::Result, &format!("skipped: {reason}"), indent));
            }
            Phase::Done(ToolResult::Interrupted { reason }) => {
                lines.extend(self.remark(Tone::Warn, Sign::Result, &format!("interrupted: {reason}"), indent));
            }
        }
        lines
    }

    /// Says which call has to be decided before this one may begin.
    fn behind(&self, id: NodeId, call: &CallNode, indent: usize) -> Vec<Line> {
        if !matches!(call.phase, Phase::Queued) {
            return Vec::new();
        }
        let siblings = self.view.nodes.iter().find(|node| node.children.contains(&id)).map(|node| &node.children);
        let before = siblings.into_iter().flatten().take_while(|sibling| **sibling != id);
        let pending = before
            .filter_map(|sibling| self.view.node(*sibling))
            .find(|node| matches!(&node.kind, NodeKind::Call(call) if matches!(call.phase, Phase::Pending { .. })));
        pending.map_or_else(Vec::new, |node| {
            self.remark(Tone::Dim, Sign::Result, &format!("behind {}", node.path), indent)
        })
    }

    fn until(&self, expires: Option<Timestamp>) -> String {
        expires.map_or_else(String::new, |at| {
            let left = at.since(self.view.now);
            if left.is_zero() { " (expired)".to_owned() } else { format!(" ({} left)", seconds(left)) }
        })
    }

    /// Writes the head of a node that goes on after its head has scrolled away.
    pub(crate) fn open_head(&self, node: &Node, depth: usize) -> Vec<Line> {
        let sign = (Tone::Dim, Sign::Scrolled);
        let indent = self.indent(depth);
        match &node.kind {
            NodeKind::Root { title, options } => self.title(title, options),
            NodeKind::Stage(stage) => self.headline(indent, sign, (Tone::Strong, &stage.name), "", &[]),
            NodeKind::Call(call) => {
                let arguments = arguments(&call.arguments, self.style.unicode);
                self.headline(indent, sign, (Tone::Plain, &call.tool), &arguments, &[])
            }
            _ => Vec::new(),
        }
    }
}
