//! A conversation as Markdown.
//!
//! Texts of people, models and tools are in quotations and code, and cannot break out of them. Every other line is this
//! module's: who spoke, what was called, who decided.

use std::fmt::Write as _;
use std::time::Duration;

use positronic_core::projection::result_text;
use positronic_core::projection::timeline::{AnswerOutcome, CallNode, NodeId, NodeKind, StageNode};
use positronic_core::record::{CallState, LoopOutcome, RunSummary, Speaker};

use crate::render::figures::duration;
use crate::render::markdown::{self, code, escaped, fits_in_line, quoted_markdown, whole_block};
use crate::render::sentences::{loop_end, note};
use crate::render::shown_answer::ShownAnswer;
use crate::render::view::ROOT;
use crate::render::words::{approval, ended};
use crate::render::{View, extent};

/// Renders the runs of a conversation; with `all`, also hidden prompts.
pub(crate) fn conversation_markdown<'a>(
    id: &str,
    runs: impl Iterator<Item = (&'a RunSummary, View)>,
    all: bool,
) -> String {
    let mut text = format!("# Conversation {}\n", escaped(id));
    for (row, view) in runs {
        text.push_str(&Run { view: &view, text: String::new(), listed: false }.render(row, all));
    }
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

struct Run<'a> {
    view: &'a View,
    text: String,
    /// Whether the text ends with an item of a list.
    listed: bool,
}

impl Run<'_> {
    fn render(mut self, row: &RunSummary, all: bool) -> String {
        let end = self.view.timeline.ending().and_then(ended);
        for id in self.view.children(ROOT) {
            let Some(node) = self.view.node(id).filter(|node| node.started.is_some()) else { continue };
            let NodeKind::Stage(stage) = &node.kind else { continue };
            if stage.hidden && !all {
                continue;
            }
            self.stage(id, stage);
            if stage.stage.has_iterations() && node.status.is_open() && end.is_none() {
                let why = escaped(row.why.as_deref().unwrap_or("it is not over"));
                self.apart(&format!("*{why} Run `{}`, {}.*", row.run, row.status.as_str()));
            }
        }
        if let Some((word, rest)) = end {
            let was = if word == "cancelled" { "was " } else { "" };
            self.apart(&format!("*the run `{}` {was}{word}{}*", row.run, escaped(&rest)));
        }
        self.text
    }

    fn stage(&mut self, id: NodeId, stage: &StageNode) {
        let children = self.view.children(id);
        let nodes = || children.iter().filter_map(|child| self.view.node(*child));
        let is_loop = stage.stage.has_iterations();
        if is_loop {
            let is_opened =
                nodes().next().is_some_and(|node| matches!(node.kind, NodeKind::Message { from: Speaker::Person, .. }));
            self.apart("---");
            if stage.hidden {
                self.apart("*This prompt is hidden from people.*");
            }
            if !is_opened {
                self.apart("*Begun by the system.*");
            }
        }
        for child in children {
            self.node(child, is_loop);
        }
        // A failed loop fails its brain, whose end has the reason.
        if let Some(LoopOutcome::MaxIterations | LoopOutcome::Limit { .. } | LoopOutcome::Stopped { .. }) =
            stage.outcome
            && let Some((end, rest)) = loop_end(&self.view.timeline, stage)
        {
            self.remark(&(end + &rest));
        }
    }

    /// Renders a node of a loop, or a limit question of another stage.
    fn node(&mut self, id: NodeId, in_loop: bool) {
        let Some(node) = self.view.node(id) else { return };
        match &node.kind {
            NodeKind::Budget(_) => {
                let notes = note(node, self.view.currency());
                notes.iter().for_each(|note| self.remark(note));
            }
            _ if !in_loop => {}
            NodeKind::Message { text, files, from: Speaker::Person, .. } => {
                self.said("User", text, !files.is_empty());
                files.iter().for_each(|file| self.item(&markdown::file(file)));
            }
            NodeKind::Answer(answer) => {
                if let Some(AnswerOutcome::Answered(answer)) = &answer.outcome {
                    self.answer(&ShownAnswer::of(&answer.parts));
                }
            }
            NodeKind::Call(call) => {
                let decided = call.approval.as_deref().and_then(approval);
                let decided = decided.map_or_else(String::new, |said| format!("\n  - *{}*", escaped(&said)));
                self.item(&(self::call(call) + &decided));
                for child in self.view.children(id) {
                    match self.view.node(child).map(|node| &node.kind) {
                        // It talks to the same person.
                        Some(NodeKind::Stage(stage)) if call.flags.handoff && !stage.hidden => {
                            let is_loop = stage.stage.has_iterations();
                            self.view.children(child).into_iter().for_each(|node| self.node(node, is_loop));
                        }
                        Some(NodeKind::Stage(_) | NodeKind::Budget(_)) | None => self.node(child, false),
                        Some(_) => self.node(child, true),
                    }
                }
            }
            NodeKind::File { file, .. } => self.item(&markdown::file(file)),
            NodeKind::Widget(widget) => {
                if let Some((text, _)) = self.view.widget(id, widget) {
                    self.item(&format!("shown: {}", code(text)));
                }
            }
            NodeKind::Custom { output, .. } => self.item(&format!("shown: {}", code(&output.fallback))),
            _ => {}
        }
    }

    /// Renders an answer: the texts, what the provider's tools did, the files and the sources.
    fn answer(&mut self, shown: &ShownAnswer<'_>) {
        let items = markdown::evidence(shown);
        self.said("Assistant", &shown.texts(), !items.is_empty());
        items.iter().for_each(|item| self.item(item));
    }

    /// Renders what a speaker said; with `always`, also the speaker of an empty text.
    fn said(&mut self, speaker: &str, said: &str, always: bool) {
        if always || !said.trim().is_empty() {
            self.apart(&format!("**{speaker}:**\n"));
        }
        if !said.trim().is_empty() {
            quoted_markdown(&mut self.text, said.trim_end());
        }
    }

    fn remark(&mut self, remark: &str) {
        self.item(&format!("*{}*", escaped(remark)));
    }

    /// Appends an item of a list. Items have no empty lines between them.
    fn item(&mut self, item: &str) {
        if !self.listed {
            self.text.push('\n');
        }
        _ = writeln!(self.text, "- {item}");
        self.listed = true;
    }

    /// Appends a line after an empty line.
    fn apart(&mut self, line: &str) {
        _ = writeln!(self.text, "\n{line}");
        self.listed = false;
    }
}

fn call(call: &CallNode) -> String {
    let took = call.duration.filter(|took| *took >= Duration::from_millis(1));
    let took = took.map_or_else(String::new, |took| format!(" ({})", duration(took)));
    let came = match (&call.result, call.state) {
        (Some(result), _) => code(&result_text(result)),
        (None, CallState::Pending) => "waits for an approval".to_owned(),
        (None, CallState::Waiting) => "waits for an answer".to_owned(),
        (None, _) => "is not over".to_owned(),
    };
    // Arguments that do not fit in a line follow in full: a person may have decided about them.
    let (given, tool) = (call.edited().unwrap_or(&call.arguments), code(&call.tool));
    if fits_in_line(&given.to_string()) {
        return format!("{tool} {} → {came}{took}", code(&given.to_string()));
    }
    let mut below = String::new();
    whole_block(&mut below, &serde_json::to_string_pretty(given).unwrap_or_default(), "  ");
    let size = extent(given).map_or_else(String::new, |extent| format!(" ({extent})"));
    format!("{tool}{size} → {came}{took}\n\n{}", below.trim_end_matches('\n'))
}
