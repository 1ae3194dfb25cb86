//! Notes on a run, a stage, an iteration or a call, one sentence each.

use positronic_core::projection::timeline::{CallNode, CallWait, Node, NodeKind, WaitEnd};
use positronic_core::record::LimitReached;
use positronic_core::record::{ResumeCause, Speaker, TriggerChange, WaitSpec};

use crate::render::limit_question;
use crate::render::words::{self, by, ended};

/// Renders a node below a run, a stage, an iteration or a call.
pub(in crate::render) fn of_node(node: &Node, currency: Option<&str>) -> Vec<String> {
    vec![match &node.kind {
        NodeKind::Retry { attempt, message, .. } => retried(*attempt, message),
        NodeKind::Message { from: Speaker::Person, opening: true, .. } => return Vec::new(),
        NodeKind::Message { text, files, from, actor, .. } => {
            let who = match from {
                Speaker::Person => actor.by.as_deref().unwrap_or("a person"),
                Speaker::Engine => "the engine",
            };
            format!("{who} said: {}", words::message(text, files))
        }
        NodeKind::File { file, .. } => format!("it wrote the file {}", file.name),
        NodeKind::Widget(widget) => format!("it showed: {}", widget.output.fallback),
        NodeKind::Custom { output, .. } => format!("it showed: {}", output.fallback),
        NodeKind::Limit(LimitReached { kind, limit, used, unpriced, .. }) => {
            format!("a limit was reached: {}", words::limit(*kind, *used, *limit, unpriced.as_deref(), currency))
        }
        NodeKind::Budget(budget) => {
            let outcome = budget.outcome.as_ref().map(|outcome| words::budget(outcome, currency));
            return std::iter::once(limit_question(&budget.request, currency)).chain(outcome).collect();
        }
        NodeKind::Blocked => "it was blocked by a limit, to run again once there is more".to_owned(),
        NodeKind::Stopped { message, .. } => message.clone(),
        NodeKind::Compaction { summary, .. } => words::compaction(summary.is_some()).to_owned(),
        NodeKind::PluginFailure { plugin, message } => format!("the plugin {plugin} failed: {message}"),
        NodeKind::Trigger { change: TriggerChange::Set(trigger) } => {
            format!("it set the trigger {}: {}", trigger.id, trigger.what)
        }
        NodeKind::Trigger { change: TriggerChange::Deleted(id) } => format!("it deleted the trigger {id}"),
        NodeKind::Pause { actor, failure, resumed } => {
            let paused = match failure {
                Some(failure) => format!("it was parked: {failure}"),
                None => format!("it was paused{}", by(actor)),
            };
            let resumed = resumed.as_ref().map(|actor| format!("it was resumed{}", by(actor)));
            return std::iter::once(paused).chain(resumed).collect();
        }
        NodeKind::Migration { version } => format!("it went on with version {version} of its brain"),
        NodeKind::ClaimRefused { message, .. } => message.clone(),
        _ => return Vec::new(),
    }]
}

/// Renders the decisions, waits and nested brains of a call.
pub(super) fn of_call(call: &CallNode) -> Vec<String> {
    let mut notes: Vec<_> = call.repair.iter().map(|repair| format!("repaired: {}", repair.clause())).collect();
    if let Some(approval) = &call.approval {
        if approval.requested.is_some() {
            notes.push(format!("a person was asked: {}", approval.reason));
        }
        notes.extend(words::approval(approval));
    }
    for CallWait { waits, resumed, .. } in &call.waits {
        notes.push(format!("it waited for {}", waits.iter().map(awaited).collect::<Vec<_>>().join(" or ")));
        notes.extend(resumed.as_ref().map(|end| {
            let WaitEnd { cause, payload, .. } = end;
            let answer = if *cause == ResumeCause::Answered { format!(": {payload}") } else { String::new() };
            words::resumed(end) + &answer
        }));
    }
    if let Some(brain) = &call.brain {
        notes.push(format!("it ran the brain {}", brain.title));
        notes.extend(brain.ending.as_ref().and_then(ended).map(|(word, rest)| format!("the brain {word}{rest}")));
    }
    notes
}

/// Renders a failed attempt of a model.
pub(super) fn model_failed(attempt: u32, message: &str) -> String {
    format!("try {} of the model failed: {message}", u64::from(attempt) + 1)
}

/// Renders the counts above zero.
pub(super) fn counted(kinds: &[(&str, usize)]) -> String {
    let some = kinds.iter().filter(|(_, count)| *count > 0);
    some.map(|(kind, count)| format!(", {count} {kind}")).collect()
}

fn retried(attempt: u32, message: &str) -> String {
    format!("try {} failed, and it was tried again: {message}", u64::from(attempt) + 1)
}

fn awaited(wait: &WaitSpec) -> String {
    match (&wait.prompt, wait.identifier.as_str()) {
        (Some(prompt), _) => prompt.clone(),
        (None, "") => wait.webhook.clone(),
        (None, identifier) => format!("{} {identifier}", wait.webhook),
    }
}
