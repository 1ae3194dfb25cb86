//! A timeline as text for snapshots of tests.

use std::fmt::Write as _;

use super::messages::result_text;
use super::timeline::{AnswerOutcome, CallNode, Node, NodeId, NodeKind, StageNode, Timeline};
use crate::record::{Citation, Part, Speaker, StageKind};

/// Writes the loops of a run as text in the order in which they began: a heading per loop, then a line per message, answer,
/// call, file and widget, and the outcome.
///
/// ```text
/// # Greet
/// user: Hello!
/// search({"word":"tea"}) -> ["tea comes by post"]
/// assistant: Good morning.
/// = {"type":"answered"}
/// ```
#[must_use]
pub fn transcript(timeline: &Timeline) -> String {
    let mut loops: Vec<(&Node, &StageNode)> = timeline.nodes().filter_map(begun_loop).collect();
    // A stage has a node before it begins, and from its begin on the number of that event.
    loops.sort_by_key(|(node, _)| node.seq);
    let mut text = String::new();
    for (node, stage) in loops {
        _ = writeln!(text, "# {}", node.path);
        children(timeline, node.id, &mut text);
        if let Some(outcome) = &stage.outcome {
            _ = writeln!(text, "= {}", serde_json::to_string(outcome).unwrap_or_default());
        }
    }
    text
}

fn begun_loop(node: &Node) -> Option<(&Node, &StageNode)> {
    match &node.kind {
        NodeKind::Stage(stage) if stage.stage == StageKind::Loop && node.started.is_some() => Some((node, stage)),
        _ => None,
    }
}

fn children(timeline: &Timeline, id: NodeId, text: &mut String) {
    for node in timeline.children(id).iter().filter_map(|id| timeline.node(*id)) {
        match &node.kind {
            NodeKind::Iteration { .. } => children(timeline, node.id, text),
            NodeKind::Message { text: message, files, from, .. } => {
                let from = if *from == Speaker::Engine { "engine" } else { "user" };
                _ = writeln!(text, "{from}: {message}");
                files.iter().for_each(|file| _ = writeln!(text, "{from}: {}", file.line()));
            }
            NodeKind::Answer(answer) if answer.question.is_none() => {
                if let Some(AnswerOutcome::Answered(answer)) = &answer.outcome {
                    answer.parts.iter().for_each(|answered| part(answered, text));
                }
            }
            NodeKind::Call(one) => {
                call(one, text);
                children(timeline, node.id, text);
            }
            NodeKind::File { file, .. } => _ = writeln!(text, "file: {} ({} bytes)", file.name, file.size),
            NodeKind::Custom { output, .. } => _ = writeln!(text, "{}: {}", output.kind, output.fallback),
            NodeKind::Widget(widget) => {
                let replaces = if widget.output.replaces.is_some() { ", replacing an earlier one" } else { "" };
                _ = writeln!(text, "widget{replaces}: {}", widget.output.fallback);
            }
            // Nested loops have headings of their own.
            _ => {}
        }
    }
}

fn part(part: &Part, text: &mut String) {
    match part {
        Part::Text { text: answer } => _ = writeln!(text, "assistant: {answer}"),
        Part::Refusal { text: refusal } => _ = writeln!(text, "assistant refuses: {refusal}"),
        Part::Reasoning { text: reasoning, .. } if !reasoning.is_empty() => _ = writeln!(text, "thinks: {reasoning}"),
        Part::Citations { citations, .. } => sources(citations, text),
        Part::ProviderTool(used) => {
            _ = write!(text, "{}({})", used.tool, used.input.as_deref().unwrap_or_default());
            match (&used.error, &used.output) {
                (Some(error), _) => _ = writeln!(text, " -> Error: {error}"),
                (None, Some(output)) => _ = writeln!(text, " -> {output}"),
                (None, None) => _ = writeln!(text),
            }
            sources(&used.sources, text);
        }
        Part::File { file, .. } => _ = writeln!(text, "assistant: {}", file.file().line()),
        Part::Reasoning { .. } | Part::Call { .. } | Part::Opaque { .. } => {}
    }
}

fn sources(sources: &[Citation], text: &mut String) {
    sources.iter().for_each(|source| _ = writeln!(text, "source: {}", source.line()));
}

fn call(call: &CallNode, text: &mut String) {
    _ = write!(text, "{}({})", call.tool, call.arguments);
    if let Some(edited) = call.edited() {
        _ = write!(text, " edited to {edited}");
    }
    match &call.result {
        Some(result) => _ = writeln!(text, " -> {}", result_text(result)),
        None => _ = writeln!(text, " …"),
    }
}
