//! Driver of a session: one loop that waits for the run's updates, keys, interrupts and ticks, and acts on each.

use std::ops::ControlFlow;
use std::pin::pin;
use std::time::Duration;

use positronic_core::record::{RunId, SignalKind, Status};
use positronic_core::runner::{Clock as _, RunHandle, Runner, Settled, SignalError, SystemClock};
use positronic_core::store::StoreError;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::MissedTickBehavior;

use super::awaited_runs::AwaitedRuns;
use super::session_screen::SessionScreen;
use crate::app::{Failure, Ui};
use crate::render::words::no_worker;
use crate::session::{Ending, Interrupt, Role, Screen, SessionOptions, interrupts};

/// Printed while effects in flight finish.
pub(crate) const AT_ONCE: &str =
    "releasing the run: effects in flight have eight seconds to finish; press Ctrl-C again to exit at once";
/// Time between two checks for the worker of a watched run. A released run is claimed again within a second if a server runs,
/// so two checks in a row must find no worker.
pub(super) const WORKER_CHECK: Duration = Duration::from_secs(2);

/// Shows the run that `begin` starts or continues, from its first event to its end, and answers its questions. Returns
/// its id, too.
pub(crate) async fn session(
    runner: &Runner,
    begin: impl AsyncFnOnce(Runner) -> Result<RunHandle<Value>, Failure>,
    options: &SessionOptions<'_>,
    ui: &mut Ui,
) -> Result<(RunId, Ending), Failure> {
    let terminal = ui.settings.stdin_is_terminal && ui.settings.stderr_is_terminal && !ui.settings.dumb;
    let has_person = terminal && !matches!(options.role, Role::Watches { .. });
    let interrupts = interrupts();
    let run = begin(runner.clone()).await?;
    let id = run.id().clone();
    if options.lasts && !options.several {
        ui.notice(&format!("run {id}"))?;
    }
    let lift = ui.command(&["resume", id.as_str()]);
    let retry = ui.command(&["retry", id.as_str()]);
    let work = ui.command(&["work", id.as_str()]);
    let awaited = AwaitedRuns::new(ui.command(&["show"]));
    let named = options.several.then(|| id.clone());
    let shown = SessionScreen::new(runner, &run, Screen::new(ui, options.output, named), options.live.as_ref());
    let mut session = Session {
        runner,
        run,
        shown,
        cancelled_by: None,
        interrupts,
        is_asking: false,
        has_person,
        lift,
        retry,
        work,
        awaited,
        options,
    };
    let ending = session.drive().await;
    let works = !matches!(options.role, Role::Watches { .. });
    let left = match works && session.run.status().is_over() {
        true => session.end_children().await,
        false => Ok(Vec::new()),
    };
    session.shown.screen.finish()?;
    drop(session);
    Session::report_left(left, ui)?;
    Ok((id, ending?))
}

/// What ends a wait of a session.
pub(super) enum Next<T> {
    Settled(Settled),
    Interrupt(Interrupt),
    Ready(T),
}

/// Outcome of an answer.
pub(super) enum Answered {
    /// The run continues, or no longer waits for this.
    Sent,
    /// The run refused it.
    Refused,
    /// The session is over.
    Ends(Ending),
}

/// A session at the terminal. How it answers is in `answering.rs`.
pub(super) struct Session<'a> {
    pub(super) runner: &'a Runner,
    pub(super) run: RunHandle<Value>,
    pub(super) shown: SessionScreen<'a>,
    /// Set once this session has cancelled the run.
    cancelled_by: Option<Interrupt>,
    interrupts: UnboundedReceiver<Interrupt>,
    /// Whether a question has the terminal, so that nothing is painted.
    pub(super) is_asking: bool,
    pub(super) has_person: bool,
    /// The commands that lift a pause, and that retry a parked run.
    lift: String,
    retry: String,
    /// The command that continues a run without a worker.
    work: String,
    pub(super) awaited: AwaitedRuns,
    pub(super) options: &'a SessionOptions<'a>,
}

impl Session<'_> {
    async fn drive(&mut self) -> Result<Ending, Failure> {
        let mut refused = None;
        loop {
            let settled = match refused.take() {
                Some(pending) => Settled::Waiting(pending),
                None => match self.settle().await? {
                    ControlFlow::Continue(settled) => settled,
                    ControlFlow::Break(ending) => return Ok(ending),
                },
            };
            match settled {
                Settled::Completed(result) => return Ok(Ending::Completed(result)),
                Settled::Failed(_) => return Ok(Ending::Failed),
                Settled::Cancelled => {
                    return Ok(match self.cancelled_by {
                        Some(Interrupt::Person) => Ending::Interrupted,
                        Some(Interrupt::System) | None => Ending::Cancelled,
                    });
                }
                Settled::Waiting(_) | Settled::Paused
                    if self.options.role == (Role::Watches { until_waiting: false }) => {}
                // The end of each of those runs is an update of this one.
                Settled::Waiting(pending) if pending.iter().all(|pending| pending.kind.is_for_run()) => {}
                Settled::Waiting(pending) => match self.answer(&pending).await? {
                    Answered::Sent => {}
                    Answered::Refused if self.waits(&pending).await? => refused = Some(pending),
                    Answered::Refused => {}
                    Answered::Ends(ending) => return Ok(ending),
                },
                Settled::Paused if self.options.lasts && !self.has_person => return Ok(Ending::Left(Vec::new())),
                // Another process paused it.
                Settled::Paused if self.options.lasts => {
                    let lift = match self.run.state().parked {
                        Some(failure) => format!("parked: {failure}; retry it with: {}", self.retry),
                        None => format!("paused; lift the pause with: {}", self.lift),
                    };
                    self.shown.screen.say(&lift)?;
                }
                Settled::Paused => _ = self.signal("", SignalKind::Resume).await?,
                Settled::Stopped(reason) if self.options.lasts => {
                    return Err(stays(Failure::environment(format!("the run stopped: {reason}"))));
                }
                Settled::Stopped(reason) => return Err(Failure::environment(format!("the run stopped: {reason}"))),
            }
        }
    }

    /// Shows the run until it settles, an interrupt comes, or `other` is ready. While a question has the terminal, nothing is
    /// shown.
    pub(super) async fn next<T>(&mut self, other: impl Future<Output = T>) -> Result<Next<T>, Failure> {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                biased;
                Some(interrupt) = self.interrupts.recv() => return Ok(Next::Interrupt(interrupt)),
                ready = &mut other => return Ok(Next::Ready(ready)),
                update = self.shown.next(), if !self.is_asking => {
                    if let Some(settled) = self.shown.show(update).await? {
                        return Ok(Next::Settled(settled));
                    }
                }
            }
        }
    }

    /// Shows the run until it settles, or an interrupt ends the session.
    async fn settle(&mut self) -> Result<ControlFlow<Ending, Settled>, Failure> {
        let watches = matches!(self.options.role, Role::Watches { .. });
        let waits = AwaitedRuns::are_all_of(&self.run.pending());
        let mut checks = tokio::time::interval(WORKER_CHECK);
        checks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut unclaimed = 0_u32;
        loop {
            let check = async {
                match watches || waits {
                    true => checks.tick().await,
                    false => std::future::pending().await,
                }
            };
            match self.next(check).await? {
                Next::Settled(settled) => return Ok(ControlFlow::Continue(settled)),
                Next::Interrupt(interrupt) => {
                    if let Some(ending) = self.interrupted(interrupt).await? {
                        return Ok(ControlFlow::Break(ending));
                    }
                }
                Next::Ready(_) => {
                    if waits && self.is_left_to_others().await? {
                        return Ok(ControlFlow::Break(Ending::Left(self.run.pending())));
                    }
                    // A store that cannot be read now says nothing about the worker.
                    let is_unclaimed = self.is_unclaimed().await.unwrap_or_default();
                    unclaimed = if is_unclaimed { unclaimed.saturating_add(1) } else { 0 };
                    if unclaimed == 2 {
                        self.shown.screen.say(&no_worker(&self.work))?;
                    }
                }
            }
        }
    }

    /// Releases or cancels the run, and returns how the session ends if it does.
    pub(super) async fn interrupted(&mut self, interrupt: Interrupt) -> Result<Option<Ending>, Failure> {
        // Only Ctrl-C cancels a run, except for one that would end with the process anyway.
        if self.options.role != Role::Runs || (interrupt == Interrupt::System && self.options.lasts) {
            return self.release(interrupt).await.map(Some);
        }
        if self.cancelled_by.is_some() {
            return Ok(Some(Ending::Interrupted));
        }
        self.cancel(interrupt).await?;
        Ok(None)
    }

    /// Returns whether the run has work and no worker.
    async fn is_unclaimed(&self) -> Result<bool, StoreError> {
        let client = self.runner.client();
        let row = client.store().run(self.run.id()).await?;
        Ok(row.has_work(SystemClock.now()) && client.worker(&row).await?.is_none())
    }

    /// Releases the run after its effects in flight, which are shown. A second interrupt ends the session at once.
    async fn release(&mut self, interrupt: Interrupt) -> Result<Ending, Failure> {
        if matches!(self.options.role, Role::Runs | Role::Works) {
            if self.run.status() == Status::Running {
                self.shown.screen.say(AT_ONCE)?;
            }
            let runner = self.runner.clone();
            let mut released = pin!(async { _ = runner.release().await });
            loop {
                match self.next(released.as_mut()).await? {
                    Next::Ready(()) => break,
                    Next::Interrupt(_) => return Ok(Ending::Released(interrupt)),
                    Next::Settled(_) => {}
                }
            }
            self.shown.catch_up().await?;
        }
        Ok(Ending::Released(interrupt))
    }

    pub(super) async fn cancel(&mut self, by: Interrupt) -> Result<(), Failure> {
        self.cancelled_by = Some(by);
        let reason = match by {
            Interrupt::Person => "Ctrl-C",
            Interrupt::System => "the process was asked to end",
        };
        let kind = SignalKind::Cancel { reason: Some(reason.to_owned()) };
        match self.run.signal(kind, self.options.actor.clone()).await {
            // A refusal means that the run has ended.
            Ok(_) | Err(SignalError::Refused(_)) => Ok(()),
            Err(error) => Err(self.unsent(error)),
        }
    }

    /// The run did not get a signal.
    pub(super) fn unsent(&self, error: SignalError) -> Failure {
        let failure = Failure::from(error);
        if self.options.lasts { stays(failure) } else { failure }
    }
}

/// Adds that a run outlives the failure of its session.
fn stays(failure: Failure) -> Failure {
    failure.hint("its log is complete up to that point; `work` continues the run")
}
