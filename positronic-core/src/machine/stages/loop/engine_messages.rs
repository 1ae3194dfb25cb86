//! What the engine writes to a model: opening messages, reminders after answers that do not end the loop, and the request for a summary.

use crate::machine::effect::Effect;
use crate::machine::frames::LoopFrame;
use crate::record::{Actor, EventKind, NewEvent, Speaker};

/// The engine's opening message of a loop to which no person or trigger has said anything. No provider accepts a request
/// without a message.
pub(crate) const OPENING: &str = "Begin.";

/// The engine's opening message of a loop that continues a dialogue which has ended.
pub(in crate::machine) const CONTINUE: &str = "Continue.";

/// The replacement of older messages if a plugin summarises them as nothing. No provider accepts an empty message.
pub(in crate::machine) const FORGOTTEN: &str = "(Earlier messages were left out.)";

/// The message to a model whose answer was empty.
pub(super) const EMPTY: &str = "Your last answer was empty. Answer, or call a tool.";

/// Sends the model a message from the engine.
pub(super) fn engine_message(frame: &LoopFrame, text: String) -> Effect {
    let message = EventKind::LoopMessage {
        text,
        files: Vec::new(),
        message_id: None,
        from: Speaker::Engine,
        caller_tools: None,
        signal: None,
        actor: Actor::default(),
    };
    Effect::Append(vec![NewEvent::new(frame.path.clone(), message)])
}

/// Returns the message after a text answer in a loop that only an exit tool can end.
pub(super) fn nudge(frame: &LoopFrame) -> String {
    match exits(frame) {
        none if none.is_empty() => "Call a tool. Text alone does not finish this task.".to_owned(),
        exits => format!("Call a tool. Text alone does not finish this task: when it is done, call {exits}."),
    }
}

/// Returns the message that requests a summary at a limit.
pub(super) fn summary_request(frame: &LoopFrame) -> String {
    let how = match exits(frame) {
        none if none.is_empty() => "Answer".to_owned(),
        exits => format!("Call {exits}"),
    };
    format!(
        "The limit of this task is reached, and this is your last answer. No other tools are available. {how} with what you have so \
         far, and say what is missing."
    )
}

fn exits(frame: &LoopFrame) -> String {
    let tools = frame.prepared.tools.tools().iter().filter(|tool| tool.flags.exit && !tool.flags.hand_back);
    tools.map(|tool| format!("`{}`", tool.id.wire_name())).collect::<Vec<_>>().join(" or ")
}
