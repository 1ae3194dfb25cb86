//! The guards of answers: of the loop, and of those that handed their dialogue over to its brain.

use std::sync::Arc;

use super::verdict::{Refused, apply, verdict};
use crate::definition::{CheckedAnswer, LoopGuard, LoopGuardCheck, Scope};
use crate::machine::Replaced;
use crate::record::{ModelResponse, Path};
use crate::runner::effects::guards::applicable::guards_at;
use crate::runner::worker::Worker;

/// The guards of a loop's answers, each with what it sees.
pub(in crate::runner) struct AnswerGuards {
    guards: Vec<(LoopGuard, Scope)>,
    /// The iteration.
    at: Path,
    /// Whether a plugin may refuse or replace an answer.
    in_plugins: bool,
}

impl AnswerGuards {
    pub(in crate::runner) fn of(worker: &mut Worker, at: &Path) -> Self {
        let loop_at = at.parent().unwrap_or_default();
        let own = worker.frames.loop_at(&loop_at).cloned();
        let in_plugins = own.as_ref().is_some_and(|own| own.plugins.values().any(|plugin| plugin.guards()));
        let guards = guards_at(worker, &loop_at, own.as_deref(), |check| matches!(check, LoopGuardCheck::Answer(_)));
        Self { guards, at: at.clone(), in_plugins }
    }

    /// Returns whether one of them may refuse or replace an answer, which is then not streamed.
    pub(in crate::runner) const fn hold_back(&self) -> bool {
        self.in_plugins || !self.guards.is_empty()
    }

    /// Checks an answer, and replaces its text if a guard says so.
    pub(in crate::runner) async fn check(
        &self,
        response: &mut ModelResponse,
        replaced: &mut Vec<Replaced>,
    ) -> Result<(), Refused> {
        for (guard, scope) in &self.guards {
            let LoopGuardCheck::Answer(check) = &guard.check else { continue };
            let at = self.at.about_answer();
            let given = CheckedAnswer { answer: Arc::new(response.clone()), at: at.clone() };
            let verdict = verdict(scope, &at, check, given).await;
            apply(&guard.name, verdict, response, replaced)?;
        }
        Ok(())
    }
}
