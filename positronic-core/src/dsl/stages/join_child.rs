//! The wait for the end of a child run.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tries::Untried;
use crate::definition::{StageBody, StateValue, WaitStage, decode, encode_state};
use crate::dsl::Child;
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::services::Requirement;
use crate::dsl::trait_bounds::{Options, State};
use crate::error::{Error, Result};
use crate::record::{ChildEnd, EndReason, Failure, StageKind, WaitSpec};

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a wait for the end of a [child run](crate::dsl::StepContext::start). `next` computes the next state from its result, or from
    /// the failure of a child that has failed or was cancelled. No worker of this run is needed meanwhile.
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn join<R: DeserializeOwned + 'static, S2: State>(
        self,
        name: &str,
        child: impl Fn(&S) -> Child<R> + Send + Sync + 'static,
        next: impl Fn(S, std::result::Result<R, Failure>) -> S2 + Send + Sync + 'static,
    ) -> BrainBuilder<O, S2, V, P::Next<Untried>>
    where
        P: TakesStages,
    {
        self.stage(
            name,
            StageBody::Wait(WaitStage {
                kind: StageKind::Join,
                webhooks: vec![WaitSpec::CHILD.to_owned()],
                begin: Arc::new(move |state, _| {
                    let child = child(&*state.shared::<S>()?);
                    Ok((vec![WaitSpec::for_child(child.run())], None))
                }),
                finish: Arc::new(move |state: &StateValue, answer: Option<(u32, &Value)>| {
                    let (_, end) = answer.ok_or_else(|| Error::new("the wait has ended without the end of a run"))?;
                    encode_state(&next(state.owned()?, ended(end)?), state.max_bytes())
                }),
            }),
        )
    }
}

/// Reads the end of a child.
fn ended<R: DeserializeOwned>(end: &Value) -> Result<std::result::Result<R, Failure>> {
    Ok(match decode("the end of the child run", end)? {
        ChildEnd::Completed(result) => Ok(decode("the result of the child run", &result)?),
        ChildEnd::Failed(failure) => Err(failure),
        ChildEnd::Cancelled => {
            let message = "the child run was cancelled".to_owned();
            Err(Failure { code: EndReason::Brain, message, retryable: false })
        }
    })
}
