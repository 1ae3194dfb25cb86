//! The workflow of a brain: one invocation per run.
//!
//! ```text
//! run:     segment ──ended──▶ outcome
//!             ▲  └───waits──▶ promise `event-N`, or a sleep until the wake time
//!             │                   │      the log is also read after each longer sleep
//!             └───────────────────┘
//! signal:  append to the log ──▶ resolve `event-N`
//! ```
//!
//! `N` is the number of the next event of the log when the run began to wait, so the promise means: the log has grown.
//! The log decides whether a signal is accepted. Restate accepts a second answer to a promise in silence.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::definition::BrainDefinition;
use positronic_core::record::{RunId, Seq, SignalId};
use positronic_core::runner::{Clock as _, Runner, SignalError, StartError, SystemClock};
use positronic_core::store::StoreError;
use restate_sdk::context::{
    ContextClient as _, ContextPromises as _, ContextReadState as _, ContextSideEffects as _, ContextTimers as _,
    ContextWriteState as _, RequestTarget, RunFuture as _, SharedWorkflowContext, WorkflowContext,
};
use restate_sdk::discovery::{HandlerType, ServiceType};
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::{HandlerResult, TerminalError};
use restate_sdk::serde::Json;
use restate_sdk::service::{Service, ServiceDefinition};

use super::service_options::{handler, service};
use super::{Handled, again, definition, finish};
use crate::names;
use crate::payloads::{Begin, RunOutcome, RunRequest, SegmentEnd, SignalRequest, Signalled, WakeRequest};

/// The state of the workflow: the number of the event that it waits for.
const WAITS_FOR: &str = "waits_for";

/// The shortest sleep, so that a run that is due again and again does not fill its journal.
const MIN_SLEEP: Duration = Duration::from_millis(50);

/// How long a workflow sleeps at first and at most until it reads whether the log has grown. An append that resolved no
/// promise, such as a cancellation while no service was alive, is found then. Each sleep adds entries to the journal.
const LOOKS: (Duration, Duration) = (Duration::from_secs(600), Duration::from_secs(3600));

/// The workflow of a brain.
#[derive(Clone)]
pub(crate) struct BrainService {
    pub(crate) runner: Runner,
    pub(crate) brain: Arc<BrainDefinition>,
}

impl Service for BrainService {
    type Future = Handled;

    fn handle(&self, cx: ContextInternal) -> Handled {
        let service = self.clone();
        Box::pin(async move {
            match cx.handler_name() {
                "run" => {
                    let (Json(request), metadata) = cx.input::<Json<RunRequest>>().await;
                    finish(&cx, service.run((&cx, metadata).into(), request).await)
                }
                "signal" => {
                    let (Json(request), metadata) = cx.input::<Json<SignalRequest>>().await;
                    finish(&cx, service.signal((&cx, metadata).into(), request).await)
                }
                "wake" => {
                    let (Json(request), metadata) = cx.input::<Json<WakeRequest>>().await;
                    finish(&cx, service.wake(&(&cx, metadata).into(), request.next).await)
                }
                _ => Err(Error::unknown_handler(cx.service_name(), cx.handler_name())),
            }
        })
    }
}

impl BrainService {
    pub(crate) fn definition(self) -> Result<ServiceDefinition, String> {
        let handlers = vec![
            handler("run", Some(HandlerType::Workflow))?,
            handler("signal", Some(HandlerType::Shared))?,
            handler("wake", Some(HandlerType::Shared))?,
        ];
        let about = format!("Runs of the brain `{}`, keyed by run id.", self.brain.title);
        let discovery = service(&names::workflow(&self.brain.title), ServiceType::Workflow, handlers, about)?;
        Ok(definition(self, discovery))
    }

    /// Drives the run from wait to wait.
    async fn run(&self, cx: WorkflowContext<'_>, request: RunRequest) -> HandlerResult<RunOutcome> {
        let RunRequest { mut begin } = request;
        loop {
            let (run, first) = (RunId::new(cx.key()), begin.take());
            let segment = cx.run(move || async move { self.segment(&run, first).await.map(Json) });
            let Json(segment) = segment.name("segment").await?;
            let (next, millis) = match segment {
                SegmentEnd::Ended(outcome) => return Ok(outcome),
                SegmentEnd::Waits { next, millis } => (next, millis),
            };
            self.wait(&cx, next, millis.map(Duration::from_millis)).await?;
        }
    }

    /// Waits until the log has an event with this number, at most for this time.
    async fn wait(&self, cx: &WorkflowContext<'_>, next: Seq, mut left: Option<Duration>) -> HandlerResult<()> {
        cx.set(WAITS_FOR, next.0);
        let (mut look, longest) = LOOKS;
        let name = event(next);
        loop {
            let pause = left.map_or(look, |left| left.min(look));
            let (grown, sleep) = (cx.promise::<u64>(&name), cx.sleep(pause.max(MIN_SLEEP)));
            restate_sdk::select! {
                grown = grown => {
                    grown?;
                    return Ok(());
                },
                slept = sleep => { slept?; }
            }
            left = left.map(|left| left.saturating_sub(pause));
            if left == Some(Duration::ZERO) {
                return Ok(());
            }
            let run = RunId::new(cx.key());
            let has_grown = cx.run(move || async move { self.has_grown(&run, next).await });
            if has_grown.name("look").await? {
                return Ok(());
            }
            look = (look * 2).min(longest);
        }
    }

    /// Returns whether the log has an event with this number, or is gone.
    async fn has_grown(&self, run: &RunId, next: Seq) -> HandlerResult<bool> {
        match self.runner.client().store().run(run).await {
            Ok(row) => Ok(row.next > next),
            Err(StoreError::NoSuchRun { .. }) => Ok(true),
            Err(error) => Err(again(error)),
        }
    }

    /// Works on the run until it ends or waits.
    async fn segment(&self, run: &RunId, begin: Option<Begin>) -> HandlerResult<SegmentEnd> {
        let known = match self.runner.client().store().run(run).await {
            Ok(_) => true,
            Err(error @ StoreError::NoSuchRun { .. }) if begin.is_none() => {
                return Err(TerminalError::new_with_code(404, error.to_string()).into());
            }
            Err(StoreError::NoSuchRun { .. }) => false,
            Err(error) => return Err(again(error)),
        };
        let driven = match begin.filter(|_| !known) {
            None => self.runner.drive(run).await.map_err(again)?,
            Some(Begin { options, start }) => {
                let start = positronic_core::record::Start { id: Some(SignalId::new(run.as_str())), ..start };
                let driven = self.runner.start_driven(Arc::clone(&self.brain), options, start).await;
                driven.map_err(|error| match error {
                    StartError::Store(_) | StartError::Leaves => again(error),
                    error => TerminalError::new_with_code(400, error.to_string()).into(),
                })?
            }
        };
        SegmentEnd::of(driven, SystemClock.now()).map_err(again)
    }

    /// Appends a signal to the log and wakes the run.
    async fn signal(&self, cx: SharedWorkflowContext<'_>, signal: SignalRequest) -> HandlerResult<Signalled> {
        let (client, run) = (self.runner.client(), RunId::new(cx.key()));
        let sent = cx.run(move || async move {
            match client.send(&run, signal).await {
                Ok(seq) => Ok(Json(Signalled::Accepted { seq })),
                Err(SignalError::Store(error)) if !matches!(error, StoreError::NoSuchRun { .. }) => Err(again(error)),
                Err(refused) => Ok(Json(Signalled::Refused { reason: refused.to_string() })),
            }
        });
        let Json(signalled) = sent.name("append").await?;
        if let Signalled::Accepted { seq } = signalled {
            // The run may have begun to wait right before this event.
            cx.resolve_promise(&event(seq), seq.0);
            self.wake(&cx, seq.next()).await?;
        }
        Ok(signalled)
    }

    /// Wakes the run if its log has grown since it began to wait, and begins the workflow of a run that has none.
    async fn wake(&self, cx: &SharedWorkflowContext<'_>, next: Seq) -> HandlerResult<()> {
        match cx.get::<u64>(WAITS_FOR).await? {
            Some(waits_for) if waits_for < next.0 => cx.resolve_promise(&event(Seq(waits_for)), next.0),
            Some(_) => {}
            None => {
                // Restate ignores it if the workflow has begun.
                let target = RequestTarget::workflow(names::workflow(&self.brain.title), cx.key(), "run");
                let adopt = Json(RunRequest { begin: None });
                cx.request::<Json<RunRequest>, Json<RunOutcome>>(target, adopt).send();
            }
        }
        Ok(())
    }
}

/// Returns the name of the promise that the log has an event with this number.
fn event(seq: Seq) -> String {
    format!("event-{}", seq.0)
}
