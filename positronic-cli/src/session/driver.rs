//! One run at the command line: its events to the screen, its questions to whoever answers, Ctrl-C to the run.

use std::pin::pin;
use std::time::Duration;

use crossterm::event::Event as Typed;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use positronic_core::record::{Actor, Decision, Event, EventKind, Path, Pending, RunId, Seq, SignalKind, Status};
use positronic_core::runner::{Clock as _, RunHandle, RunUpdate, Runner, Settled, SignalError, SystemClock};
use positronic_core::store::StoreError;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::MissedTickBehavior;

use crate::app::failure::Failure;
use crate::app::models::CassetteSession;
use crate::app::ui::{Ui, size};
use crate::render::words::no_worker;
use crate::session::answers::{Answer, Keyboard, Question, example_lines, from_cassette};
use crate::session::interrupts::{Interrupt, interrupts};
use crate::session::pending::{named, question};
use crate::session::screen::Screen;

/// How a run ended, or was left, for the command.
#[derive(Debug)]
pub(crate) enum Ending {
    Completed(Value),
    Failed,
    Cancelled,
    Interrupted,
    /// It waits for these, or is paused, and goes on later.
    Left(Vec<Pending>),
    /// The process was told to end, and the run stays as it is.
    LetGo(Interrupt),
}

/// What is said where a worker is told to let go while something is in flight.
pub(crate) const AT_ONCE: &str =
    "releasing the run; what is in flight has eight seconds to end, and Ctrl-C again ends at once";
/// How often the screen is repainted.
const TICK: Duration = Duration::from_millis(80);
/// How often it is looked whether somebody has a run in hand that is only watched. A run that is let go of is taken up again
/// within a second where somebody serves it, so two looks in a row have to find nobody.
const LOOK: Duration = Duration::from_secs(2);
/// How long the last events may take to the screen.
const PATIENCE: Duration = Duration::from_secs(5);

/// How somebody sits with a run.
pub(crate) struct SessionOptions<'a> {
    pub(crate) tape: &'a CassetteSession,
    /// Whether a cassette that is played answers for people, too.
    pub(crate) played: bool,
    pub(crate) actor: &'a Actor,
    /// Whether the run outlives this process, so that an answer can come later.
    pub(crate) lasts: bool,
    pub(crate) role: Role,
    pub(crate) plain: bool,
    pub(crate) json: bool,
    /// Whether it is one of several runs: then its events name it, and nothing else does.
    pub(crate) several: bool,
}

/// What somebody who sits with a run is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// To run it: Ctrl-C cancels it, and the system's request to end lets go of it.
    Runs,
    /// To continue it: Ctrl-C releases it, once the effects in flight have ended or the grace period is over.
    Works,
    /// To look: nobody is asked, and Ctrl-C looks away.
    Watches {
        /// Whether to look away when the run waits, too.
        until_waiting: bool,
    },
}

/// Shows a run that `begin` starts or goes on with, from its first event to its end, and asks whoever answers. Returns
/// its id, too.
pub(crate) async fn session(
    runner: &Runner,
    begin: impl AsyncFnOnce(Runner) -> Result<RunHandle<Value>, Failure>,
    sitting: &SessionOptions<'_>,
    ui: &mut Ui,
) -> Result<(RunId, Ending), Failure> {
    let terminal = ui.settings.stdin_is_terminal && ui.settings.stderr_is_terminal && !ui.settings.dumb;
    let person = terminal && !matches!(sitting.role, Role::Watches { .. });
    let interrupts = interrupts();
    let run = begin(runner.clone()).await?;
    let updates = run.follow(Seq(0));
    let id = run.id().clone();
    if sitting.lasts && !sitting.several {
        ui.notice(&format!("run {id}"))?;
    }
    let lift = ui.command(&["resume", id.as_str()]);
    let alone = no_worker(&ui.command(&["work", id.as_str()]));
    let named = sitting.several.then(|| id.clone());
    let screen = Screen::new(ui, sitting.plain, sitting.json, named);
    let mut session =
        Session { runner, run, updates, screen, seen: Seq(0), stopped: None, interrupts, person, lift, alone, sitting };
    let ending = session.work().await;
    session.screen.finish()?;
    Ok((id, ending?))
}

/// How it ended to watch a run.
enum Watched {
    /// It has ended, or waits.
    Settled(Settled),
    /// The process was told to end, and the run stays.
    LetGo(Interrupt),
    /// A person insists that it ends at once.
    Insisted,
}

/// What came of a question.
enum Asked {
    Answered(Answer),
    /// The process was told to end.
    Told(Interrupt),
    /// Somebody answered elsewhere, or the run waits no longer for another reason.
    Settled,
}

/// What came of the answer to a run that waits.
enum Answered {
    /// The run has something to do, or no longer waits for this.
    Sent,
    /// The run has refused it, and still waits.
    Refused,
    /// The session is over.
    Ends(Ending),
}

/// How a call that waited came to wait no longer, from the events since.
pub(crate) fn settled<'a>(log: impl Iterator<Item = &'a Event>, call: &Path) -> String {
    let by = |actor: &Actor| {
        let by = actor.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let over = actor.channel.as_ref().map(|channel| format!(" over {channel}")).unwrap_or_default();
        format!("{by}{over}")
    };
    let mut found =
        log.filter(|event| event.path == *call || event.path.is_root()).filter_map(|event| match &event.kind {
            EventKind::LoopApprovalDecided { decision: Decision::Approved, actor, .. } => {
                Some(format!("it was approved{}", by(actor)))
            }
            EventKind::LoopApprovalDecided { decision: Decision::Rejected, actor, .. } => {
                Some(format!("it was rejected{}", by(actor)))
            }
            EventKind::BudgetDecided { decision: Decision::Approved, actor, .. } => {
                Some(format!("it was granted more{}", by(actor)))
            }
            EventKind::BudgetDecided { decision: Decision::Rejected, actor, .. } => {
                Some(format!("it was refused more{}", by(actor)))
            }
            EventKind::LoopApprovalExpired {} | EventKind::BudgetExpired {} => {
                Some("nobody decided in time".to_owned())
            }
            EventKind::LoopResume { actor, .. } => Some(format!("it was answered{}", by(actor))),
            EventKind::BrainCancelled { actor, .. } => Some(format!("the run was cancelled{}", by(actor))),
            _ => None,
        });
    found.next().unwrap_or_else(|| "it was settled elsewhere".to_owned())
}

struct Session<'a> {
    runner: &'a Runner,
    run: RunHandle<Value>,
    updates: BoxStream<'static, Result<RunUpdate, StoreError>>,
    screen: Screen<'a>,
    /// The number of the next event for the screen.
    seen: Seq,
    /// Set once the run was told to end from here.
    stopped: Option<Interrupt>,
    interrupts: UnboundedReceiver<Interrupt>,
    person: bool,
    /// The command that lifts a pause.
    lift: String,
    /// What is said where nobody has a run in hand that is only watched.
    alone: String,
    sitting: &'a SessionOptions<'a>,
}

impl Session<'_> {
    async fn work(&mut self) -> Result<Ending, Failure> {
        let mut again = None;
        loop {
            let settled = match again.take() {
                Some(settled) => settled,
                None => match self.watch().await? {
                    Watched::Settled(settled) => settled,
                    Watched::LetGo(told) => return self.let_go(told).await,
                    Watched::Insisted => return Ok(Ending::Interrupted),
                },
            };
            match settled {
                Settled::Completed(result) => return Ok(Ending::Completed(result)),
                Settled::Failed(_) => return Ok(Ending::Failed),
                Settled::Cancelled => {
                    return Ok(match self.stopped {
                        Some(Interrupt::Person) => Ending::Interrupted,
                        Some(Interrupt::System) | None => Ending::Cancelled,
                    });
                }
                Settled::Waiting(_) | Settled::Paused
                    if self.sitting.role == (Role::Watches { until_waiting: false }) =>
                {
                    if let Some(told) = self.idle().await? {
                        return self.let_go(told).await;
                    }
                }
                Settled::Waiting(pending) => match self.answer(&pending).await? {
                    Answered::Sent => {}
                    Answered::Refused => again = Some(Settled::Waiting(pending)),
                    Answered::Ends(ending) => return Ok(ending),
                },
                Settled::Paused if self.sitting.lasts && !self.person => return Ok(Ending::Left(Vec::new())),
                // Somebody paused it elsewhere, and lets it go on there.
                Settled::Paused if self.sitting.lasts => {
                    let lift = format!("paused; it goes on when somebody lifts the pause with: {}", self.lift);
                    self.screen.say(&lift)?;
                    if let Some(told) = self.idle().await? {
                        return self.let_go(told).await;
                    }
                }
                Settled::Paused => _ = self.signal("", SignalKind::Resume).await?,
                Settled::Stopped(reason) if self.sitting.lasts => {
                    let message = format!("the run had to stop: {reason}");
                    let hints = vec!["its log holds everything up to then; `work` goes on with it".to_owned()];
                    return Err(Failure::Store { message, hints });
                }
                Settled::Stopped(reason) => return Err(Failure::Run { message: reason.to_string() }),
            }
        }
    }

    /// Says whether whoever tells the process to end means that the run stays: only Ctrl-C ends a run, and one that would
    /// end with the process anyway.
    fn lets_go(&self, told: Interrupt) -> bool {
        self.sitting.role != Role::Runs || (told == Interrupt::System && self.sitting.lasts)
    }

    /// Shows what happens until the run has ended or waits, or the process is told to end.
    async fn watch(&mut self) -> Result<Watched, Failure> {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut found_alone = 0_u32;
        loop {
            tokio::select! {
                Some(update) = self.updates.next() => {
                    if let Some(settled) = self.show(update?)? {
                        self.screen.tick(SystemClock.now())?;
                        return Ok(Watched::Settled(settled));
                    }
                }
                _ = ticks.tick() => self.screen.tick(SystemClock.now())?,
                _ = looks.tick(), if matches!(self.sitting.role, Role::Watches { .. }) => {
                    found_alone = if self.is_alone().await? { found_alone.saturating_add(1) } else { 0 };
                    if found_alone == 2 {
                        self.screen.say(&self.alone)?;
                    }
                }
                Some(told) = self.interrupts.recv() => {
                    if self.lets_go(told) {
                        return Ok(Watched::LetGo(told));
                    }
                    if self.stopped.is_some() {
                        return Ok(Watched::Insisted);
                    }
                    self.stop(told).await?;
                }
            }
        }
    }

    /// Says whether there is work in the run and nobody has it in hand.
    async fn is_alone(&self) -> Result<bool, Failure> {
        let client = self.runner.client();
        let row = client.store().run(self.run.id()).await?;
        Ok(row.has_work(SystemClock.now()) && client.worker(&row).await?.is_none())
    }

    /// Lets go of the run: whoever has worked on it begins nothing new, shows how what is in flight ends, and releases
    /// it. A second request to end is followed at once.
    async fn let_go(&mut self, told: Interrupt) -> Result<Ending, Failure> {
        if matches!(self.sitting.role, Role::Runs | Role::Works) {
            if self.run.status() == Status::Running {
                self.screen.say(AT_ONCE)?;
            }
            let runner = self.runner.clone();
            let mut released = pin!(runner.release());
            let mut ticks = tokio::time::interval(TICK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                tokio::select! {
                    biased;
                    Some(_) = self.interrupts.recv() => return Ok(Ending::LetGo(told)),
                    () = &mut released => break,
                    Some(update) = self.updates.next() => { self.show(update?)?; }
                    _ = ticks.tick() => self.screen.tick(SystemClock.now())?,
                }
            }
            self.catch_up().await?;
        }
        Ok(Ending::LetGo(told))
    }

    /// Waits until something happens in the run, or the process is told to let go of it.
    async fn idle(&mut self) -> Result<Option<Interrupt>, Failure> {
        let before = self.seen;
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while self.seen == before {
            tokio::select! {
                Some(update) = self.updates.next() => { self.show(update?)?; }
                _ = ticks.tick() => self.screen.tick(SystemClock.now())?,
                Some(told) = self.interrupts.recv() => {
                    if self.lets_go(told) {
                        return Ok(Some(told));
                    }
                    self.stop(told).await?;
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Shows an update, and returns how the run has settled where that is what it says.
    fn show(&mut self, update: RunUpdate) -> Result<Option<Settled>, Failure> {
        match update {
            RunUpdate::Event(event) => {
                self.seen = event.seq.next();
                self.screen.event(&event)?;
            }
            RunUpdate::Delta(delta) => self.screen.delta(&delta),
            RunUpdate::Settled(settled) => return Ok(Some(settled)),
            _ => {}
        }
        Ok(None)
    }

    /// Shows everything that has happened so far.
    async fn catch_up(&mut self) -> Result<(), Failure> {
        let next = self.run.state().next;
        while self.seen < next {
            match tokio::time::timeout(PATIENCE, self.updates.next()).await {
                Ok(Some(update)) => _ = self.show(update?)?,
                Ok(None) | Err(_) => break,
            }
        }
        self.screen.tick(SystemClock.now())?;
        Ok(())
    }

    /// Answers one of the things that are pending, or leaves all of them.
    async fn answer(&mut self, pending: &[Pending]) -> Result<Answered, Failure> {
        if let CassetteSession::Plays(cassette) = self.sitting.tape
            && self.sitting.played
            && let Some(kind) = from_cassette(cassette, pending)
        {
            let actor =
                Actor { by: Some("the cassette".to_owned()), channel: Some("cassette".to_owned()), trace: None };
            return self.send(kind, actor).await;
        }
        let left = || Answered::Ends(Ending::Left(pending.to_vec()));
        let Some(first) = pending.first().filter(|_| self.person).cloned() else {
            if self.sitting.lasts {
                return Ok(left());
            }
            return Err(Failure::Unanswered {
                waiting: pending.iter().map(|pending| self.sentence(pending)).collect(),
                lines: example_lines(pending),
            });
        };
        match self.asked(&first).await? {
            Asked::Answered(Answer::Signal(kind)) => return self.signal(first.call.as_str(), kind).await,
            Asked::Answered(Answer::Later) => return Ok(left()),
            Asked::Answered(Answer::Stop) => self.stop(Interrupt::Person).await?,
            // At a question it decides nothing and loses nothing; a run that would end with this process cannot be left.
            Asked::Answered(Answer::Interrupted) | Asked::Told(Interrupt::Person) if self.sitting.lasts => {
                return Ok(left());
            }
            Asked::Answered(Answer::Interrupted) => self.stop(Interrupt::Person).await?,
            Asked::Told(told) if self.lets_go(told) => return self.let_go(told).await.map(Answered::Ends),
            Asked::Told(told) => self.stop(told).await?,
            Asked::Settled => {}
        }
        Ok(Answered::Sent)
    }

    /// Asks the person, until there is an answer, the process is told to end, or the question is settled elsewhere.
    async fn asked(&mut self, first: &Pending) -> Result<Asked, Failure> {
        let (place, lasts) = (self.screen.trail(&first.call), self.sitting.lasts);
        let mut question = Question::new(first, place, self.screen.currency(), lasts, size());
        let mut keyboard = Keyboard::open()?;
        let asked = loop {
            self.screen.ask(&mut question)?;
            let changed = self.run.changed();
            if !self.waits_for(first) {
                break Asked::Settled;
            }
            tokio::select! {
                biased;
                Some(told) = self.interrupts.recv() => break Asked::Told(told),
                () = changed => {}
                typed = keyboard.next() => match typed? {
                    Typed::Key(key) => {
                        if let Some(answer) = question.key(key) {
                            break Asked::Answered(answer);
                        }
                    }
                    Typed::Paste(text) => question.paste(&text),
                    _ => {}
                },
            }
        };
        let stays = match &asked {
            Asked::Answered(Answer::Interrupted) | Asked::Told(_) | Asked::Settled => Vec::new(),
            Asked::Answered(_) => question.rest(),
        };
        self.screen.asked(stays)?;
        drop(keyboard);
        if matches!(asked, Asked::Settled) {
            let log = self.run.events(first.since).await?;
            let what = settled(log.iter().map(|event| &**event), &first.call);
            self.screen.say(&format!("{} waits no longer: {what}", named(first)))?;
        }
        Ok(asked)
    }

    fn waits_for(&self, question: &Pending) -> bool {
        self.run.pending().iter().any(|pending| pending.call == question.call && pending.since == question.since)
    }

    fn sentence(&self, pending: &Pending) -> String {
        let place = match pending.call.is_root() {
            true => named(pending),
            false => self.screen.trail(&pending.call),
        };
        format!("{place} {}", question(pending, self.screen.currency()))
    }

    async fn signal(&mut self, after: &str, kind: SignalKind) -> Result<Answered, Failure> {
        let answered = self.send(kind.clone(), self.sitting.actor.clone()).await?;
        if let (CassetteSession::Records(cassette), Answered::Sent) = (self.sitting.tape, &answered) {
            cassette.record_signal(after, &kind);
        }
        Ok(answered)
    }

    /// Sends a signal. A refusal is shown to the person, who is asked again.
    async fn send(&mut self, kind: SignalKind, actor: Actor) -> Result<Answered, Failure> {
        match self.run.signal(kind, actor).await {
            Ok(_) => Ok(Answered::Sent),
            Err(SignalError::Refused(refusal)) if self.person => {
                self.screen.say(&refusal.to_string())?;
                Ok(Answered::Refused)
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
        match self.run.signal(kind, self.sitting.actor.clone()).await {
            // A run that has ended meanwhile needs no cancelling.
            Ok(_) | Err(SignalError::Refused(_)) => Ok(()),
            Err(error) => Err(Failure::Run { message: error.to_string() }),
        }
    }
}
