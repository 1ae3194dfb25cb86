//! The prompt: one question to a model, with an answer of one type.

use std::sync::Arc;

use derive_where::derive_where;

use super::tries::Tried;
use crate::definition::{StageBody, encode_state};
use crate::dsl::ask_model::ModelCall;
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::context::StepContext;
use crate::dsl::services::{Requirement, Services};
use crate::dsl::trait_bounds::{Options, State, TypedAnswer};
use crate::error::Result;
use crate::record::{FileRef, Settings, Tier};

/// What the closure of a prompt sees. It derefs to the context of a step: `cx.state`, `cx.options`, `cx.services`.
#[derive_where(Debug)]
pub struct PromptContext<'c, O, S, V>(&'c StepContext<O, S, V>);

impl<O, S, V> std::ops::Deref for PromptContext<'_, O, S, V> {
    type Target = StepContext<O, S, V>;

    fn deref(&self) -> &StepContext<O, S, V> {
        self.0
    }
}

impl<O: Options, S: State, V: Services> PromptContext<'_, O, S, V> {
    /// Begins the question with its system prompt.
    pub fn system(&self, prompt: impl Into<String>) -> PromptQuestion {
        PromptQuestion(self.0.model().system(prompt))
    }
}

/// The question of a prompt, before its text.
#[must_use = "a question ends with `ask`"]
#[derive(Debug)]
pub struct PromptQuestion(ModelCall);

impl PromptQuestion {
    /// Chooses a tier of the runner's models.
    pub fn tier(self, tier: Tier) -> Self {
        Self(self.0.tier(tier))
    }

    /// Sets the model settings.
    pub fn settings(self, settings: Settings) -> Self {
        Self(self.0.settings(settings))
    }

    /// Adds a file to the question.
    pub fn file(self, file: FileRef) -> Self {
        Self(self.0.file(file))
    }

    /// Sets how often the model is asked again after an answer that does not fit; 2 by default.
    pub fn retries(self, times: u32) -> Self {
        Self(self.0.retries(times))
    }

    /// Asks for an answer of the type `T`.
    pub fn ask<T: TypedAnswer>(self, text: impl Into<String>) -> AskedFor<T> {
        AskedFor { call: self.0, text: text.into(), check: Arc::new(|_| Ok(())) }
    }
}

/// A question of a prompt for an answer of the type `T`.
#[must_use = "the closure of `prompt` returns it"]
#[derive_where(Debug)]
pub struct AskedFor<T> {
    call: ModelCall,
    text: String,
    #[derive_where(skip)]
    check: AnswerCheck<T>,
}

/// Checks an answer that fits its type.
type AnswerCheck<T> = Arc<dyn Fn(&T) -> Result<(), String> + Send + Sync>;

impl<T: TypedAnswer> AskedFor<T> {
    /// Checks an answer that fits the type. The model is asked again with the error, as after an answer that does not fit.
    pub fn check(mut self, check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.check = Arc::new(check);
        self
    }
}

/// The return value of a prompt's closure: a question, or a `Result` of one.
pub trait IntoQuestion<T> {
    /// Returns the question.
    ///
    /// # Errors
    ///
    /// The error of the closure.
    fn into_question(self) -> Result<AskedFor<T>>;
}

impl<T> IntoQuestion<T> for AskedFor<T> {
    fn into_question(self) -> Result<Self> {
        Ok(self)
    }
}

impl<T> IntoQuestion<T> for Result<AskedFor<T>> {
    fn into_question(self) -> Self {
        self
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a prompt: one question to a model, whose answer fits the type `T`. `next` computes the next state from the answer.
    ///
    /// An answer that does not fit the schema of `T` or the question's [check](AskedFor::check) is asked again with the error; after
    /// the last one the brain fails. The question and each answer are in the log, so a restart does not ask again. A prompt has no
    /// tools and is no part of a dialogue: use a [loop](Self::loop) for those.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, JsonSchema)]
    /// enum Kind { Refund, Question, Other }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Ticket { text: String, kind: Option<Kind> }
    ///
    /// let triage = brain("Triage").state(Ticket { text: "My parcel is late.".to_owned(), kind: None }).prompt(
    ///     "Classify",
    ///     |cx| cx.system("You sort tickets.").ask::<Kind>(format!("What kind of ticket is this?\n{}", cx.state.text)),
    ///     |ticket, kind| Ticket { kind: Some(kind), ..ticket },
    /// );
    /// # let _ = triage;
    /// ```
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn prompt<T, Q, S2>(
        self,
        name: &str,
        ask: impl Fn(PromptContext<'_, O, S, V::Services>) -> Q + Send + Sync + 'static,
        next: impl Fn(S, T) -> S2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S2, V, P::Next<Tried>>
    where
        T: TypedAnswer + Send,
        Q: IntoQuestion<T>,
        S2: State,
        P: TakesStages,
    {
        let (ask, next) = (Arc::new(ask), Arc::new(next));
        self.stage(
            name,
            StageBody::Prompt(Arc::new(move |scope| {
                let (ask, next) = (Arc::clone(&ask), Arc::clone(&next));
                Box::pin(async move {
                    let max_bytes = scope.max_bytes();
                    let cx = StepContext::new(scope)?;
                    let AskedFor { call, text, check } = ask(PromptContext(&cx)).into_question()?;
                    let answer = call.ask_for_checked(text, move |answer: &T| check(answer)).await?;
                    encode_state(&next(cx.state, answer), max_bytes)
                })
            })),
        )
    }
}
