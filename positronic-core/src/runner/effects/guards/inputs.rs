//! The guards of people's messages: they run before an iteration, on the messages that no iteration has sent.

use std::sync::Arc;

use serde_json::Value;

use super::CheckedInputs;
use super::verdict::{as_text, replacement, verdict};
use crate::definition::{CheckedInput, LoopDefinition, LoopGuard, LoopGuardCheck, Scope};
use crate::error::Error;
use crate::machine::{Replaced, Veto};
use crate::record::{Path, ReplacedInput, UserMessage};
use crate::runner::effects::guards::applicable::guards_at;
use crate::runner::worker::Worker;

/// The messages that an iteration would send first, and the guards that check them.
pub(in crate::runner) struct InputGuards {
    guards: Vec<(LoopGuard, Scope)>,
    /// The messages, each with whether it is of an earlier run, and its number.
    messages: Vec<(bool, u32, UserMessage)>,
    at: Path,
}

impl InputGuards {
    /// Returns what is to be checked before an iteration of a loop that has begun. Messages that a guard has replaced are not checked again.
    pub(in crate::runner) fn of(worker: &mut Worker, loop_at: &Path, iteration: u32, own: &LoopDefinition) -> Self {
        let at = loop_at.iteration(iteration);
        let mut messages = unsent(worker, loop_at, iteration);
        if let Some(frame) = worker.state.loop_at(loop_at) {
            messages.retain(|(earlier, number, _)| *earlier || !frame.replaced.contains(number));
        }
        let guards = match messages.is_empty() {
            true => Vec::new(),
            false => guards_at(worker, loop_at, Some(own), LoopGuardCheck::is_input),
        };
        Self { guards, messages, at }
    }

    /// Checks the messages. One that stops the loop is withheld from later runs of the conversation.
    pub(in crate::runner) async fn check(self) -> CheckedInputs {
        let (mut replaced, mut stopped) = (Vec::new(), None);
        for (earlier, number, message) in self.messages {
            let (original, mut message, mut by, mut why) = (message.text.clone(), message, None, None);
            for (guard, scope) in &self.guards {
                let LoopGuardCheck::Input(check) = &guard.check else { continue };
                let given = CheckedInput { message: Arc::new(message.clone()), at: self.at.clone() };
                let verdict = verdict(scope, &self.at, check, given).await;
                match replacement(&guard.name, verdict) {
                    Ok(None) => continue,
                    Ok(Some(text)) => {
                        message.text = as_text(&text);
                        by = Some(guard.name.clone());
                    }
                    Err(refused) => {
                        if refused.guard.stops {
                            stopped.get_or_insert_with(|| Error::permanent(Veto(refused.sentence("message"))));
                        }
                        (message.text, message.files) = (withheld(&refused.message), Vec::new());
                        (by, why) = (Some(refused.guard.name), Some(refused.message));
                        break;
                    }
                }
            }
            if let Some(guard) = by {
                let UserMessage { text, files, .. } = message;
                let input = Some(ReplacedInput { message: number, earlier, text, files, withheld: why });
                replaced.push(Replaced { guard, value: Value::String(original), input });
            }
        }
        CheckedInputs { replaced, stopped }
    }
}

/// Returns the messages of people that an iteration would be the first to send: those of the loop, and before the first iteration of a run those of
/// earlier runs that no loop has read.
fn unsent(worker: &Worker, loop_at: &Path, iteration: u32) -> Vec<(bool, u32, UserMessage)> {
    let prompts = worker.shared.prompts();
    let before = if iteration == 0 { prompts.unread_before(loop_at) } else { Vec::new() };
    let before = before.into_iter().map(|(number, message)| (true, number, message));
    let own = prompts.unsent(loop_at, iteration).into_iter().map(|(number, message)| (false, number, message));
    before.chain(own).collect()
}

/// Returns what the model reads in place of a message.
fn withheld(reason: &str) -> String {
    let reason = reason.trim().trim_end_matches('.');
    format!("(A message of the user was withheld: {reason}. Tell the user that you cannot take it.)")
}
