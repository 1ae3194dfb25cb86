//! One run at the command line: its events to the screen, its questions to whoever answers, Ctrl-C to the run.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use positronic_core::plan::Plan;
use positronic_core::record::{Actor, Seq, SignalKind, Start};
use positronic_core::record::{Pending, PendingKind};
use positronic_core::runner::{Clock as _, Run, Runner, Settled, SignalError, SystemClock};
use positronic_core::sink::{ChannelSink, Live};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::MissedTickBehavior;

use crate::answers::{Answer, ask, example_lines, from_cassette, prepare};
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::interrupts::{Interrupt, interrupts};
use crate::models::Tape;
use crate::screen::Screen;
use crate::ui::Ui;

/// How a run ended, for the command.
#[derive(Debug)]
pub(crate) enum Ending {
    Completed(Value),
    Failed,
    Cancelled,
    Interrupted,
}

/// How often the screen is repainted.
const TICK: Duration = Duration::from_millis(80);
/// How long the last events may take to the screen.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many events and pieces may be on their way to the screen.
const ROOM: usize = 4096;

/// Runs a brain to its end.
#[expect(clippy::too_many_arguments, reason = "a run needs all of these, and they have no more in common than that")]
pub(crate) async fn session(
    runner: &Runner,
    plan: Arc<Plan>,
    options: Value,
    start: Start,
    tape: &Tape,
    actor: &Actor,
    args: &RunArgs,
    ui: &mut Ui,
) -> Result<Ending, Failure> {
    let person = ui.settings.stdin_is_terminal && ui.settings.stderr_is_terminal && !ui.settings.dumb;
    prepare(ui.colour());
    let interrupts = interrupts();
    let (sink, stream) = ChannelSink::new(ROOM);
    let screen = Screen::new(ui, args.plain, args.json);
    let run = runner.clone().sink(sink).start_plan(plan, options, start).await;
    let run = run.map_err(|error| Failure::Run { message: error.to_string() })?;
    let mut session = Session { run, stream, screen, seen: Seq(0), stopped: None, interrupts, person, tape, actor };
    let ending = session.work().await;
    session.screen.finish()?;
    ending
}

struct Session<'a, S> {
    run: Run<Value>,
    stream: S,
    screen: Screen<'a>,
    /// The number of the next event for the screen.
    seen: Seq,
    /// Set once the run was told to end from here.
    stopped: Option<Interrupt>,
    interrupts: UnboundedReceiver<Interrupt>,
    person: bool,
    tape: &'a Tape,
    actor: &'a Actor,
}

impl<S: Stream<Item = Live> + Unpin> Session<'_, S> {
    async fn work(&mut self) -> Result<Ending, Failure> {
        loop {
            let settled = self.watch().await?;
            self.catch_up().await?;
            match settled {
                None => return Ok(Ending::Interrupted),
                Some(Settled::Completed(result)) => return Ok(Ending::Completed(result)),
                Some(Settled::Failed(_)) => return Ok(Ending::Failed),
                Some(Settled::Cancelled) => {
                    return Ok(match self.stopped {
                        Some(Interrupt::Person) => Ending::Interrupted,
                        Some(Interrupt::System) | None => Ending::Cancelled,
                    });
                }
                Some(Settled::Waiting(pending)) => self.answer(pending).await?,
                Some(Settled::Paused) => self.signal("", SignalKind::Resume).await?,
                Some(Settled::Stopped(message)) => return Err(Failure::Run { message }),
            }
        }
    }

    /// Shows what happens until the run has ended or waits; nothing where a person insists that it stops.
    async fn watch(&mut self) -> Result<Option<Settled>, Failure> {
        let run = self.run.clone();
        let mut settled = pin!(run.settled());
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                settled = &mut settled => return Ok(Some(settled)),
                Some(live) = self.stream.next() => self.show(live)?,
                _ = ticks.tick() => self.screen.tick(SystemClock.now())?,
                Some(told) = self.interrupts.recv() => {
                    if self.stopped.is_some() {
                        return Ok(None);
                    }
                    self.stop(told).await?;
                }
            }
        }
    }

    fn show(&mut self, live: Live) -> Result<(), Failure> {
        match live {
            Live::Event(_, event) => {
                self.seen = event.seq.next();
                self.screen.event(&event)?;
            }
            Live::Delta(_, delta) => self.screen.delta(&delta),
        }
        Ok(())
    }

    /// Shows everything that has happened so far.
    async fn catch_up(&mut self) -> Result<(), Failure> {
        let next = self.run.state().next;
        while self.seen < next {
            match tokio::time::timeout(PATIENCE, self.stream.next()).await {
                Ok(Some(live)) => self.show(live)?,
                Ok(None) | Err(_) => break,
            }
        }
        self.screen.tick(SystemClock.now())?;
        Ok(())
    }

    /// Answers one of the things that are pending.
    async fn answer(&mut self, pending: Vec<Pending>) -> Result<(), Failure> {
        if let Tape::Plays(cassette) = self.tape
            && let Some(kind) = from_cassette(cassette, &pending)
        {
            let actor =
                Actor { by: Some("the cassette".to_owned()), channel: Some("cassette".to_owned()), trace: None };
            self.send(kind, actor).await?;
            return Ok(());
        }
        let Some(first) = pending.first().filter(|_| self.person).cloned() else {
            return Err(Failure::Unanswered {
                waiting: pending.iter().map(|pending| self.sentence(pending)).collect(),
                lines: example_lines(&pending),
            });
        };
        self.screen.suspend()?;
        let (place, call) = (self.screen.trail(&first.call), first.call.clone());
        // The question blocks its thread; nothing happens in the run meanwhile, but that a time may be up.
        let answer = tokio::task::spawn_blocking(move || ask(&first, &place)).await;
        let answer = answer.map_err(|error| Failure::Run { message: error.to_string() })??;
        match answer {
            Answer::Signal(kind) => self.signal(call.as_str(), kind).await,
            Answer::Stop => self.stop(Interrupt::Person).await,
        }
    }

    fn sentence(&self, pending: &Pending) -> String {
        let place = self.screen.trail(&pending.call);
        match &pending.kind {
            PendingKind::Approval { gate, .. } => format!("{place} needs approval: {}", gate.reason),
            PendingKind::Answer { waits } => {
                let waits: Vec<String> = waits
                    .iter()
                    .map(|wait| format!("{} {}", wait.webhook, wait.identifier).trim().to_owned())
                    .collect();
                format!("{place} waits for {}", waits.join(" or "))
            }
        }
    }

    async fn signal(&mut self, after: &str, kind: SignalKind) -> Result<(), Failure> {
        let sent = self.send(kind.clone(), self.actor.clone()).await?;
        if let Tape::Records(cassette) = self.tape
            && sent
        {
            cassette.record_signal(after, &kind);
        }
        Ok(())
    }

    /// Sends a signal, and says whether it was accepted; a refusal is told, and the question comes again.
    async fn send(&mut self, kind: SignalKind, actor: Actor) -> Result<bool, Failure> {
        match self.run.signal(kind, actor).await {
            Ok(_) => Ok(true),
            Err(SignalError::Refused(refusal)) if self.person => {
                self.screen.say(&refusal.to_string())?;
                Ok(false)
            }
            Err(error) => Err(Failure::Run { message: error.to_string() }),
        }
    }

    async fn stop(&mut self, how: Interrupt) -> Result<(), Failure> {
        self.stopped = Some(how);
        let reason = match how {
            Interrupt::Person => "Ctrl-C",
            Interrupt::System => "the process was told to end",
        };
        let kind = SignalKind::Cancel { reason: Some(reason.to_owned()) };
        match self.run.signal(kind, self.actor.clone()).await {
            // A run that has ended meanwhile needs no cancelling.
            Ok(_) | Err(SignalError::Refused(_)) => Ok(()),
            Err(error) => Err(Failure::Run { message: error.to_string() }),
        }
    }
}
