//! Notes on a run, a stage, an iteration or a call, one sentence each.

use positronic_core::projection::timeline::{BudgetOutcome, CallNode, CallWait, Ending, Node, NodeKind};
use positronic_core::record::{Actor, ApprovalOutcome, Decision, ResumeCause, Speaker, TriggerChange, WaitSpec};

use crate::render::figures::{amount, many, used_of};
use crate::render::{by, granted, why};

/// Renders a node below a run, a stage, an iteration or a call.
pub(super) fn of_node(node: &Node, currency: Option<&str>) -> Vec<String> {
    vec![match &node.kind {
        NodeKind::Retry { attempt, message, .. } => retried(*attempt, message),
        NodeKind::Message { from: Speaker::Person, opening: true, .. } => return Vec::new(),
        NodeKind::Message { text, from, actor, .. } => {
            let who = match from {
                Speaker::Person => actor.by.as_deref().unwrap_or("a person"),
                Speaker::Engine => "the engine",
            };
            format!("{who} said: {text}")
        }
        NodeKind::File { file, .. } => format!("it wrote the file {}", file.name),
        NodeKind::Widget(widget) => format!("it showed: {}", widget.output.fallback),
        NodeKind::Custom { output, .. } => format!("it showed: {}", output.fallback),
        NodeKind::Limit { unpriced: Some(model), .. } => {
            format!("the price of {model} is unknown, so the money limit cannot be enforced")
        }
        NodeKind::Limit { kind, limit, used, of: None, .. } if used == limit => {
            format!("its limit of {} was reached", amount(*kind, *limit, currency))
        }
        NodeKind::Limit { kind, limit, used, .. } => {
            format!("a limit was reached: {} used", used_of(*kind, *used, *limit, currency))
        }
        NodeKind::Budget(budget) => {
            let used = used_of(budget.kind, budget.used, budget.limit, currency);
            let asked = format!("a person was asked for more {}: {used} are used", budget.kind.noun());
            let decided = match &budget.outcome {
                Some(BudgetOutcome::Decided { decision: Decision::Approved, more, reason, actor, .. }) => {
                    format!("{} were granted{}{}", granted(more, currency), by(actor), why(reason.as_deref()))
                }
                Some(BudgetOutcome::Decided { reason, actor, .. }) => {
                    format!("more was refused{}{}", by(actor), why(reason.as_deref()))
                }
                Some(_) => "no grant in time".to_owned(),
                None => return vec![asked],
            };
            return vec![asked, decided];
        }
        NodeKind::Blocked => "it was blocked by a limit, to run again once there is more".to_owned(),
        NodeKind::Stopped { message, .. } => message.clone(),
        NodeKind::Compaction { summary: Some(_), .. } => {
            "older messages were summarised for the model from here on".to_owned()
        }
        NodeKind::Compaction { summary: None, .. } => "from here on, all messages were sent in full again".to_owned(),
        NodeKind::PluginFailure { plugin, message } => format!("the plugin {plugin} failed: {message}"),
        NodeKind::Trigger { change: TriggerChange::Set(trigger) } => {
            format!("it set the trigger {}: {}", trigger.id, trigger.what)
        }
        NodeKind::Trigger { change: TriggerChange::Deleted(id) } => format!("it deleted the trigger {id}"),
        NodeKind::Pause { actor, resumed } => {
            let paused = format!("it was paused{}", by(actor));
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
    let mut notes = Vec::new();
    if let Some(approval) = &call.approval {
        if approval.requested.is_some() {
            notes.push(format!("a person was asked: {}", approval.reason));
        }
        notes.extend(approval.outcome.as_ref().and_then(approval_outcome));
    }
    for CallWait { waits, resumed, .. } in &call.waits {
        notes.push(format!("it waited for {}", waits.iter().map(awaited).collect::<Vec<_>>().join(" or ")));
        notes.extend(resumed.as_ref().map(|end| match end.cause {
            ResumeCause::Expired => "no answer came in time".to_owned(),
            ResumeCause::Answered => format!("an answer came{}: {}", by(&end.actor), end.payload),
            _ => "the wait ended".to_owned(),
        }));
    }
    if let Some(brain) = &call.brain {
        notes.push(format!("it ran the brain {}", brain.title));
        notes.extend(brain.ending.as_ref().and_then(failure));
    }
    notes
}

/// Renders the failure of a nested brain.
pub(super) fn failure(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Failed(failure) => Some(format!("the brain failed: {}", failure.message)),
        _ => None,
    }
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

/// Writes a number of things.
pub(super) fn number(count: usize, one: &str) -> String {
    many(count, one)
}

fn approval_outcome(outcome: &ApprovalOutcome) -> Option<String> {
    let decided = |what: &str, actor: &Actor, reason: Option<&str>| format!("{what}{}{}", by(actor), why(reason));
    Some(match outcome {
        ApprovalOutcome::Decided { decision: Decision::Approved, actor, reason, .. } => {
            decided("it was approved", actor, reason.as_deref())
        }
        ApprovalOutcome::Decided { actor, reason, .. } => decided("it was refused", actor, reason.as_deref()),
        ApprovalOutcome::Withdrawn { cause, .. } => format!("the question is void: {cause}"),
        ApprovalOutcome::Expired { .. } => "no decision in time".to_owned(),
        _ => return None,
    })
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
