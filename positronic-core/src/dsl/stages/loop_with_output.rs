//! The loop with an output: it ends when the model gives a value of one type, as the arguments of the tool `done`. A misfit is the call's result,
//! as with any tool (`runner/effects/validate_calls.rs`).

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use serde_json::Value;

use super::tries::Timed;
use crate::definition::{ExitFn, LoopStage, Scope, StageBody, StateValue, encode_state, read_value};
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::context::{LoopContext, ToolContext};
use crate::dsl::r#loop::Loop;
use crate::dsl::services::{Requirement, Services};
use crate::dsl::tool::ToolBuilder;
use crate::dsl::trait_bounds::{Options, State, TypedAnswer};
use crate::error::{Error, Result};
use crate::record::{LoopOutcome, OnLimit};
use crate::tools::Schema;

/// The name of the tool with which a model gives the output.
const DONE: &str = "done";

/// A loop's configuration for one iteration, with the output `T`.
#[must_use = "a loop's configuration is what its closure returns"]
#[derive_where(Debug)]
pub struct LoopWithOutput<T, O = (), S = (), V = ()> {
    configured: Loop<O, S, V>,
    output: PhantomData<fn() -> T>,
}

impl<O: Options, S: State, V: Services> Loop<O, S, V> {
    /// Ends the loop with an output of the type `T`, which [`loop_to`](BrainBuilder::loop_to) gives to the next state. The model gives
    /// it with a tool `done`, whose arguments are `T`; a text does not end the loop.
    ///
    /// # Panics
    ///
    /// If the loop has a tool `done`.
    #[track_caller]
    pub fn output<T: TypedAnswer>(self) -> LoopWithOutput<T, O, S, V> {
        self.output_checked(|_| Ok(()))
    }

    /// Ends the loop with an output as [`output`](Self::output), which must pass a check. Otherwise, the model gets the error and goes on.
    /// The check can run again after a crash.
    ///
    /// # Panics
    ///
    /// If the loop has a tool `done`.
    #[track_caller]
    pub fn output_checked<T: TypedAnswer>(
        self,
        check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    ) -> LoopWithOutput<T, O, S, V> {
        let schema = Schema::object_of::<T>();
        let (of, check) = (Arc::clone(&schema), Arc::new(check));
        let done = move |arguments: Value, _: ToolContext<O, S, V>| {
            let (schema, check) = (Arc::clone(&of), Arc::clone(&check));
            async move {
                let output = schema.inner(&arguments);
                let value: T = read_value(output).map_err(|error| Error::new(error.to_string()))?;
                check(&value).map_err(Error::new)?;
                Ok(output.clone())
            }
        };
        // It only checks its arguments, so a call that a crash has interrupted can run again.
        let tool =
            ToolBuilder::<O, S, V>::new(DONE).description("Finish the task and return its result.").idempotent().exit();
        let configured = self.tools([tool.after_success().made(schema, done)]).require_exit();
        LoopWithOutput { configured, output: PhantomData }
    }
}

/// The return value of a closure of [`loop_to`](BrainBuilder::loop_to): a configuration with an output, or a `Result` of it.
#[diagnostic::on_unimplemented(
    message = "the closure of `loop_to` returns a configuration with an output, not `{Self}`",
    label = "this is neither `cx.system(…).output::<T>()` nor a `Result` of it",
    note = "end the closure with `.output::<T>()`; a loop without an output is `.r#loop(…)`"
)]
pub trait IntoLoopWithOutput<T, O, S, V> {
    /// Returns the configuration.
    ///
    /// # Errors
    ///
    /// The error of the closure.
    fn into_loop(self) -> Result<LoopWithOutput<T, O, S, V>>;
}

impl<T, O, S, V> IntoLoopWithOutput<T, O, S, V> for LoopWithOutput<T, O, S, V> {
    fn into_loop(self) -> Result<Self> {
        Ok(self)
    }
}

impl<T, O, S, V> IntoLoopWithOutput<T, O, S, V> for Result<LoopWithOutput<T, O, S, V>> {
    fn into_loop(self) -> Self {
        self
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a loop that ends with an output: `next` computes the next state from it. The closure configures each iteration, as for a
    /// [loop](Self::loop), and ends with [`output`](Loop::output).
    ///
    /// Arguments of `done` that do not fit the schema of `T` go back to the model with the error, as for any tool. `done` waits for the calls
    /// before it in the same answer, and is skipped if one of them fails. A loop that reaches a
    /// limit, or that ends otherwise, fails the brain: the next stage relies on the output. So it cannot have a handoff.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, JsonSchema)]
    /// struct Report { title: String, findings: Vec<String> }
    ///
    /// let research = brain("Research").state("kettles".to_owned()).loop_to(
    ///     "Research",
    ///     |cx| cx.system(format!("Find out about {}.", cx.state)).output::<Report>(),
    ///     |_, report| report,
    /// );
    /// # let _ = research;
    /// ```
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn loop_to<T, F, L, S2>(
        self,
        name: &str,
        configure: F,
        next: impl Fn(S, T) -> S2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S2, V, P::Next<Timed<S>>>
    where
        T: TypedAnswer,
        F: Fn(LoopContext<O, S, V::Services>) -> L + Send + Sync + 'static,
        L: IntoLoopWithOutput<T, O, S, V::Services>,
        S2: State,
        P: TakesStages,
    {
        let (declared, next) = (self.definition.actions.clone(), Arc::new(next));
        let configured = move |scope: Scope| {
            let (link, next) = (Arc::clone(&scope.link), Arc::clone(&next));
            let LoopWithOutput { configured, .. } = configure(LoopContext::new(scope)?).into_loop()?;
            let mut definition = configured.into_definition(&declared, &*link)?;
            if let Some(tool) = definition.tools.values().find(|tool| tool.decl.flags.handoff) {
                return Err(Error::new(format!(
                    "the handoff `{}` would end the loop without the output of `{DONE}`; make it a tool, with `t.brain(…)`, or hand over in \
                     a loop of its own",
                    tool.decl.id
                )));
            }
            definition.limits.budget.on_limit = Some(OnLimit::Error);
            definition.limits.on_useless_answer = OnLimit::Error;
            definition.on_exit = Some(with_output(definition.on_exit.take(), move |state: &StateValue, output| {
                let output = read_value(output).map_err(|error| Error::new(error.to_string()))?;
                encode_state(&next(state.owned()?, output), state.max_bytes())
            }));
            Ok(definition)
        };
        self.stage(name, StageBody::Loop(LoopStage::new(Arc::new(configured), Some(DONE))))
    }
}

/// Applies the output after the author's own `on_exit`.
fn with_output(
    before: Option<ExitFn>,
    next: impl Fn(&StateValue, &Value) -> Result<Value> + Send + Sync + 'static,
) -> ExitFn {
    Arc::new(move |state, outcome, output| {
        let before = before.as_ref().map(|before| before(state, outcome, output)).transpose()?;
        let state = before.map_or_else(|| state.clone(), |after| state.with_json(Arc::new(after)));
        match outcome {
            LoopOutcome::Exited { tool } if tool == DONE => {
                next(&state, output.ok_or_else(|| Error::new("the loop has no output"))?)
            }
            LoopOutcome::Exited { tool } => {
                Err(Error::new(format!("`{tool}` ended the loop, which needs the output of `{DONE}`")))
            }
            // The brain fails with the loop's own reason.
            _ => Ok(Value::clone(state.json())),
        }
    })
}
