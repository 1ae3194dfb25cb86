//! What happened in a run, in English: the sentences of each node of its timeline.
//!
//! A node's sentences are in the order of its events, and later events only add to them. The plain lines print those that an event
//! has added, a report lists all of them, and the live view puts single ones behind signs.

use std::time::Duration;

use positronic_core::projection::timeline::{
    AnswerNode, AnswerOutcome, BrainNode, CallNode, Ending, GuardedValue, Node, NodeKind, StageNode, Timeline, Waited,
};
use positronic_core::record::{
    ApprovalOutcome, CODE, Citation, LimitReached, LoopOutcome, ProviderToolUse, ResumeCause, Segment, Speaker,
    StageKind, ToolResult, TriggerChange, UndoCause, Usage, WaitSpec,
};

use super::cost_line::cost;
use super::figures::{amount, duration, many, tokens, until_due, used_of};
use super::model_routing::routing_summary;
use super::shown_answer::{ShownAnswer, ShownPart};
use super::view::{failure, is_asked_in_loop};
use super::words::{self, by, why};
use super::{arguments, limit_question, one_line, shorten, value_line};

/// Maximum length of arguments, results and opening messages in a sentence.
const DETAIL: usize = 160;

/// Lists what happened at a node.
pub(crate) fn sentences(timeline: &Timeline, node: &Node) -> Vec<String> {
    match &node.kind {
        _ if node.started.is_none() && !matches!(node.kind, NodeKind::Call(_)) => Vec::new(),
        NodeKind::Brain(brain) => {
            let mut said = of_brain(brain);
            match (&brain.ending, said.last_mut()) {
                (Some(Ending::Completed { .. }), Some(end)) => {
                    // Nested brains have their own nodes.
                    if node.path.is_root() && is_cut_off(timeline) {
                        end.push_str(", cut off");
                    }
                    end.push_str(&total(timeline));
                }
                // The stage that failed has said why.
                (Some(Ending::Failed(failure)), Some(end)) if has_failed_stage(timeline, &failure.message) => {
                    end.clear();
                    end.push_str("failed");
                }
                _ => {}
            }
            said
        }
        NodeKind::Stage(stage) => of_stage(timeline, node, stage),
        NodeKind::Iteration { number } => vec![format!("iteration {}", u64::from(*number) + 1)],
        NodeKind::Answer(answer) => of_answer(timeline, answer, node).into_iter().collect(),
        NodeKind::Retry { attempt, message, due } => {
            vec![of_retry(timeline, node, (*attempt, message), Some(due.since(node.started.unwrap_or_default())))]
        }
        NodeKind::Call(call) => {
            let result = call.result.as_ref().map(|result| of_result(result, call.duration));
            std::iter::once(called(call)).chain(of_call(call)).chain(result).collect()
        }
        _ => note(node, timeline.currency.as_deref()),
    }
}

/// Returns whether a limit has cut off a loop, apart from those of calls.
pub(super) fn is_cut_off(timeline: &Timeline) -> bool {
    let is_called = |node: &Node| node.path.segments().any(|segment| matches!(segment, Segment::Call(..)));
    timeline.nodes().filter(|node| !is_called(node)).any(|node| match &node.kind {
        NodeKind::Stage(stage) => {
            matches!(stage.outcome, Some(LoopOutcome::MaxIterations | LoopOutcome::Limit { .. }))
        }
        _ => false,
    })
}

/// Returns whether a stage has failed with a message.
fn has_failed_stage(timeline: &Timeline, message: &str) -> bool {
    timeline.nodes().any(|node| match &node.kind {
        NodeKind::Stage(stage) => failure(stage).is_some_and(|shown| shown == message),
        _ => false,
    })
}

/// Returns whether an attempt to answer has failed with a message.
pub(super) fn has_failed_with(answer: &AnswerNode, message: &str) -> bool {
    match &answer.outcome {
        Some(AnswerOutcome::Failed { error, .. }) => error.to_string().trim() == message.trim(),
        _ => false,
    }
}

/// Renders a failed attempt. The reason is left out if the attempt before it failed for the same.
fn of_retry(timeline: &Timeline, node: &Node, (attempt, message): (u32, &str), left: Option<Duration>) -> String {
    let before = node.parent.map(|parent| timeline.children(parent)).unwrap_or_default();
    let before = before.iter().take_while(|sibling| **sibling != node.id).last().and_then(|id| timeline.node(*id));
    let is_again = before.is_some_and(|before| match &before.kind {
        NodeKind::Retry { message: other, .. } => other.trim() == message.trim(),
        NodeKind::Answer(answer) => has_failed_with(answer, message),
        _ => false,
    });
    retry(attempt, if is_again { "the same again" } else { message }, left)
}

/// Lists what happened at a node without nodes below it: a message, an output, a limit, a pause.
pub(crate) fn note(node: &Node, currency: Option<&str>) -> Vec<String> {
    let first = match &node.kind {
        NodeKind::Message { opening: true, from: Speaker::Engine, .. } => return Vec::new(),
        NodeKind::Message { text, from: Speaker::Engine, .. } => format!("message to the model: {}", text.trim()),
        NodeKind::Message { text, from: Speaker::Child, .. } => text.trim().to_owned(),
        NodeKind::Message { text, files, opening: true, .. } => {
            format!("begins with: {}", words::message(&detail(text), files))
        }
        NodeKind::Message { text, files, actor, .. } => {
            let who = actor.by.as_deref().unwrap_or("a person");
            format!("{who} said: {}", words::message(text, files))
        }
        NodeKind::File { file, .. } => format!("file {}", words::file(file)),
        NodeKind::Widget(widget) if widget.output.replaces.is_some() => format!("updated: {}", widget.output.fallback),
        NodeKind::Widget(widget) => format!("shows: {}", widget.output.fallback),
        NodeKind::Custom { output, .. } => format!("shows {}: {}", output.kind, output.fallback),
        NodeKind::Limit(reached) => format!("a limit was reached: {}", limit(reached, currency)),
        NodeKind::Budget(budget) => {
            let who = if node.path.is_root() { "the run " } else { "" };
            format!("{who}{}", limit_question(&budget.request, currency))
        }
        NodeKind::Blocked => "needs a model call that a limit forbids".to_owned(),
        NodeKind::Compaction { summary: Some(_), .. } => "older messages were summarised".to_owned(),
        NodeKind::Compaction { summary: None, .. } => "the full messages are sent again".to_owned(),
        NodeKind::PluginFailure { plugin, message } => format!("the plugin {plugin} failed: {message}"),
        NodeKind::PluginUpdate { plugin, update, actor, .. } => {
            format!("the plugin {plugin} was updated{}: {}", by(actor), detail(&value_line(update)))
        }
        NodeKind::Trigger { change: TriggerChange::Set(trigger) } => {
            format!("set the trigger {}: {}", trigger.id, trigger.what)
        }
        NodeKind::ChildRun(child) => format!("started the run {} of {} as `{}`", child.run, child.title, child.name),
        NodeKind::Trigger { change: TriggerChange::Deleted(id) } => format!("deleted the trigger {id}"),
        NodeKind::Pause { failure: Some(failure), .. } => format!("parked: {}", failure.message),
        NodeKind::Pause { actor, .. } => format!("paused{}", by(actor)),
        NodeKind::Migration { version } => format!("continues with version {version} of its brain"),
        NodeKind::ClaimRefused { message, .. } => message.clone(),
        NodeKind::GuardReplaced { guard, what, .. } => guarded(guard, what),
        // The end of the loop has the reason.
        NodeKind::Stopped { .. } => return Vec::new(),
        _ => return Vec::new(),
    };
    let second = match &node.kind {
        NodeKind::Budget(budget) => budget.outcome.as_ref().map(|outcome| words::budget(outcome, currency)),
        NodeKind::PluginUpdate { refused: Some(why), .. } => Some(why.clone()),
        NodeKind::Pause { resumed, .. } => resumed.as_ref().map(|actor| format!("resumed{}", by(actor))),
        _ => None,
    };
    std::iter::once(first).chain(second).collect()
}

/// Lists the approval, the waits and the brain of a call.
pub(crate) fn of_call(call: &CallNode) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(approval) = &call.approval {
        said.extend(approval.requested.is_some().then(|| needs_approval(&approval.reason)));
        said.extend(words::approval(approval).map(|decided| match &approval.outcome {
            Some(ApprovalOutcome::Decided { arguments: Some(edited), .. }) => {
                format!("{decided}: {}", detail(&arguments(edited)))
            }
            _ => decided,
        }));
    }
    said.extend(call.waits.iter().flat_map(of_wait));
    said.extend(call.brain.iter().flat_map(of_brain));
    said
}

/// Lists what a call or a stage waits for, and how that ended.
fn of_wait(Waited { since, waits, resumed, due, .. }: &Waited) -> Vec<String> {
    let begins = match (waits.as_slice(), due) {
        ([], Some(due)) => format!("sleeps for {}", until_due(due.since(*since))),
        (waits, _) => waits_for(waits),
    };
    let ends = resumed.as_ref().map(|end| match end.cause {
        ResumeCause::Answered => format!("{}: {}", words::resumed(end), detail(&value_line(&end.payload))),
        _ if waits.is_empty() => "wakes".to_owned(),
        _ => words::resumed(end),
    });
    std::iter::once(begins).chain(ends).collect()
}

/// Returns how a loop ended, and the rest of the sentence; `None` while it has not.
pub(crate) fn loop_end(timeline: &Timeline, stage: &StageNode) -> Option<(String, String)> {
    let (end, message) = match stage.outcome.as_ref()? {
        LoopOutcome::Exited { tool } => (format!("ended by {tool}"), None),
        LoopOutcome::MaxIterations | LoopOutcome::Limit { .. } => {
            let limit = loop_limit(timeline, stage).unwrap_or_else(|| "a limit".to_owned());
            (format!("ended by {limit}"), None)
        }
        LoopOutcome::Stopped { message, .. } => ("stopped".to_owned(), Some(message)),
        LoopOutcome::Failed { message, .. } => ("failed".to_owned(), Some(message)),
        LoopOutcome::Cancelled => ("cancelled".to_owned(), None),
        _ => ("ended".to_owned(), None),
    };
    Some((end, why(message.map(String::as_str))))
}

/// Renders the limit that ended a loop: `its limit of 3 iterations`.
pub(crate) fn loop_limit(timeline: &Timeline, stage: &StageNode) -> Option<String> {
    let NodeKind::Limit(reached) = &timeline.node(stage.limit?)?.kind else { return None };
    if let Some(model) = &reached.unpriced {
        return Some(format!("a money limit, since the price of {model} is unknown"));
    }
    let whose = match &reached.of {
        _ if reached.shared => "the conversation's".to_owned(),
        None => "its".to_owned(),
        Some(brain) if brain.is_root() => "the run's".to_owned(),
        Some(brain) => format!("`{brain}`'s"),
    };
    Some(format!("{whose} limit of {}", amount(reached.kind, reached.limit, timeline.currency.as_deref())))
}

/// Renders a failed attempt, and the time until the next one if it is still ahead.
pub(crate) fn retry(attempt: u32, message: &str, left: Option<Duration>) -> String {
    let left = left.map_or_else(String::new, |left| match left.as_secs() {
        0 => format!(" in {}", duration(left)),
        _ => format!(" in {}", until_due(left)),
    });
    format!("{}; try {}{left}", message.trim(), u64::from(attempt) + 2)
}

/// Renders why an answer was refused: by a guard, or as an invalid structured action.
pub(crate) fn refused_answer(guard: Option<&str>, message: &str) -> String {
    match guard {
        Some(guard) => format!("refused by the guard {guard}: {message}"),
        None => format!("invalid structured action: {message}"),
    }
}

/// Renders what a guard has replaced.
fn guarded(guard: &str, what: &GuardedValue) -> String {
    let what = match what {
        GuardedValue::Message { withheld: Some(why) } => {
            return format!("the guard {guard} withheld the message: {why}");
        }
        GuardedValue::Message { withheld: None } => "the message",
        GuardedValue::Answer => "the answer",
        GuardedValue::Arguments => "the arguments",
        GuardedValue::Output => "the result",
        _ => "a value",
    };
    format!("the guard {guard} replaced {what}")
}

/// Renders a question for an approval.
pub(crate) fn needs_approval(reason: &str) -> String {
    format!("needs approval: {reason}")
}

/// Renders a wait for one of several answers, and the prompts that a person reads.
pub(crate) fn waits_for(waits: &[WaitSpec]) -> String {
    let name = |wait: &WaitSpec| format!("{} {}", wait.webhook, wait.identifier).trim_end().to_owned();
    let names: Vec<String> = waits.iter().map(name).collect();
    let who = if waits.iter().any(|wait| wait.person) { " from a person" } else { "" };
    let prompts: Vec<&str> = waits.iter().filter_map(|wait| wait.prompt.as_deref()).collect();
    let prompts = if prompts.is_empty() { String::new() } else { format!(": {}", prompts.join(" or ")) };
    format!("waits for {}{who}{prompts}", names.join(" or "))
}

/// Renders a reached limit, with its owner if that is not the loop.
pub(crate) fn limit(reached: &LimitReached, currency: Option<&str>) -> String {
    let LimitReached { kind, limit, used, of, unpriced, .. } = reached;
    let whose = match of {
        None => "",
        Some(of) if of.is_root() => " of the run",
        Some(_) => " of an outer brain",
    };
    match unpriced {
        Some(model) => format!("the price of {model} is unknown, so the money limit cannot be enforced"),
        None => format!("used {}{whose}", used_of(*kind, *used, *limit, currency)),
    }
}

fn of_brain(brain: &BrainNode) -> Vec<String> {
    let options = detail(&arguments(&brain.options));
    let with = if options.is_empty() { String::new() } else { format!(" with {options}") };
    let end = brain.ending.as_ref().map(|ending| match words::ended(ending) {
        Some((word, rest)) => format!("{word}{rest}"),
        None => "completed".to_owned(),
    });
    let undoes = brain.undoing.as_ref().map(|cause| {
        let why = match cause {
            UndoCause::Failed(failure) => Some(&failure.message),
            UndoCause::Cancelled { reason, .. } => reason.as_ref(),
        };
        why.map_or_else(|| "undoes what it has done".to_owned(), |why| format!("undoes what it has done: {why}"))
    });
    std::iter::once(format!("{} starts{with}", brain.title)).chain(undoes).chain(end).collect()
}

fn of_stage(timeline: &Timeline, node: &Node, stage: &StageNode) -> Vec<String> {
    let arm = stage.arm.iter().map(|arm| format!("takes {arm}"));
    if let Some(brain) = &stage.brain {
        return arm.chain(of_brain(brain)).collect();
    }
    let is_opening = |kind: &NodeKind| matches!(kind, NodeKind::Message { opening: true, from: Speaker::Person, .. });
    let first = node.children().first().and_then(|id| timeline.node(*id));
    let begins = stage.stage.has_iterations() && !first.is_some_and(|node| is_opening(&node.kind));
    let end = loop_end(timeline, stage).map(|(word, rest)| {
        let iterations = stage.iteration.map_or(0, |iteration| u64::from(iteration) + 1);
        let used = stage.usage.as_ref().map(used).unwrap_or_default();
        format!("{word} after {}{used}{rest}", many(iterations, "iteration"))
    });
    let waited: Vec<_> = stage.waited.iter().flat_map(of_wait).collect();
    let checked = (stage.stage == StageKind::Guard && !node.status.is_open()).then(|| match &stage.stopped {
        None => "passed".to_owned(),
        Some(reason) if reason.is_null() => "did not pass: the rest is skipped".to_owned(),
        Some(reason) => format!("did not pass: {}; the rest is skipped", detail(&value_line(reason))),
    });
    let runs = stage.group.filter(|_| stage.stage != StageKind::Repeat).map(|group| match group.count {
        0 => "runs nothing: the list is empty".to_owned(),
        count => format!("runs {}", many(count, "brain")),
    });
    let failed = stage.group.map_or(0, |group| group.failed);
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    let done = stage.duration.map(|took| format!("done in {}{failed}", duration(took)));
    arm.chain(runs)
        .chain(begins.then(|| "begins".to_owned()))
        .chain(end)
        .chain(checked)
        .chain(waited)
        .chain(stage.error.iter().map(|error| format!("failed: {}", detail(error))))
        .chain(done)
        .collect()
}

fn of_answer(timeline: &Timeline, answer: &AnswerNode, node: &Node) -> Option<String> {
    let answered = match answer.outcome.as_ref()? {
        AnswerOutcome::Answered(answered) => answered,
        AnswerOutcome::Refused { guard, message, .. } => {
            return Some(refused_answer(guard.as_deref(), message.trim()));
        }
        AnswerOutcome::Failed { error, due } => {
            let left = node.ended.map(|ended| due.since(ended));
            return Some(of_retry(timeline, node, (answer.attempt, &error.to_string()), left));
        }
        _ => return None,
    };
    let shown = ShownAnswer::of(&answered.parts);
    let mut said: Vec<String> = shown
        .parts
        .iter()
        .map(|part| match part {
            ShownPart::Text(text) => text.trim().to_owned(),
            ShownPart::Reason(reason) => reason.trim().to_owned(),
            ShownPart::Tool(used) => format!("[{}]", provider_tool(used)),
            ShownPart::File(file) => format!("[{}]", words::file(file)),
        })
        .collect();
    if !shown.sources.is_empty() {
        said.push(format!("[sources: {}]", listed(&shown.sources)));
    }
    let text = if said.is_empty() { String::new() } else { format!(": {}", said.join(" ")) };
    let who = match node.path.last() {
        _ if answered.metadata.provider == CODE => "code",
        Some(Segment::Question(..)) => "the model of a guard",
        // A question before an iteration.
        _ if is_asked_in_loop(timeline, node, answer) => "the model of a guard or a plugin",
        _ => "the model",
    };
    let way = routing_summary(&answered.metadata).map_or_else(String::new, |way| format!(" ({way})"));
    let used = used(&answered.metadata.usage);
    Some(format!("{who} answered in {}{used}{way}{text}", duration(answered.duration)))
}

/// Renders what a tool of the provider did, and its sources.
fn provider_tool(used: &ProviderToolUse) -> String {
    let outcome = match (&used.error, &used.output) {
        (Some(error), _) => format!(" → error: {}", detail(error)),
        (None, Some(output)) if !output.trim().is_empty() => format!(" → {}", detail(output)),
        (None, _) => String::new(),
    };
    let sources: Vec<_> = used.sources.iter().collect();
    let sources = if sources.is_empty() { String::new() } else { format!("; sources: {}", listed(&sources)) };
    format!("{}{outcome}{sources}", detail(&words::provider_tool(used)))
}

fn listed(sources: &[&Citation]) -> String {
    words::sources(sources).iter().map(|source| detail(source)).collect::<Vec<_>>().join(", ")
}

fn called(call: &CallNode) -> String {
    let arguments = detail(&arguments(&call.arguments));
    let with = if arguments.is_empty() { String::new() } else { format!(" with {arguments}") };
    let repaired = call.repair.as_ref().map_or_else(String::new, |repair| format!(" ({})", words::repaired(repair)));
    format!("called{with}{repaired}")
}

fn of_result(result: &ToolResult, took: Option<Duration>) -> String {
    let took = took.map_or_else(String::new, |took| format!(" in {}", duration(took)));
    match (result, words::without_result(result)) {
        (ToolResult::Success { output, .. }, _) if output.is_null() => format!("ok{took}"),
        (ToolResult::Success { output, .. }, _) => format!("ok{took}: {}", detail(&value_line(output))),
        (ToolResult::Error { .. } | ToolResult::Interrupted { .. }, Some((word, rest))) => {
            format!("{word}{took}{rest}")
        }
        (_, other) => other.map_or_else(String::new, |(word, rest)| format!("{word}{rest}")),
    }
}

/// Renders what a completed run used.
fn total(timeline: &Timeline) -> String {
    match timeline.answers {
        0 => ", no model was asked".to_owned(),
        answers => format!(", {}{}, {}", many(answers, "model answer"), used(&timeline.usage), cost(timeline)),
    }
}

/// Renders the tokens, if known, as the end of a list.
fn used(usage: &Usage) -> String {
    if usage.total() == 0 { String::new() } else { format!(", {}", tokens(usage)) }
}

fn detail(text: &str) -> String {
    shorten(&one_line(text.trim()), DETAIL)
}
