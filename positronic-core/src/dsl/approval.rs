//! Approvals: whether a call needs a person's approval, and how the question is asked.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use super::context::ToolContext;
use super::services::Services;
use super::trait_bounds::{IntoVerdict, Options, State};
use crate::definition::{GateFn, InputFn, Scope};
use crate::error::Result;
use crate::record::Gate;

/// Returns the reason why a `T` needs an approval, or `None`.
pub(super) type ReasonFn<T> = Arc<dyn Fn(&T, Scope) -> BoxFuture<'static, Result<Option<String>>> + Send + Sync>;

/// The approval settings of a tool.
pub(super) struct ApprovalRule {
    asks: Asks,
    valid_for: Option<Duration>,
    editable: bool,
}

enum Asks {
    Never,
    Always(String),
    If(ReasonFn<Arc<Value>>),
}

impl Default for ApprovalRule {
    fn default() -> Self {
        Self { asks: Asks::Never, valid_for: None, editable: true }
    }
}

impl ApprovalRule {
    pub(super) fn always(&mut self, reason: String) {
        self.asks = Asks::Always(reason);
    }

    pub(super) fn only_if(&mut self, verdict: ReasonFn<Arc<Value>>) {
        self.asks = Asks::If(verdict);
    }

    pub(super) fn expires(&mut self, after: Duration) {
        self.valid_for = Some(after);
    }

    pub(super) const fn not_editable(&mut self) {
        self.editable = false;
    }

    /// Makes the gate. `input` computes what a closure sees from the arguments, where that is not the arguments.
    pub(super) fn into_gate(self, input: Option<InputFn>) -> Option<GateFn> {
        let Self { asks, valid_for, editable } = self;
        let verdict: ReasonFn<Arc<Value>> = match asks {
            Asks::Never => return None,
            Asks::Always(reason) => Arc::new(move |_, _| Box::pin(ready(Ok(Some(reason.clone()))))),
            Asks::If(verdict) => match input {
                Some(input) => {
                    reading(verdict, move |arguments: &Arc<Value>, scope| Ok(Arc::new(input(&scope.state, arguments)?)))
                }
                None => verdict,
            },
        };
        Some(Arc::new(move |arguments, scope| {
            let verdict = verdict(&arguments, scope);
            Box::pin(async move { Ok(verdict.await?.map(|reason| Gate { reason, valid_for, editable })) })
        }))
    }
}

/// Wraps an author's closure.
pub(super) fn verdict<O, S, V, T, F, R, When>(approval: F) -> ReasonFn<T>
where
    O: Options,
    S: State,
    V: Services,
    F: Fn(&T, &ToolContext<O, S, V>) -> R + Send + Sync + 'static,
    R: IntoVerdict<When>,
{
    Arc::new(move |shown, scope| {
        let verdict = ToolContext::new(scope).map(|cx| approval(shown, &cx).into_verdict());
        Box::pin(async move { Ok(verdict?.await) })
    })
}

/// Adapts a verdict to other data from which its input is derived.
pub(super) fn reading<T: 'static, U>(
    verdict: ReasonFn<T>,
    read: impl Fn(&U, &Scope) -> Result<T> + Send + Sync + 'static,
) -> ReasonFn<U> {
    Arc::new(move |value, scope| match read(value, &scope) {
        Ok(shown) => verdict(&shown, scope),
        Err(error) => Box::pin(ready(Err(error))),
    })
}
