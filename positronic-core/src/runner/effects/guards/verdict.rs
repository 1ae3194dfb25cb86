//! What becomes of a guard's verdict: it lets pass, replaces, refuses with feedback, or stops the loop.

use serde_json::Value;

use crate::definition::{CheckFn, Scope, Verdict};
use crate::error::{Error, caught_now};
use crate::machine::{RefusingGuard, Replaced, Veto};
use crate::record::{ModelResponse, Part, Path};
use crate::runner::effects::hook_limit::in_time;

/// Why an answer, a call or a result does not pass, and which guard says so.
pub(in crate::runner::effects) struct Refused {
    pub(in crate::runner::effects) guard: RefusingGuard,
    pub(in crate::runner::effects) message: String,
}

impl Refused {
    fn new(guard: &str, message: String, stops: bool) -> Self {
        Self { guard: RefusingGuard { name: guard.to_owned(), stops }, message }
    }

    /// Returns the error of a call, which stops the loop if the guard does.
    pub(in crate::runner::effects) fn error(&self, what: &str) -> Error {
        let Self { guard: RefusingGuard { name, stops }, message } = self;
        match stops {
            true => Error::permanent(Veto(format!("the guard `{name}` stopped the loop at the {what}: {message}"))),
            false => Error::new(self.sentence(what)),
        }
    }

    /// Returns what the model reads about a call that does not pass.
    pub(in crate::runner::effects) fn sentence(&self, what: &str) -> String {
        format!("the guard `{}` refused the {what}: {}", self.guard.name, self.message)
    }
}

/// Returns what a guard puts in the place of what it has checked; `None` if that passes.
pub(super) fn replacement(guard: &str, verdict: Verdict) -> Result<Option<Value>, Refused> {
    match verdict {
        Verdict::Pass => Ok(None),
        Verdict::Replace(value) => Ok(Some(value)),
        Verdict::Refuse(message) => Err(Refused::new(guard, message, false)),
        Verdict::Stop(message) => Err(Refused::new(guard, message, true)),
    }
}

/// Returns what a guard puts in the place of a text.
pub(super) fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Applies a verdict to an answer.
pub(in crate::runner::effects) fn apply(
    guard: &str,
    verdict: Verdict,
    response: &mut ModelResponse,
    replaced: &mut Vec<Replaced>,
) -> Result<(), Refused> {
    let Some(text) = replacement(guard, verdict)? else { return Ok(()) };
    let value = Value::String(response.text());
    replaced.push(Replaced { guard: guard.to_owned(), value, input: None });
    let text = as_text(&text);
    // What the model thought, and what only its provider reads, may have the same contents.
    response.parts.retain(|part| matches!(part, Part::Call { .. }));
    response.parts.insert(0, Part::Text { text });
    Ok(())
}

/// Runs a check of a value. One that fails lets nothing pass.
pub(super) async fn verdict<T: Send>(scope: &Scope, at: &Path, check: &CheckFn<T>, given: T) -> Verdict {
    let verdict = match caught_now(|| Ok(check(scope.clone(), given))) {
        Ok(check) => in_time(scope, at, "it", check).await,
        Err(error) => Err(error),
    };
    verdict.unwrap_or_else(|error| Verdict::Stop(format!("the guard failed: {error}")))
}
