//! Guards of a loop: they check messages, answers, calls and results before those count.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::ask_model::ModelCall;
use super::context::{options, read_only, shared_methods};
use super::r#loop::Loop;
use super::read_only::{ChangedByToolsAndOnExit, DeclaredWithOptions, ReadOnly};
use super::services::{Services, services};
use super::trait_bounds::{Options, Standalone, State};
use crate::definition::{
    CheckFn, CheckedAnswer, CheckedInput, CheckedValue, LoopGuard, LoopGuardCheck, Scope, Verdict,
};
use crate::error::Result;
use crate::record::{ModelResponse, Path, Prompt, RunId, UserMessage};

/// What a guard of a loop sees: `cx.state`, `cx.options`, `cx.services`.
pub struct GuardContext<O = (), S = (), V = ()> {
    /// The current state, [read-only](ReadOnly).
    pub state: ReadOnly<S, ChangedByToolsAndOnExit>,
    /// The options of the run.
    pub options: ReadOnly<O, DeclaredWithOptions>,
    /// The services.
    pub services: Arc<V>,
    scope: Scope,
    at: Path,
}

shared_methods!(GuardContext<O, S, V>);

impl<O, S, V> GuardContext<O, S, V> {
    /// Creates a question to a model about what the guard checks. The question and its answer are recorded, and what it costs counts for the loop. A
    /// guard that asks the same again in this iteration, after a crash or a refusal, gets the recorded answer.
    pub fn model(&self) -> ModelCall {
        ModelCall::new(Arc::clone(&self.scope.link), self.at.clone())
    }
}

impl From<Result<Self>> for Verdict {
    /// Converts an error to [`Stop`](Self::Stop): what a guard could not check does not pass.
    fn from(checked: Result<Self>) -> Self {
        checked.unwrap_or_else(|error| Self::Stop(format!("the guard failed: {error}")))
    }
}

impl From<std::result::Result<(), String>> for Verdict {
    /// Converts `Ok` to [`Pass`](Self::Pass) and `Err` to [`Refuse`](Self::Refuse).
    fn from(checked: std::result::Result<(), String>) -> Self {
        checked.map_or_else(Self::Refuse, |()| Self::Pass)
    }
}

/// What a guard of a loop returns: a [`Verdict`], or a `Result` with the reason of a refusal.
#[diagnostic::on_unimplemented(
    message = "a guard of a loop returns its verdict, not `{Self}`",
    label = "this is neither a `Verdict` nor a `Result<(), String>`",
    note = "return `Ok(())` to let pass and `Err(reason.to_owned())` to refuse, or a `Verdict`; `?` takes a `Result<Verdict>`"
)]
pub trait GuardVerdict: Into<Verdict> {}

impl GuardVerdict for Verdict {}
impl GuardVerdict for Result<Verdict> {}
impl GuardVerdict for std::result::Result<(), String> {}

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
        W: GuardVerdict,
    {
        let check: CheckFn<CheckedAnswer> =
            Arc::new(move |scope, CheckedAnswer { answer, at }| checked(&scope, at, |cx| check(cx, answer)));
        self.guard(name.into(), LoopGuardCheck::Answer(check))
    }

    /// Checks each message of a person before a model reads it, also the one that opens the loop.
    ///
    /// In place of a message that is refused, the model reads that it was withheld, with the reason, so that it can say so.
    /// [`Verdict::Replace`] sends another text, with the message's files. [`Verdict::Stop`], a guard that fails and one that panics fail the
    /// brain with the code `guard`. People see the message as it was sent, and so does the log; this and later runs of a conversation send
    /// what came in its place. Messages to a brain to which this loop hands its dialogue over are checked, too.
    ///
    /// ```
    /// use positronic_core::dsl::Verdict;
    /// use positronic_core::prelude::*;
    /// # use positronic_core::model::scripted::{Reply, ScriptedModel};
    /// use serde_json::json;
    ///
    /// let support = brain("Support").r#loop("Chat", |cx| {
    ///     cx.system("Help the customer.").input("My card is 4111 1111.").guard_input("No cards", async |_, message| {
    ///         Verdict::Replace(json!(message.text.replace("4111 1111", "[card]")))
    ///     })
    /// });
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let model = ScriptedModel::from_fn(|request| Reply::text(format!("{:?}", request.messages.messages())));
    /// # let runner = Runner::new(model);
    /// let run = runner.start(support, ()).await?;
    /// run.result().await?;
    /// # assert!(run.answer().is_some_and(|answer| answer.contains("My card is [card].")));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn guard_input<F, Fut, W>(self, name: impl Into<String>, check: F) -> Self
    where
        F: Fn(GuardContext<O, S, V>, Arc<UserMessage>) -> Fut + Standalone,
        Fut: Future<Output = W> + Send + 'static,
        W: GuardVerdict,
    {
        let check: CheckFn<CheckedInput> =
            Arc::new(move |scope, CheckedInput { message, at }| checked(&scope, at, |cx| check(cx, message)));
        self.guard(name.into(), LoopGuardCheck::Input(check))
    }

    /// Checks the tool and the arguments of each call, before a person is asked about it, and again after a person has edited them.
    ///
    /// A call that is refused gets the reason as its error, and the model goes on. [`Verdict::Replace`] runs the tool with other arguments, which have
    /// to fit it; the log keeps those that were replaced. What a person has edited cannot be replaced, only refused. [`Verdict::Stop`], a
    /// guard that fails and one that panics fail the brain with the code `guard`; no call of the answer runs then. A guard can ask a
    /// [model](GuardContext::model).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use positronic_core::dsl::Verdict;
    /// use positronic_core::prelude::*;
    /// # use positronic_core::model::scripted::{Reply, ScriptedModel};
    /// use serde_json::Value;
    ///
    /// let desk = brain("Desk").r#loop("Chat", |cx| {
    ///     cx.system("Help.")
    ///         .input("Look the weather up.")
    ///         .tool("search", |t| t.read_only().execute(async |_: NoArgs, _| Ok("sunny")))
    ///         .guard_call("No names", async |cx, tool, arguments: Arc<Value>| {
    ///             let question = format!("Is a person named in this call of `{tool}`? {arguments}");
    ///             match &*cx.model().system("Answer yes or no.").ask(question).await? {
    ///                 "no" => Ok(Verdict::Pass),
    ///                 _ => Ok(Verdict::Refuse("search without names of persons".to_owned())),
    ///             }
    ///         })
    /// });
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let model = ScriptedModel::new([Reply::call("search", serde_json::json!({})), Reply::text("no"), Reply::text("It is sunny.")]);
    /// # let runner = Runner::new(model);
    /// let run = runner.start(desk, ()).await?;
    /// run.result().await?;
    /// assert_eq!(run.answer().as_deref(), Some("It is sunny."));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn guard_call<F, Fut, W>(self, name: impl Into<String>, check: F) -> Self
    where
        F: Fn(GuardContext<O, S, V>, String, Arc<Value>) -> Fut + Standalone,
        Fut: Future<Output = W> + Send + 'static,
        W: GuardVerdict,
    {
        self.guard(name.into(), LoopGuardCheck::Call(of_value(check)))
    }

    /// Checks the tool and what its function returns, before it is recorded: the output, and then the shorter text for the model if there is
    /// one.
    ///
    /// An output that is refused becomes an error with the reason, and its changes of the state are dropped; [`Verdict::Replace`] records
    /// another one in its place. [`Verdict::Stop`], a guard that fails and one that panics fail the brain with the code `guard`. The errors
    /// of tools, the answers of waits and the results of brains are not checked.
    ///
    /// A guard can ask a [model](GuardContext::model). The call is under way until the verdict: after a crash meanwhile the tool runs again if it may,
    /// and its result is `interrupted` otherwise.
    pub fn guard_result<F, Fut, W>(self, name: impl Into<String>, check: F) -> Self
    where
        F: Fn(GuardContext<O, S, V>, String, Arc<Value>) -> Fut + Standalone,
        Fut: Future<Output = W> + Send + 'static,
        W: GuardVerdict,
    {
        self.guard(name.into(), LoopGuardCheck::Result(of_value(check)))
    }

    fn guard(mut self, name: String, check: LoopGuardCheck) -> Self {
        self.definition.guards.push(LoopGuard { name, check });
        self
    }
}

/// Erases the types of a check of arguments or outputs.
fn of_value<O: Options, S: State, V: Services, F, Fut, W>(check: F) -> CheckFn<CheckedValue>
where
    F: Fn(GuardContext<O, S, V>, String, Arc<Value>) -> Fut + Standalone,
    Fut: Future<Output = W> + Send + 'static,
    W: GuardVerdict,
{
    Arc::new(move |scope, CheckedValue { tool, value, at }| checked(&scope, at, |cx| check(cx, tool, value)))
}

/// Runs a typed check.
fn checked<O: Options, S: State, V: Services, Fut, W>(
    scope: &Scope,
    at: Path,
    check: impl FnOnce(GuardContext<O, S, V>) -> Fut,
) -> futures::future::BoxFuture<'static, Result<Verdict>>
where
    Fut: Future<Output = W> + Send + 'static,
    W: GuardVerdict,
{
    let context = || {
        let (state, options, services) = (read_only(scope)?, options(scope)?, services(&scope.services)?);
        Ok(GuardContext { state, options, services, scope: scope.clone(), at })
    };
    match context() {
        Ok(context) => {
            let check = check(context);
            Box::pin(async move { Ok(check.await.into()) })
        }
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}
