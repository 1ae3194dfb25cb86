//! Lines of single nodes.

use std::time::Duration;

use positronic_core::projection::timeline::{CallNode, Node, NodeId, NodeKind, NodeStatus, StageNode, Waited};
use positronic_core::record::{
    ApprovalOutcome, CallState, Decision, FileRef, LoopOutcome, Speaker, Timestamp, ToolResult,
};
use serde_json::Value;

use super::figures::{duration, left, many, seconds, tokens};
use super::sentences::has_failed_with;
use super::view::failure;
use super::{
    Line, Sign, Style, Tone, View, arguments, one_line, sanitise, sentences, shorten, value_line, width, words, wrap,
};

/// A countdown rounds up to seconds.
const ALMOST_A_SECOND: Duration = Duration::from_millis(999);

/// Renders nodes of a view in a style.
pub(crate) struct NodeRenderer<'a> {
    pub(crate) view: &'a View,
    pub(crate) style: &'a Style,
}

/// Drops unset options.
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

impl NodeRenderer<'_> {
    pub(crate) fn indent(&self, depth: usize) -> usize {
        (2 * depth).min(self.style.width / 3)
    }

    pub(crate) fn room(&self, used: usize) -> usize {
        self.style.width.saturating_sub(used)
    }

    pub(super) fn sign(&self, id: NodeId, status: NodeStatus) -> (Tone, Sign) {
        match status {
            NodeStatus::Running if self.view.timeline.is_paused() || self.view.is_waiting(id) => {
                (Tone::Warn, Sign::Waiting)
            }
            NodeStatus::Running => (Tone::Active, self.spinner()),
            NodeStatus::Waiting => (Tone::Warn, Sign::Waiting),
            NodeStatus::Done => (Tone::Good, Sign::Done),
            NodeStatus::Failed => (Tone::Bad, Sign::Failed),
            NodeStatus::Interrupted => (Tone::Warn, Sign::Cut),
            NodeStatus::Limited => (Tone::Warn, Sign::Limited),
            _ => (Tone::Dim, Sign::Ahead),
        }
    }

    /// Returns the sign of a call: one that a person denied has not failed.
    fn call_sign(&self, id: NodeId, node: &Node, call: &CallNode) -> (Tone, Sign) {
        match &call.result {
            Some(ToolResult::Denied { .. }) => (Tone::Warn, Sign::Denied),
            _ => self.sign(id, node.status),
        }
    }

    pub(crate) fn spinner(&self) -> Sign {
        Sign::Spinner(u64::try_from(self.view.now.0 / 80_000).unwrap_or(0))
    }

    /// Renders the lines above a node's children.
    pub(crate) fn head(&self, id: NodeId, node: &Node, depth: usize) -> Vec<Line> {
        let indent = self.indent(depth);
        match &node.kind {
            NodeKind::Brain(brain) => self.title(&brain.title, &brain.options),
            NodeKind::Stage(stage) => {
                let mut lines = self.stage_line(id, node, stage, indent, self.sign(id, node.status));
                lines.extend(self.notes(id, indent + 2));
                lines
            }
            NodeKind::Call(call) => self.call_line(node, call, indent, self.call_sign(id, node, call)),
            NodeKind::Answer(answer) => self.answer_head(id, answer, indent),
            NodeKind::Retry { attempt, message, due } => match self.is_repeated(id, message) {
                true => Vec::new(),
                false => self.retry(*attempt, message, *due, indent),
            },
            NodeKind::Message { text, files, from: Speaker::Person, .. } => self.message(text, files, indent),
            NodeKind::File { file, .. } => {
                let mut lines = self.remark(Tone::Plain, Sign::Output, &words::file(file), indent);
                lines.extend(self.notes(id, indent));
                lines
            }
            NodeKind::Custom { output, .. } => self.remark(Tone::Plain, Sign::Output, &output.fallback, indent),
            NodeKind::Widget(widget) => match self.view.widget(id, widget) {
                Some((text, true)) => self.remark(Tone::Plain, Sign::Output, &format!("updated: {text}"), indent),
                Some((text, false)) => self.remark(Tone::Plain, Sign::Output, text, indent),
                None => Vec::new(),
            },
            NodeKind::Limit(reached) => {
                self.remark(Tone::Warn, Sign::Result, &sentences::limit(reached, self.view.currency()), indent)
            }
            NodeKind::Message { .. } => self.narrated(node, [Tone::Dim; 2], Sign::Said, indent),
            NodeKind::Compaction { .. } | NodeKind::PluginUpdate { .. } | NodeKind::GuardReplaced { .. } => {
                self.narrated(node, [Tone::Dim; 2], Sign::Result, indent)
            }
            NodeKind::Budget(_) | NodeKind::Blocked => {
                self.narrated(node, [Tone::Warn, Tone::Dim], Sign::Result, indent)
            }
            _ => Vec::new(),
        }
    }

    /// Renders the sentences of a node, each behind a sign.
    fn narrated(&self, node: &Node, tones: [Tone; 2], sign: Sign, indent: usize) -> Vec<Line> {
        let said = sentences::note(node, self.view.currency());
        said.iter().zip(tones).flat_map(|(text, tone)| self.remark(tone, sign, text, indent)).collect()
    }

    /// Renders a message of a person, with its files below.
    fn message(&self, text: &str, files: &[FileRef], indent: usize) -> Vec<Line> {
        let mut files = files.iter().map(words::file);
        let first = if text.trim().is_empty() { files.next() } else { None };
        let mut lines = self.remark(Tone::Strong, Sign::Said, first.as_deref().unwrap_or(text), indent);
        lines.extend(files.flat_map(|file| self.remark(Tone::Dim, Sign::Output, &file, indent + 2)));
        lines
    }

    pub(super) fn notes(&self, id: NodeId, indent: usize) -> Vec<Line> {
        let notes = self.view.notes(id).iter();
        notes.flat_map(|note| self.remark(Tone::Dim, Sign::Result, note, indent)).collect()
    }

    /// Renders the lines below a node's children; `closing` if its head has scrolled away unfinished.
    pub(crate) fn tail(&self, id: NodeId, node: &Node, depth: usize, closing: bool) -> Vec<Line> {
        let indent = self.indent(depth);
        match &node.kind {
            NodeKind::Brain(_) => self.summary(id),
            NodeKind::Answer(answer) => self.answer_text(id, answer, indent),
            NodeKind::Stage(stage) => {
                let mut lines = Vec::new();
                if node.status == NodeStatus::Running {
                    lines.extend(self.asking(stage, self.indent(depth + 1)));
                }
                if !node.status.is_open() && closing {
                    lines.extend(self.stage_line(id, node, stage, indent, self.sign(id, node.status)));
                }
                if let Some(error) = failure(stage) {
                    lines.extend(self.remark(Tone::Bad, Sign::Result, error, self.indent(depth + 1)));
                }
                lines
            }
            NodeKind::Call(call) => {
                let mut lines = Vec::new();
                if !node.status.is_open() && closing {
                    lines.extend(self.call_line(node, call, indent, self.call_sign(id, node, call)));
                }
                lines.extend(self.outcome(call, self.indent(depth + 1)));
                lines.extend(self.behind(id, call, self.indent(depth + 1)));
                lines
            }
            _ => Vec::new(),
        }
    }

    /// Renders how long a model has been answering, until its answer streams.
    pub(super) fn asking(&self, stage: &StageNode, indent: usize) -> Vec<Line> {
        let Some((asking, since)) = self.view.asking(stage).filter(|(asking, _)| asking.stream.is_none()) else {
            return Vec::new();
        };
        let since = seconds(self.view.now.since(since));
        let text = format!("{} is answering, {since}", one_line(&asking.model));
        self.remark(Tone::Dim, self.spinner(), &text, indent)
    }

    fn title(&self, title: &str, options: &Value) -> Vec<Line> {
        if title.is_empty() {
            return Vec::new();
        }
        let title = shorten(&one_line(title), self.style.width);
        let options = arguments(&given(options));
        let room = self.room(width(&title) + 2);
        let line = Line::new(0).with(Tone::Strong, title);
        vec![if options.is_empty() || room < 8 {
            line
        } else {
            line.with(Tone::Dim, format!("  {}", shorten(&options, room)))
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
        // The limit states the number of iterations.
        if let Some(iteration) = stage.iteration.filter(|_| stage.outcome != Some(LoopOutcome::MaxIterations)) {
            let iterations = u64::from(iteration) + 1;
            metadata.push(match (node.status.is_open(), stage.max_iterations) {
                (true, Some(limit)) => format!("iteration {iterations}/{limit}"),
                (true, None) => format!("iteration {iterations}"),
                (false, _) => many(iterations, "iteration"),
            });
        }
        metadata.extend(sentences::loop_limit(&self.view.timeline, stage).map(|limit| format!("ended by {limit}")));
        if let Some(usage) = stage.usage.as_ref().filter(|usage| usage.total() > 0) {
            metadata.push(tokens(usage));
        }
        match &stage.outcome {
            Some(LoopOutcome::Exited { tool }) => metadata.push(format!("ended by {tool}")),
            Some(LoopOutcome::Cancelled) => metadata.push("cancelled".to_owned()),
            _ => {}
        }
        metadata.extend(stage.error.clone());
        if let Some(took) = self.took(node, stage.stage.is_leaf() || !node.status.is_open()) {
            metadata.push(took);
        }
        if node.status == NodeStatus::Running && self.view.is_waiting(id) {
            metadata.push("waiting".to_owned());
        }
        let text_tone = if node.status == NodeStatus::NotStarted || node.status == NodeStatus::Skipped {
            Tone::Dim
        } else {
            Tone::Strong
        };
        self.headline(indent, (tone, sign), (text_tone, &stage.name), "", &metadata)
    }

    /// Renders the duration of a node so far.
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
            Some(took) if took < Duration::from_millis(1) => None,
            Some(took) => Some(duration(took)),
            None if node.status == NodeStatus::Running => self.took(node, true),
            None => None,
        };
        let arguments = arguments(call.edited().unwrap_or(&call.arguments));
        let metadata: Vec<String> = took.into_iter().collect();
        self.headline(indent, sign, (Tone::Plain, &call.tool), &arguments, &metadata)
    }

    /// Puts a sign, a name, a detail and metadata on one line; the detail gives way first.
    pub(super) fn headline(
        &self,
        indent: usize,
        (tone, sign): (Tone, Sign),
        (name_tone, name): (Tone, &str),
        detail: &str,
        metadata: &[String],
    ) -> Vec<Line> {
        let sign = sign.text();
        let name = shorten(&one_line(name), self.room(indent + 2));
        let mut line = Line::new(indent).with(tone, sign).with(name_tone, format!(" {name}"));
        let mut metadata_text = metadata.join(" · ");
        if !metadata_text.is_empty() {
            metadata_text.insert_str(0, "  ");
        }
        let room = self.room(line.width());
        let for_detail = room.saturating_sub(width(&metadata_text) + 1);
        if !detail.is_empty() && for_detail >= 4 {
            line = line.with(Tone::Dim, format!(" {}", shorten(detail, for_detail)));
        }
        let room = self.room(line.width());
        if room >= 6 {
            line = line.with(Tone::Dim, shorten(&metadata_text, room));
        }
        vec![line]
    }

    /// Wraps a text behind a sign.
    pub(crate) fn remark(&self, tone: Tone, sign: Sign, text: &str, indent: usize) -> Vec<Line> {
        let sign = sign.text();
        let hang = indent + width(sign) + 1;
        let text = sanitise(text.trim());
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

    pub(super) fn retry(&self, attempt: u32, message: &str, due: Timestamp, indent: usize) -> Vec<Line> {
        let left = Some(due.since(self.view.now)).filter(|left| !left.is_zero());
        let left = left.map(|left| Duration::from_secs((left + ALMOST_A_SECOND).as_secs()));
        self.remark(Tone::Warn, Sign::Retry, &sentences::retry(attempt, message, left), indent)
    }

    /// Returns whether a later attempt beside a node, or the failure of the stage around it, says the same.
    pub(super) fn is_repeated(&self, id: NodeId, message: &str) -> bool {
        let Some(parent) = self.view.node(id).and_then(|node| node.parent) else { return false };
        let after = self.view.timeline.children(parent).iter().skip_while(|sibling| **sibling != id).skip(1);
        let mut after = after.filter_map(|sibling| self.view.node(*sibling));
        let later = after.any(|node| match &node.kind {
            NodeKind::Retry { message: other, .. } => other.trim() == message.trim(),
            NodeKind::Answer(answer) => has_failed_with(answer, message),
            _ => false,
        });
        let around = std::iter::successors(Some(parent), |id| self.view.node(*id)?.parent);
        let mut stages = around.filter_map(|id| self.view.node(id)).filter_map(|node| match &node.kind {
            NodeKind::Stage(stage) => Some(stage),
            _ => None,
        });
        later || stages.next().and_then(|stage| failure(stage)).is_some_and(|shown| shown.contains(message.trim()))
    }

    fn outcome(&self, call: &CallNode, indent: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(repair) = &call.repair {
            lines.extend(self.remark(Tone::Dim, Sign::Result, &words::repaired(repair), indent));
        }
        if let Some(decided) = decided(call) {
            lines.extend(self.remark(Tone::Dim, Sign::Result, &decided, indent));
        }
        if let Some(progress) = &call.progress {
            let progress = shorten(&one_line(progress), self.room(indent + 2));
            lines.extend(self.remark(Tone::Dim, Sign::Result, &progress, indent));
        }
        if let Some(approval) = call.approval.as_ref().filter(|approval| approval.is_pending()) {
            let text = sentences::needs_approval(&approval.reason) + &self.until(approval.expires);
            lines.extend(self.remark(Tone::Warn, Sign::Result, &text, indent));
        }
        let waits = call.waits.last().filter(|wait| call.state == CallState::Waiting && wait.resumed.is_none());
        for wait in waits.iter().flat_map(|wait| &wait.waits) {
            let text = sentences::waits_for(std::slice::from_ref(wait)) + &self.until(wait.expires);
            lines.extend(self.remark(Tone::Warn, Sign::Result, &text, indent));
        }
        match &call.result {
            Some(ToolResult::Success { output, .. }) if !output.is_null() => {
                let output = shorten(&value_line(output), self.room(indent + 3));
                lines.extend(self.remark(Tone::Dim, Sign::Result, &output, indent));
            }
            Some(result) => {
                let tone = match result {
                    ToolResult::Error { .. } => Tone::Bad,
                    ToolResult::Skipped { .. } => Tone::Dim,
                    _ => Tone::Warn,
                };
                let text = words::without_result(result).map(|(word, rest)| format!("{word}{rest}"));
                lines.extend(text.iter().flat_map(|text| self.remark(tone, Sign::Result, text, indent)));
            }
            None => {}
        }
        lines
    }

    /// Renders the call whose decision this one waits for.
    fn behind(&self, id: NodeId, call: &CallNode, indent: usize) -> Vec<Line> {
        if call.state != CallState::Deferred {
            return Vec::new();
        }
        let siblings = self.view.node(id).and_then(|node| node.parent).map(|batch| self.view.timeline.children(batch));
        let before = siblings.unwrap_or_default().iter().take_while(|sibling| **sibling != id);
        let pending = before
            .filter_map(|sibling| self.view.node(*sibling))
            .find(|node| matches!(&node.kind, NodeKind::Call(call) if call.state == CallState::Pending));
        pending.map_or_else(Vec::new, |node| {
            self.remark(Tone::Dim, Sign::Result, &format!("waits for {}", node.path), indent)
        })
    }

    fn until(&self, expires: Option<Timestamp>) -> String {
        expires.map_or_else(String::new, |at| {
            let rest = at.since(self.view.now);
            if rest.is_zero() { " (expired)".to_owned() } else { format!(" ({} left)", left(rest)) }
        })
    }

    /// Renders the head of an open node whose head has scrolled away.
    pub(crate) fn open_head(&self, node: &Node, depth: usize) -> Vec<Line> {
        let sign = (Tone::Dim, Sign::Scrolled);
        let indent = self.indent(depth);
        match &node.kind {
            NodeKind::Brain(brain) => self.title(&brain.title, &brain.options),
            NodeKind::Stage(stage) => self.headline(indent, sign, (Tone::Strong, &stage.name), "", &[]),
            NodeKind::Call(call) => {
                let arguments = arguments(call.edited().unwrap_or(&call.arguments));
                self.headline(indent, sign, (Tone::Plain, &call.tool), &arguments, &[])
            }
            _ => Vec::new(),
        }
    }
}

/// Renders the last decision or webhook of a call.
fn decided(call: &CallNode) -> Option<String> {
    let resumed = |Waited { waits, resumed, .. }: &Waited| {
        let end = resumed.as_ref()?;
        let wait = usize::try_from(end.wait).ok().and_then(|wait| waits.get(wait));
        let what = wait.map_or_else(String::new, |wait| format!("{}: ", wait.webhook));
        Some(what + &words::resumed(end))
    };
    if let Some(resumed) = call.waits.iter().rev().find_map(resumed) {
        return Some(resumed);
    }
    let approval = call.approval.as_ref()?;
    let ApprovalOutcome::Decided { decision: Decision::Approved, arguments: edited, .. } = approval.outcome.as_ref()?
    else {
        return None;
    };
    let proposed = edited.as_ref().map(|_| format!("; the model asked for {}", arguments(&call.arguments)));
    Some(words::approval(approval)? + &proposed.unwrap_or_default())
}
