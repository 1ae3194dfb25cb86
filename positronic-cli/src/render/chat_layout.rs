//! Layout of a run as part of a conversation: messages, calls, and widgets.
//!
//! Stage names, iteration counts and the result are left out. Hidden loops have no lines. The nodes below a call are laid out
//! as everywhere.

use positronic_core::projection::timeline::{Ending, Node, NodeId, NodeKind, NodeStatus, StageNode};
use positronic_core::record::{LoopOutcome, Speaker};

use super::fit_height::fit;
use super::layout::{Block, BlockId, Layout, Scrolled};
use super::lines::NodeRenderer;
use super::sentences::loop_limit;
use super::style::{Line, Sign, Style, Tone};
use super::view::{ROOT, View, failure};

/// Replaces the message of a prompt that begins without one.
const BY_ITSELF: &str = "begun by the system";

/// The kind of a line; an empty line separates two kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Said,
    Done,
    Answer,
}

/// Lays out all blocks that have not scrolled away, without hidden prompts.
pub(crate) fn chat_layout(view: &View, style: &Style, scrolled: &Scrolled) -> Vec<Block> {
    laid_out(view, style, scrolled, false)
}

/// Renders a run as part of a conversation; with `all`, also hidden prompts.
pub(crate) fn chat_text(view: &View, style: &Style, all: bool) -> String {
    let blocks = laid_out(view, style, &Scrolled::default(), all);
    let lines = blocks.into_iter().flat_map(|block| block.lines.into_iter().map(move |line| (block.settled, line)));
    fit(lines.collect(), style).iter().map(|line| line.paint(style) + "\n").collect()
}

fn laid_out(view: &View, style: &Style, scrolled: &Scrolled, all: bool) -> Vec<Block> {
    let mut chat = ChatLayout { layout: Layout::new(view, style, scrolled), before: None, all };
    chat.run();
    chat.layout.blocks
}

struct ChatLayout<'a> {
    layout: Layout<'a>,
    /// The kind of the last line, also of one that has scrolled away.
    before: Option<Group>,
    all: bool,
}

impl<'a> ChatLayout<'a> {
    const fn view(&self) -> &'a View {
        self.layout.renderer.view
    }

    fn run(&mut self) {
        let mut first = true;
        for id in self.view().children(ROOT) {
            let Some(node) = self.view().node(id) else { continue };
            let NodeKind::Stage(stage) = &node.kind else { continue };
            let hidden = stage.hidden;
            let is_shown = match node.status {
                NodeStatus::NotStarted | NodeStatus::Skipped => false,
                status => !stage.stage.is_leaf() || status.is_open() || status == NodeStatus::Failed,
            };
            if stage.stage.has_iterations() {
                if is_shown && (!hidden || self.all) {
                    self.r#loop(id, node, stage, first, hidden);
                    first = false;
                }
            } else if is_shown {
                self.group(Group::Done, BlockId::Head(id));
                self.layout.node(id, 0);
            }
        }
        self.end();
    }

    fn r#loop(&mut self, id: NodeId, node: &'a Node, stage: &StageNode, first: bool, hidden: bool) {
        let children = self.view().children(id);
        let is_said = |child: &NodeId| self.view().node(*child).is_some_and(is_message);
        let mark = match (hidden, children.first().is_some_and(is_said)) {
            (true, _) => Some("hidden from people:"),
            // In a run that begins with a message, the later loops belong to its answer.
            (false, false) if first && !self.is_opened() => Some(BY_ITSELF),
            (false, _) => None,
        };
        if let Some(mark) = mark {
            self.group(Group::Said, BlockId::Head(id));
            let line = self.layout.renderer.remark(Tone::Dim, Sign::Said, mark, 0);
            self.layout.piece(BlockId::Head(id), line, true);
        }
        for child in children {
            if let Some(node) = self.view().node(child) {
                self.item(child, node);
            }
        }
        let tail = self.loop_end(node, stage);
        if !tail.is_empty() {
            self.group(Group::Done, BlockId::Tail(id));
        }
        self.layout.piece(BlockId::Tail(id), tail, !node.status.is_open());
    }

    fn item(&mut self, id: NodeId, node: &Node) {
        let group = match &node.kind {
            NodeKind::Message { from: Speaker::Engine | Speaker::Child, .. } => return,
            NodeKind::Message { .. } => Group::Said,
            NodeKind::Answer(_) => return self.answer(id, node),
            _ => Group::Done,
        };
        self.group(group, BlockId::Head(id));
        self.layout.node(id, 0);
    }

    /// The failures of a request are rendered as calls are, apart from the answer.
    fn answer(&mut self, id: NodeId, node: &Node) {
        for (group, at) in [(Group::Done, BlockId::Head(id)), (Group::Answer, BlockId::Tail(id))] {
            let lines = match at {
                BlockId::Head(_) => self.layout.renderer.head(id, node, 0),
                BlockId::Tail(_) => self.layout.renderer.tail(id, node, 0, false),
            };
            if !lines.is_empty() || self.layout.scrolled.has(at) {
                self.group(group, at);
                self.layout.piece(at, lines, !node.status.is_open());
            }
        }
    }

    /// Returns whether the run begins with a message.
    fn is_opened(&self) -> bool {
        self.view().timeline.start.as_ref().is_some_and(|start| start.message.is_some())
    }

    /// Separates the next lines from the previous kind.
    fn group(&mut self, group: Group, at: BlockId) {
        let parted = self.before.replace(group) != Some(group) || group == Group::Said;
        self.layout.gap = parted && !self.layout.scrolled.has(at);
    }

    fn loop_end(&self, node: &Node, stage: &StageNode) -> Vec<Line> {
        let renderer: &NodeRenderer<'_> = &self.layout.renderer;
        let mut lines = Vec::new();
        if let Some(limit) = loop_limit(&self.view().timeline, stage) {
            lines.extend(renderer.remark(Tone::Warn, Sign::Limited, &format!("ended by {limit}"), 0));
        }
        if let Some(error) = failure(stage) {
            lines.extend(renderer.remark(Tone::Bad, Sign::Failed, error, 0));
        }
        if stage.outcome == Some(LoopOutcome::Cancelled) {
            lines.extend(renderer.remark(Tone::Warn, Sign::Cut, "cancelled", 0));
        }
        if node.status == NodeStatus::Running {
            lines.extend(renderer.asking(stage, 0));
        }
        lines
    }

    /// Renders the end of the run, unless a loop shows it.
    fn end(&mut self) {
        let view = self.view();
        let is_shown = |id: &NodeId| match view.node(*id).map(|node| &node.kind) {
            Some(NodeKind::Stage(stage)) => failure(stage).is_some() || stage.outcome == Some(LoopOutcome::Cancelled),
            _ => false,
        };
        let is_shown = view.children(ROOT).iter().any(is_shown);
        let renderer = &self.layout.renderer;
        let lines = match view.timeline.ending() {
            Some(Ending::Failed(failure)) if !is_shown => renderer.remark(Tone::Bad, Sign::Failed, &failure.message, 0),
            Some(Ending::Cancelled { .. }) if !is_shown => renderer.remark(Tone::Warn, Sign::Cut, "cancelled", 0),
            Some(Ending::Completed { result }) if !self.is_answered() => renderer.result(result),
            _ => Vec::new(),
        };
        self.group(Group::Answer, BlockId::Tail(ROOT));
        self.layout.gap &= !lines.is_empty();
        self.layout.piece(BlockId::Tail(ROOT), lines, view.is_ended());
    }

    /// Returns whether an answer or a widget already shows the result.
    fn is_answered(&self) -> bool {
        self.before == Some(Group::Answer)
    }
}

fn is_message(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Message { from: Speaker::Person, .. })
}

#[cfg(test)]
mod tests {
    use positronic_core::record::{DeltaKind, EventKind, StageKind};
    use serde_json::{Value, json};

    use super::super::tests::stories::{Beat, Story};
    use super::*;

    fn seen(story: &Story, all: bool) -> String {
        let mut view = View::new();
        for beat in &story.beats {
            match beat {
                Beat::Event(event) => view.apply(event),
                Beat::Delta(delta) => view.apply_delta(delta),
            }
        }
        chat_text(&view, &Style { width: 40, ..Style::default() }, all)
    }

    fn brain(stages: &[(&str, StageKind)]) -> Story {
        Story::default().brain("", "Helper", Value::Null, stages)
    }

    fn hidden(story: Story, at: &str) -> Story {
        let limits = positronic_core::record::Limits::default();
        story.event(
            at,
            EventKind::LoopStart {
                input: None,
                from: positronic_core::record::Speaker::Person,
                message_id: None,
                files: Vec::new(),
                hidden: true,
                continues: None,
                limits,
            },
        )
    }

    #[test]
    fn prompt_without_a_person_is_marked_and_hidden_loops_are_left_out() {
        let story = brain(&[("Load", StageKind::Step), ("Talk", StageKind::Loop), ("Note", StageKind::Loop)])
            .step("Load", 40)
            .loop_start("Talk", None)
            .ask("Talk/0")
            .answer("Talk/0", "Remember to check the forecast.", 0)
            .loop_complete("Talk", LoopOutcome::Answered);
        let story = hidden(story, "Note").ask("Note/0").answer("Note/0", "Reminded.", 0);
        let story = story.loop_complete("Note", LoopOutcome::Answered).complete("", json!({"notes": 1}));

        insta::assert_snapshot!(seen(&story, false), @r"

        › begun by the system

        Remember to check the forecast.
        ");
        assert!(seen(&story, true).ends_with("› hidden from people:\n\nReminded.\n"));
    }

    #[test]
    fn answer_streams_while_a_tool_runs_and_a_message_arrives() {
        let story = brain(&[("Talk", StageKind::Loop)])
            .loop_start("Talk", Some("Where is it?"))
            .ask("Talk/0")
            .answer("Talk/0", "I look.", 1)
            .call("Talk/0.0", "find", json!({"order": 17}))
            .run("Talk/0.0")
            .ok("Talk/0.0", 1_400, json!("in Bern"));
        let message = EventKind::LoopMessage {
            text: "Quick, please.".to_owned(),
            message_id: None,
            files: Vec::new(),
            from: positronic_core::record::Speaker::Person,
            caller_tools: None,
            signal: None,
            actor: positronic_core::record::Actor::default(),
        };
        let thinking = story.event("Talk", message).ask("Talk/1");

        insta::assert_snapshot!(seen(&thinking, false), @r"

        › Where is it?

        I look.

        ✓ find order=17  1.4 s
          → in Bern

        › Quick, please.

        ⠸ openai/gpt-5-mini is answering, 0 s
        ");
        let streaming = thinking.delta("Talk/1", DeltaKind::Text, "It is ").delta("Talk/1", DeltaKind::Text, "in Be");
        assert!(seen(&streaming, false).ends_with("› Quick, please.\n\nIt is in Be\n"), "{}", seen(&streaming, false));
    }

    #[test]
    fn end_is_shown_once_and_the_result_only_without_an_answer() {
        let failed = seen(&super::super::tests::stories::failed(), false);
        assert_eq!(failed.matches("✗ too many requests (429), tried 4 times").count(), 1, "{failed}");
        let silent = brain(&[("Count", StageKind::Step)]).step("Count", 5).complete("", json!({"sum": 3}));

        insta::assert_snapshot!(seen(&silent, false), @r#"

          {
            "sum": 3
          }
        "#);
        let cancelled = seen(&super::super::tests::stories::cancelled(), false);
        assert_eq!(cancelled.matches("■ cancelled").count(), 1, "{cancelled}");
    }
}
