//! A run's timeline as Markdown: every stage with its iterations, reasons, calls and results.

mod values;

use std::fmt::Write as _;

use positronic_core::projection::timeline::{
    Answer, AnswerOutcome, CallNode, Ending, Node, NodeId, NodeKind, NodeStatus, StageNode, Timeline,
};
use positronic_core::projection::{Cost, Spent};
use positronic_core::record::{
    FileRef, LoopOutcome, Part, Question, RunSummary, Segment, Speaker, StageKind, ToolResult, Usage,
};

use self::values::{Length, fields, labelled};
use crate::render::cost_line::cost_line;
use crate::render::figures::many;
use crate::render::figures::{duration, tokens};
use crate::render::markdown::{self, code, escaped, quoted};
use crate::render::sentences::{loop_end, note, of_call, refused_answer, sentences};
use crate::render::shown_answer::ShownAnswer;
use crate::render::words::{ended, file_kind, repaired, without_result};

/// Renders a run; `None` if its log does not begin with a brain.
pub(crate) fn report_markdown(timeline: &Timeline, row: &RunSummary) -> Option<String> {
    let brain = timeline.brain()?;
    let mut report = Report { timeline, text: format!("# {}\n\n", escaped(&brain.title)) };
    report.head(row);
    if brain.options.as_object().is_some_and(|options| !options.is_empty()) {
        report.paragraph("## Options");
        fields(&mut report.text, &brain.options, "");
    }
    if let Some(Ending::Completed { result }) = &brain.ending
        && !result.is_null()
    {
        report.paragraph("## Result");
        fields(&mut report.text, result, "");
    }
    if timeline.nodes().any(|node| is_begun_stage(node).is_some()) {
        report.paragraph("## Steps");
    }
    report.stages_below(NodeId::ROOT);
    let files = timeline.files();
    if !files.is_empty() {
        report.paragraph("## Files");
        for file in files {
            let kind = escaped(&file_kind(file));
            _ = writeln!(report.text, "- {} ({kind}), {}", code(&file.name), code(&file.uri));
        }
    }
    let mut text = report.text;
    text.truncate(text.trim_end_matches('\n').len());
    text.push('\n');
    Some(text)
}

struct Report<'t> {
    timeline: &'t Timeline,
    text: String,
}

/// One iteration of a loop, or one question of a step: the model requests with their outcomes.
struct Exchange<'t> {
    node: &'t Node,
    question: Option<&'t Question>,
    below: Vec<&'t Node>,
}

fn is_begun_stage(node: &Node) -> Option<&StageNode> {
    match &node.kind {
        NodeKind::Stage(stage) if node.started.is_some() => Some(stage),
        _ => None,
    }
}

impl<'t> Report<'t> {
    fn below(&self, id: NodeId) -> impl Iterator<Item = &'t Node> + use<'t> {
        let timeline = self.timeline;
        timeline.children(id).iter().filter_map(move |child| timeline.node(*child))
    }

    fn head(&mut self, row: &RunSummary) {
        let text = &mut self.text;
        _ = writeln!(text, "- Run: {}", code(row.run.as_str()));
        let outcome = match (self.timeline.ending(), self.timeline.ending().and_then(ended)) {
            (Some(Ending::Completed { .. }), _) => "**completed**".to_owned(),
            (_, Some((word, rest))) => format!("**{word}**{}", escaped(&rest)),
            _ => {
                let why = row.why.as_ref().map_or_else(String::new, |why| format!(": {}", escaped(why)));
                format!("**not over**, {}{why}", row.status.as_str())
            }
        };
        _ = writeln!(text, "- Outcome: {outcome}");
        if let Some(user) = self.timeline.start.as_ref().and_then(|start| start.user.as_ref()) {
            _ = writeln!(text, "- For: {}", escaped(user));
        }
        if let Some((origin, at)) = &row.forked_from {
            _ = writeln!(text, "- Forked from: {} after event {at}", code(origin.as_str()));
        }
        let began = self.timeline.node(NodeId::ROOT).and_then(|root| root.started).unwrap_or_default();
        let took = duration(self.timeline.last.since(began));
        _ = writeln!(text, "- Began: {began}; {took} to its last event");
        _ = writeln!(text, "- Work: {}", counted(self.timeline));
        let total = self.timeline.spent();
        if let Some(costs) = self.timeline.costs.as_ref().filter(|_| total.calls > 0) {
            _ = writeln!(text, "- Used: {}", used(&total.usage));
            let cost = cost_line(costs);
            let cost = cost.strip_prefix("cost").unwrap_or(&cost).trim_start_matches([':', ' ']);
            _ = writeln!(text, "- Cost: {}", escaped(cost));
        }
        let notes = self.notes(self.below(NodeId::ROOT));
        self.list(&notes, "");
    }

    /// Renders the stages below a brain or a call, with those of nested brains.
    fn stages_below(&mut self, id: NodeId) {
        for node in self.below(id) {
            if let Some(stage) = is_begun_stage(node) {
                self.stage(node, stage);
            }
            self.stages_below(node.id);
        }
    }

    fn stage(&mut self, node: &'t Node, stage: &StageNode) {
        let kind = match &stage.brain {
            Some(brain) => format!("{} {}", stage.stage, escaped(&brain.title)),
            None => stage.stage.to_string(),
        };
        let took = stage.duration.map_or_else(String::new, |took| format!(", {}", duration(took)));
        self.paragraph(&format!("### {} ({kind}{took})", code(node.path.as_str())));
        let opening = self.below(node.id).find_map(|node| match &node.kind {
            NodeKind::Message { text, files, from: Speaker::Person, opening: true, .. } => Some((text, files)),
            _ => None,
        });
        if let Some((text, files)) = opening {
            self.message(text, files);
        }
        let mut notes = self.notes(self.below(node.id));
        let ending = stage.brain.as_ref().and_then(|brain| brain.ending.as_ref());
        notes.extend(ending.and_then(ended).map(|(word, rest)| format!("the brain {word}{rest}")));
        notes.extend(match &stage.outcome {
            // The node of the limit says more.
            Some(LoopOutcome::Answered | LoopOutcome::MaxIterations | LoopOutcome::Limit { .. }) => None,
            Some(_) => loop_end(self.timeline, stage).map(|(end, rest)| end + &rest),
            None if node.status == NodeStatus::Failed && stage.brain.is_none() => Some("failed".to_owned()),
            None if node.status == NodeStatus::Interrupted => Some("cancelled with the run".to_owned()),
            None if node.status.is_open() => Some("not over".to_owned()),
            _ => None,
        });
        if !notes.is_empty() {
            self.paragraph("");
        }
        self.list(&notes, "");
        for (place, exchange) in (1..).zip(self.exchanges(node, stage.stage)) {
            self.exchange(place, &exchange, stage.stage);
        }
    }

    fn exchanges(&self, node: &'t Node, kind: StageKind) -> Vec<Exchange<'t>> {
        let of = |node: &'t Node| match &node.kind {
            NodeKind::Iteration { .. } => {
                let asks = |question: &&'t Node| question.path == node.path && is_question(question);
                let parent = node.parent.unwrap_or(NodeId::ROOT);
                let below = self.below(parent).filter(asks).chain(self.below(node.id)).collect();
                Some(Exchange { node, question: None, below })
            }
            NodeKind::Answer(answer) if kind.is_leaf() => {
                Some(Exchange { node, question: answer.question.as_ref(), below: vec![node] })
            }
            _ => None,
        };
        self.below(node.id).filter_map(of).collect()
    }

    fn exchange(&mut self, place: usize, exchange: &Exchange<'t>, kind: StageKind) {
        let calls: Vec<(NodeId, &CallNode)> = exchange
            .below
            .iter()
            .filter_map(|node| match &node.kind {
                NodeKind::Call(call) => Some((node.id, &**call)),
                _ => None,
            })
            .collect();
        let answered = exchange.below.iter().find_map(|node| match &node.kind {
            NodeKind::Answer(answer) if node.id == exchange.node.id || !is_question(node) => match &answer.outcome {
                Some(AnswerOutcome::Answered(answer)) => Some(answer),
                _ => None,
            },
            _ => None,
        });
        let what = match answered {
            None => "no answer yet".to_owned(),
            Some(_) if kind.is_leaf() => "a question".to_owned(),
            Some(_) if calls.is_empty() => "an answer".to_owned(),
            Some(_) => calls.iter().map(|(_, call)| code(&call.tool)).collect::<Vec<_>>().join(", "),
        };
        self.paragraph(&format!("#### {place}. {what}"));
        if let Some(question) = exchange.question {
            self.message(&question.text, &question.files);
        }
        for (label, text) in answered
            .map(|answer| [("Reason:", reasoning_text(answer)), ("Answer:", answer_text(answer))])
            .into_iter()
            .flatten()
        {
            if !text.is_empty() {
                self.paragraph(label);
                quoted(&mut self.text, &text, "");
            }
        }
        self.paragraph("");
        if let Some(answered) = answered {
            let items = markdown::evidence(&ShownAnswer::of(&answered.parts));
            items.iter().for_each(|item| _ = writeln!(self.text, "- {item}"));
        }
        for node in &exchange.below {
            self.request(node, exchange.node);
        }
        let notes = self.notes(exchange.below.iter().copied());
        self.list(&notes, "");
        let several = calls.len() > 1;
        for (id, call) in calls {
            if several {
                _ = writeln!(self.text, "- {}", code(&call.tool));
            }
            self.call(id, call, if several { "  " } else { "" });
        }
        let costs = self.timeline.costs.as_ref();
        let spent = costs.map(|costs| (costs.spent_at(&exchange.node.path), costs.currency.as_str()));
        if let Some((spent, currency)) = spent.filter(|(spent, _)| spent.calls > 0) {
            _ = writeln!(self.text, "- {}", paid(&spent, currency));
        }
    }

    /// Renders a message with its files.
    fn message(&mut self, text: &str, files: &[FileRef]) {
        quoted(&mut self.text, text, "");
        if !files.is_empty() {
            self.paragraph("");
        }
        files.iter().for_each(|file| _ = writeln!(self.text, "- {}", markdown::file(file)));
    }

    /// Renders the outcome of a model request without an answer.
    fn request(&mut self, node: &Node, iteration: &Node) {
        let NodeKind::Answer(answer) = &node.kind else { return };
        let line = match &answer.outcome {
            Some(AnswerOutcome::Answered(answer)) if node.id != iteration.id && is_question(node) => {
                let who = match node.path.last() {
                    Some(Segment::Question(..)) => "a guard",
                    _ => "a guard or a plugin",
                };
                escaped(&format!("{who} asked a model, which answered: {}", answer_text(answer)))
            }
            Some(AnswerOutcome::Failed { .. }) => {
                sentences(self.timeline, node).iter().map(|said| escaped(said)).collect()
            }
            Some(AnswerOutcome::Refused { guard, message, answer }) => {
                let refused = refused_answer(guard.as_deref(), message);
                format!("{}; it was {}", escaped(&refused), code(&answer_text(answer)))
            }
            _ => return,
        };
        _ = writeln!(self.text, "- {line}");
    }

    fn call(&mut self, id: NodeId, call: &CallNode, indent: &str) {
        let text = &mut self.text;
        match call.edited() {
            None => labelled(text, "input", &call.arguments, indent, Length::Whole),
            Some(edited) => {
                labelled(text, "input, as the model wanted it", &call.arguments, indent, Length::Whole);
                labelled(text, "input, as a person edited it", edited, indent, Length::Whole);
            }
        }
        let mut notes = self.notes(self.below(id));
        notes.extend(call.repair.iter().map(|repair| repaired(repair)));
        notes.extend(of_call(call));
        self.list(&notes, indent);
        let text = &mut self.text;
        let took = call.duration.map_or_else(String::new, |took| format!(", {}", duration(took)));
        match &call.result {
            None => _ = writeln!(text, "{indent}- not over"),
            Some(ToolResult::Success { output, .. }) => {
                labelled(text, &format!("result{took}"), output, indent, Length::Cut);
            }
            Some(ToolResult::Error { message }) => {
                labelled(text, &format!("**error**{took}"), &message.as_str().into(), indent, Length::Cut);
            }
            Some(other) => {
                let (word, rest) = without_result(other).unwrap_or_default();
                _ = writeln!(text, "{indent}- **{word}**{}", escaped(&rest));
            }
        }
    }

    fn notes<'n>(&self, nodes: impl Iterator<Item = &'n Node>) -> Vec<String> {
        let is_opening = |node: &&Node| matches!(node.kind, NodeKind::Message { opening: true, .. });
        nodes.filter(|node| !is_opening(node)).flat_map(|node| note(node, self.timeline.currency.as_deref())).collect()
    }

    fn list(&mut self, notes: &[String], indent: &str) {
        for note in notes {
            _ = writeln!(self.text, "{indent}- {}", escaped(note));
        }
    }

    /// Appends a paragraph.
    fn paragraph(&mut self, line: &str) {
        self.text.truncate(self.text.trim_end_matches('\n').len());
        self.text.push_str("\n\n");
        if !line.is_empty() {
            _ = write!(self.text, "{line}\n\n");
        }
    }
}

/// Returns whether a node is a question. One before an iteration has the path of that.
fn is_question(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Answer(answer) if answer.question.is_some())
}

/// Counts iterations, calls and their outcomes.
fn counted(timeline: &Timeline) -> String {
    let count = |fits: fn(&NodeKind) -> bool| timeline.nodes().filter(|node| fits(&node.kind)).count();
    let ended =
        |fits: fn(&ToolResult) -> bool| timeline.calls().filter(|call| call.result.as_ref().is_some_and(fits)).count();
    let refused = count(
        |kind| matches!(kind, NodeKind::Answer(answer) if matches!(answer.outcome, Some(AnswerOutcome::Refused { .. }))),
    );
    let iterations = many(count(|kind| matches!(kind, NodeKind::Iteration { .. })), "iteration");
    let calls = many(timeline.calls().count(), "call");
    let kinds = [
        ("failed", ended(|result| matches!(result, ToolResult::Error { .. }))),
        ("denied", ended(|result| matches!(result, ToolResult::Denied { .. }))),
        ("skipped", ended(|result| matches!(result, ToolResult::Skipped { .. }))),
        ("interrupted", ended(|result| matches!(result, ToolResult::Interrupted { .. }))),
        ("open", timeline.calls().filter(|call| call.result.is_none()).count()),
    ];
    let kinds: String =
        kinds.iter().filter(|(_, count)| *count > 0).map(|(kind, count)| format!(", {count} {kind}")).collect();
    let refused = if refused > 0 { format!(", {} refused", many(refused, "answer")) } else { String::new() };
    format!("{iterations}, {calls}{kinds}{refused}")
}

/// Returns the text of an answer.
fn answer_text(answer: &Answer) -> String {
    ShownAnswer::of(&answer.parts).texts()
}

/// Returns the visible reasoning of an answer.
fn reasoning_text(answer: &Answer) -> String {
    let texts = answer.parts.iter().filter_map(|part| match part {
        Part::Reasoning { text, .. } => Some(text.trim()).filter(|text| !text.is_empty()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn paid(spent: &Spent, currency: &str) -> String {
    let cost = match spent.total() {
        Cost::Known(money) => format!("cost {money} {currency}"),
        Cost::Unknown => "cost unknown".to_owned(),
    };
    format!("{}; {cost}", used(&spent.usage))
}

/// Renders the reported tokens.
fn used(usage: &Usage) -> String {
    if usage.total() == 0 { "no tokens reported".to_owned() } else { tokens(usage) }
}
