//! A timeline as text for snapshots of tests.

use std::fmt::Write as _;
use std::time::Duration;

use super::result_text::result_text;
use super::timeline::{
    AnswerOutcome, BudgetNode, BudgetOutcome, CallNode, Node, NodeId, NodeKind, StageNode, Timeline, Waited,
};
use crate::record::{
    Actor, Approval, ApprovalOutcome, BudgetRequest, Citation, Decision, LimitKind, Money, Part, ResumeCause, Speaker,
    WaitSpec,
};

/// Writes the loops of a run as text in the order in which they began: a heading per loop, then a line per message, answer,
/// call, file, widget and question for more of a limit, and the outcome. A call's approval and waits stand in brackets.
///
/// ```text
/// # Greet
/// user: Hello!
/// search({"word":"tea"}) -> ["tea comes by post"]
/// order({"kg":20}) [approved by ann: more than 10 kg] [answered: shop order-7] -> {"sent":true}
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
        NodeKind::Stage(stage) if stage.stage.has_iterations() && node.started.is_some() => Some((node, stage)),
        _ => None,
    }
}

fn children(timeline: &Timeline, id: NodeId, text: &mut String) {
    for node in timeline.children(id).iter().filter_map(|id| timeline.node(*id)) {
        match &node.kind {
            NodeKind::Iteration { .. } => children(timeline, node.id, text),
            NodeKind::Message { text: message, files, from, .. } => {
                let from = if *from == Speaker::Person { "user" } else { "engine" };
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
            NodeKind::Budget(asked) => budget(asked, text),
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
    if let Some(approval) = &call.approval {
        _ = write!(text, " [{}: {}]", approved(approval), approval.reason);
    }
    if let Some(edited) = call.edited() {
        _ = write!(text, " edited to {edited}");
    }
    call.waits.iter().for_each(|wait| waited(wait, text));
    match &call.result {
        Some(result) => _ = writeln!(text, " -> {}", result_text(result)),
        None => _ = writeln!(text, " …"),
    }
}

/// Writes what became of an approval.
fn approved(approval: &Approval) -> String {
    match &approval.outcome {
        Some(ApprovalOutcome::Decided { decision, actor, .. }) => decided(*decision, "rejected", actor),
        Some(ApprovalOutcome::Expired { .. }) => "approval expired".to_owned(),
        Some(_) => "approval withdrawn".to_owned(),
        None => "needs approval".to_owned(),
    }
}

fn decided(decision: Decision, rejected: &str, actor: &Actor) -> String {
    let decision = if decision == Decision::Approved { "approved" } else { rejected };
    actor.by.as_ref().map_or_else(|| decision.to_owned(), |by| format!("{decision} by {by}"))
}

fn waited(wait: &Waited, text: &mut String) {
    let (outcome, specs) = match &wait.resumed {
        None => ("waits for".to_owned(), wait.waits.as_slice()),
        Some(end) if end.cause == ResumeCause::Expired => ("expired:".to_owned(), wait.waits.as_slice()),
        Some(end) => {
            let answered = usize::try_from(end.wait).ok().and_then(|index| wait.waits.get(index));
            let by = end.actor.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
            (format!("answered{by}:"), answered.map_or(wait.waits.as_slice(), std::slice::from_ref))
        }
    };
    let specs: Vec<String> = specs.iter().map(awaited).collect();
    _ = write!(text, " [{outcome} {}]", specs.join(" or "));
}

/// Names what a call waits for: the question to a person, or the webhook with its identifier.
fn awaited(wait: &WaitSpec) -> String {
    match &wait.prompt {
        Some(prompt) => prompt.clone(),
        None => format!("{} {}", wait.webhook, wait.identifier).trim_end().to_owned(),
    }
}

fn budget(asked: &BudgetNode, text: &mut String) {
    let BudgetRequest { kind, limit, used, .. } = &asked.request;
    let outcome = match &asked.outcome {
        Some(BudgetOutcome::Decided { decision, actor, .. }) => decided(*decision, "rejected", actor),
        Some(BudgetOutcome::Expired { .. }) => "expired".to_owned(),
        None => "waits for a decision".to_owned(),
    };
    let amount = |amount| match kind {
        LimitKind::Money => Money::of_nanos(amount).to_string(),
        LimitKind::Time => format!("{:?}", Duration::from_micros(amount)),
        LimitKind::Tokens | LimitKind::Iterations | LimitKind::Failures => amount.to_string(),
    };
    let word: &str = kind.into();
    _ = writeln!(text, "asks for more {word}: used {} of {} [{outcome}]", amount(*used), amount(*limit));
}
