//! Guards of a loop: they check answers, calls and results before those count.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::context::{options, read_only, shared_methods};
use super::r#loop::Loop;
use super::read_only::{ChangedByToolsAndOnExit, DeclaredWithOptions, ReadOnly};
use super::services::{Services, services};
use super::trait_bounds::{Options, Standalone, State};
use crate::definition::{CheckFn, LoopGuard, LoopGuardCheck, Scope, Verdict};
use crate::error::Result;
use crate::record::{ModelResponse, Path, Prompt, RunId};

/// What a guard of a loop sees: `cx.state`, `cx.options`, `cx.services`.
pub struct GuardContext<O = (), S = (), V = ()> {
    /// The current state, [read-only](ReadOnly).
    pub state: ReadOnly<S, ChangedByToolsAndOnExit>,
    /// The options of the run.
    pub options: ReadOnly<O, DeclaredWithOptions>,
    /// The services.
    pub services: Arc<V>,
    scope: Scope,
}

shared_methods!(GuardContext<O, S, V>);

impl From<std::result::Result<(), String>> for Verdict {
    /// Converts `Ok` to [`Pass`](Self::Pass) and `Err` to [`Refuse`](Self::Refuse).
    fn from(checked: std::result::Result<(), String>) -> Self {
        checked.map_or_else(Self::Refuse, |()| Self::Pass)
    }
}

impl<O: Options, S: State, V: Services> Loop<O, S, V> {
    /// Checks each answer before it is recorded and before its calls start, in order of registration.
    ///
    /// After an answer that is refused the model is asked again with the reason, at most [`answer_retries`](Self::answer_retries) times;
    /// then the brain fails with the code `guard`. Requests of later iterations contain neither the answer nor the reason.
    /// [`Verdict::Replace`] replaces the text of the answer; its calls run as they are, and the log keeps the text that was replaced. A guard that fails or
    /// panics stops the loop. A loop with such a guard does not stream its answers. The log and its readers contain refused answers: the
    /// server redacts named fields, and not text.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// # use positronic_core::model::scripted::{Reply, ScriptedModel};
    ///
    /// let support = brain("Support").r#loop("Chat", |cx| {
    ///     cx.system("Help the customer.").input("What is my key?").guard_answer("No keys", async |_, answer| {
    ///         if answer.text().contains("sk-") { Err("it names an API key".to_owned()) } else { Ok(()) }
    ///     })
    /// });
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let model = ScriptedModel::new([Reply::text("It is sk-123."), Reply::text("I cannot tell you.")]);
    /// # let runner = Runner::new(model);
    /// let run = runner.start(support, ()).await?;
    /// run.result().await?;
    /// assert_eq!(run.answer().as_deref(), Some("I cannot tell you."));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn guard_answer<F, Fut, W>(self, name: impl Into<String>, check: F) -> Self
    where
        F: Fn(GuardContext<O, S, V>, Arc<ModelResponse>) -> Fut + Standalone,
        Fut: Future<Output = W> + Send + 'static,
        W: Into<Verdict>,
    {
        let check: CheckFn<Arc<ModelResponse>> = Arc::new(move |scope, answer| checked(&scope, |cx| check(cx, answer)));
        self.guard(name.into(), LoopGuardCheck::Answer(check))
    }

    /// Checks the tool and the arguments of each call, before a person is asked about it, and again after a person has edited them. A
    /// call that is refused gets the reason as its error, and the model goes on. Arguments cannot be replaced. A guard that panics refuses.
    pub fn guard_call<F, Fut, W>(self, name: impl Into<String>, check: F) -> Self
    where
        F: Fn(GuardContext<O, S, V>, String, Arc<Value>) -> Fut + Standalone,
        Fut: Future<Output = W> + Send + 'static,
        W: Into<Verdict>,
    {
        let check: CheckFn<(String, Arc<Value>)> =
            Arc::new(move |scope, (tool, arguments)| checked(&scope, |cx| check(cx, tool, arguments)));
        self.guard(name.into(), LoopGuardCheck::Call(check))
    }

    /// Checks the tool and what its function returns, before it is recorded: the output, and then the shorter text for the model if there is
    /// one. An output that is refused becomes an error with the reason, and its changes of the state are dropped;
    /// [`Verdict::Replace`] records another one in its place. The errors of tools, the answers of waits and the results of brains are not
    /// checked. A guard that panics refuses.
    pub fn guard_result<F, Fut, W>(self, name: impl Into<String>, check: F) -> Self
    where
        F: Fn(GuardContext<O, S, V>, String, Arc<Value>) -> Fut + Standalone,
        Fut: Future<Output = W> + Send + 'static,
        W: Into<Verdict>,
    {
        let check: CheckFn<(String, Arc<Value>)> =
            Arc::new(move |scope, (tool, result)| checked(&scope, |cx| check(cx, tool, result)));
        self.guard(name.into(), LoopGuardCheck::Result(check))
    }

    fn guard(mut self, name: String, check: LoopGuardCheck) -> Self {
        self.definition.guards.push(LoopGuard { name, check });
        self
    }
}

/// Runs a typed check.
fn checked<O: Options, S: State, V: Services, Fut, W>(
    scope: &Scope,
    check: impl FnOnce(GuardContext<O, S, V>) -> Fut,
) -> futures::future::BoxFuture<'static, Result<Verdict>>
where
    Fut: Future<Output = W> + Send + 'static,
    W: Into<Verdict>,
{
    let context = || {
        let (state, options, services) = (read_only(scope)?, options(scope)?, services(&scope.services)?);
        Ok(GuardContext { state, options, services, scope: scope.clone() })
    };
    match context() {
        Ok(context) => {
            let check = check(context);
            Box::pin(async move { Ok(check.await.into()) })
        }
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}
