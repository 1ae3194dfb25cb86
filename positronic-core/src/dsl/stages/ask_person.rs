//! The question to a person, who fills in a form.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use serde_json::Value;

use super::tries::Untried;
use crate::definition::{StageBody, StateValue, WaitStage, decode, encode_state};
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::services::Requirement;
use crate::dsl::trait_bounds::{Options, State, TypedAnswer};
use crate::error::{Error, Result};
use crate::machine::REPLY;
use crate::record::{StageKind, WaitDeadline, WaitSpec};
use crate::tools::Schema;

/// A question to a person with the fields of `T`. The answer is an `A`: `T`, or an `Option` of it if the form has a deadline.
#[must_use = "the closure of `ask_person` returns it"]
#[derive_where(Debug)]
pub struct Form<T, A = T> {
    question: String,
    within: Option<Duration>,
    types: PhantomData<fn(T) -> A>,
}

/// An answer to a form with the fields of `T`.
pub trait FormAnswer<T>: Sized {
    /// Returns the answer; `None` stands for the end of the time.
    ///
    /// # Errors
    ///
    /// If the time of a form without a deadline is over.
    fn of(answer: Option<T>) -> Result<Self>;
}

impl<T> FormAnswer<T> for T {
    fn of(answer: Option<T>) -> Result<T> {
        answer.ok_or_else(|| Error::new("the form has no deadline in this code"))
    }
}

impl<T> FormAnswer<T> for Option<T> {
    fn of(answer: Self) -> Result<Self> {
        Ok(answer)
    }
}

/// Creates a form whose fields are those of `T`.
pub fn form<T: TypedAnswer>(question: impl Into<String>) -> Form<T> {
    Form { question: question.into(), within: None, types: PhantomData }
}

impl<T> Form<T> {
    /// Sets how long the person has for the answer, which becomes an `Option`.
    pub fn within(self, time: Duration) -> Form<T, Option<T>> {
        Form { question: self.question, within: Some(time), types: PhantomData }
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a question to a person. The answer is checked against the schema of `T`, which is also the form that people see; `next`
    /// computes the next state from it. Only an answer to this question counts, whenever it comes.
    ///
    /// ```
    /// use std::time::Duration;
    /// use positronic_core::dsl::form;
    /// use positronic_core::prelude::*;
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct SignOff { approved: bool, comment: String }
    ///
    /// let release = brain("Release").state("1.2.0".to_owned()).ask_person(
    ///     "Sign off",
    ///     |version| form::<SignOff>(format!("Is {version} ready?")).within(Duration::from_hours(8)),
    ///     |version, answer| match answer {
    ///         Some(SignOff { approved: true, comment }) => format!("{version}: {comment}"),
    ///         Some(_) | None => "not released".to_owned(),
    ///     },
    /// );
    /// # let _ = release;
    /// ```
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn ask_person<T, A, S2: State>(
        self,
        name: &str,
        ask: impl Fn(&S) -> Form<T, A> + Send + Sync + 'static,
        next: impl Fn(S, A) -> S2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S2, V, P::Next<Untried>>
    where
        T: TypedAnswer,
        A: FormAnswer<T> + 'static,
        P: TakesStages,
    {
        let schema = Schema::of::<T>();
        self.stage(
            name,
            StageBody::Wait(WaitStage {
                kind: StageKind::AskPerson,
                webhooks: vec![REPLY.to_owned()],
                begin: Arc::new(move |state, now| {
                    let Form { question, within, .. } = ask(&*state.shared::<S>()?);
                    let wait = WaitSpec {
                        webhook: REPLY.to_owned(),
                        identifier: String::new(),
                        fresh: false,
                        person: true,
                        prompt: Some(question),
                        schema: Arc::clone(schema.json()),
                        expires: None,
                        otherwise: None,
                    };
                    Ok((vec![wait], within.map(|time| WaitDeadline::after(now, time))))
                }),
                finish: Arc::new(move |state: &StateValue, answer: Option<(u32, &Value)>| {
                    let answer = answer.map(|(_, payload)| decode("the answer", payload)).transpose()?;
                    encode_state(&next(state.owned()?, A::of(answer)?), state.max_bytes())
                }),
            }),
        )
    }
}
