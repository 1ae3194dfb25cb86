//! The guards of answers: of the loop, and of those that handed their dialogue over to its brain.

use std::sync::Arc;

use super::guards::{RefusedAnswer, apply, verdict};
use crate::definition::{CheckedAnswer, LoopGuard, LoopGuardCheck, Scope};
use crate::machine::{Replaced, RunState};
use crate::record::{ModelResponse, Path};
use crate::runner::catch::caught_now;
use crate::runner::worker::Worker;

/// The guards of a loop's answers, each with what it sees. Those of loops that handed their dialogue over come first: the person who reads
/// the answer talks to them.
pub(super) struct AnswerGuards {
    guards: Vec<(LoopGuard, Scope)>,
    /// The iteration.
    at: Path,
    /// Whether a plugin may refuse or replace an answer.
    in_plugins: bool,
}

impl AnswerGuards {
    pub(super) fn of(worker: &mut Worker, at: &Path) -> Self {
        let (at, loop_at) = (at.clone(), &at.parent().unwrap_or_default());
        let own = worker.frames.loop_at(loop_at);
        let in_plugins = own.is_some_and(|own| own.plugins.values().any(|plugin| plugin.guards()));
        // Most loops have no guards, and are not reached by a handoff.
        let is_bare = own.is_none_or(|own| own.guards.is_empty());
        if is_bare && handed_over_by(&worker.state, loop_at).is_none() {
            return Self { guards: Vec::new(), at, in_plugins };
        }
        let mut loops = vec![loop_at.clone()];
        while let Some(outer) = loops.last().and_then(|path| handed_over_by(&worker.state, path)) {
            loops.push(outer);
        }
        let mut guards = Vec::new();
        for path in loops.iter().rev() {
            let Some(definition) = worker.frames.loop_at(path).cloned() else { continue };
            let of_answers = definition.guards.iter().filter(|guard| matches!(guard.check, LoopGuardCheck::Answer(_)));
            for guard in of_answers {
                guards.extend(worker.scope(path.clone()).map(|scope| (guard.clone(), scope)));
            }
        }
        Self { guards, at, in_plugins }
    }

    /// Returns whether one of them may refuse or replace an answer, which is then not streamed.
    pub(super) const fn hold_back(&self) -> bool {
        self.in_plugins || !self.guards.is_empty()
    }

    /// Checks an answer, and replaces its text if a guard says so.
    pub(super) async fn check(
        &self,
        response: &mut ModelResponse,
        replaced: &mut Vec<Replaced>,
    ) -> Result<(), RefusedAnswer> {
        for (guard, scope) in &self.guards {
            let LoopGuardCheck::Answer(check) = &guard.check else { continue };
            let given = CheckedAnswer { answer: Arc::new(response.clone()), at: self.at.clone() };
            let verdict = verdict(caught_now(|| Ok(check(scope.clone(), given)))).await;
            apply(&guard.name, verdict, response, replaced)?;
        }
        Ok(())
    }
}

/// Returns the loop that handed its dialogue over to the brain of a loop.
fn handed_over_by(state: &RunState, loop_at: &Path) -> Option<Path> {
    let call = loop_at.parent()?;
    state.call(&call).filter(|call| call.flags.handoff)?;
    call.parent()
}
