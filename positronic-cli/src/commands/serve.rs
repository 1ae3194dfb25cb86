//! `positronic work` without a run: does whatever work there is in all runs, and fires the triggers that are due, until it
//! is told to end. Then it takes no more, waits for what is in flight, and releases its runs, so that another worker goes on with them at once.

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{Stream, StreamExt as _};
use positronic_core::record::{ClaimRefusal, Event, RunId, RunSummary, Seq, Timer};
use positronic_core::runner::{Due, Firing, ResumeError, RunHandle, Runner, Settled};
use positronic_core::sink::{ChannelSink, Live};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::work::{models, refused, wind};
use crate::cli::WorkArgs;
use crate::display::{Plain, Style};
use crate::failure::{Exit, Failure};
use crate::find::Short;
use crate::interrupts::{Interrupt, interrupts};
use crate::kept::Kept;
use crate::models::{Models, Tape};
use crate::project::Project;
use crate::rewind::{goes_on, rewind};
use crate::session::AT_ONCE;
use crate::ui::Ui;

/// How long a run that has settled may take to show its last events.
const PATIENCE: Duration = Duration::from_secs(1);
/// Why no trigger fires where a cassette is played.
pub(crate) const PLAYED: &str =
    "no model is configured, and the recording has no answer left for what the trigger starts";
/// How many events may be on their way to the screen.
const ROOM: usize = 4096;

pub(super) fn serve(project: &Project, args: &WorkArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = Kept::open(ui)?;
    if !args.once {
        ui.notice(&format!("serving the runs in {}; Ctrl-C lets go of them, and they stay", kept.place))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (sink, stream) = ChannelSink::new(ROOM);
    let (done, ended) = mpsc::unbounded_channel();
    let server = Server::new(project, args, &kept, sink, done);
    let served = runtime.block_on(server.work(stream, ended, ui));
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

struct Server<'a> {
    project: &'a Project,
    args: &'a WorkArgs,
    kept: &'a Kept,
    sink: ChannelSink,
    /// Tells what has become of a run that was busy.
    done: mpsc::UnboundedSender<Done>,
    /// What takes up or works on the runs that do something just now.
    busy: HashMap<RunId, Runner>,
    /// What has worked on the runs that only wait: it may still have them in hand.
    held: HashMap<RunId, Runner>,
    /// What works on the runs of a brain, by its title; a cassette plays for one run alone.
    runners: HashMap<String, Runner>,
    /// How far each run is told, and under which name.
    told: HashMap<RunId, Told>,
}

/// What has become of a run that was busy, and how it was before.
struct Done {
    row: RunSummary,
    became: Became,
}

enum Became {
    Over,
    Waits,
    /// Its worker had to stop, and this was to be its next event.
    Stopped(Seq),
    /// It is not gone on with here, unless another worker has it, or all are let go of.
    Refused(ResumeError),
}

struct Told {
    name: String,
    lines: Plain<io::Sink>,
    next: Seq,
}

impl<'a> Server<'a> {
    fn new(
        project: &'a Project,
        args: &'a WorkArgs,
        kept: &'a Kept,
        sink: ChannelSink,
        done: mpsc::UnboundedSender<Done>,
    ) -> Self {
        let (busy, held, runners, told) = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
        Self { project, args, kept, sink, done, busy, held, runners, told }
    }

    async fn work(
        mut self,
        mut stream: impl Stream<Item = Live> + Unpin,
        mut ended: mpsc::UnboundedReceiver<Done>,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        let client = self.kept.client();
        let (mut due, mut firing) = (client.due(), client.firing());
        let mut interrupts = interrupts();
        loop {
            // Each gets its turn: a run that says much keeps nobody from ending, and no other run waiting.
            tokio::select! {
                Some(_) = interrupts.recv() => return self.leave(stream, ended, interrupts, ui).await,
                Some(live) = stream.next() => {
                    self.show(live, ui).await?;
                    continue;
                }
                Some(done) = ended.recv() => {
                    self.done(&done);
                    match done {
                        Done { row, became: Became::Over | Became::Waits } => due.again(&row.run),
                        // What was sent to it before it stopped is no reason to try again at once.
                        Done { row, became: Became::Stopped(next) } => due.postpone(&RunSummary { next, ..row }),
                        Done { row, became: Became::Refused(error) } => self.refused(&row, &error, &mut due, ui).await?,
                    }
                }
                () = due.wait() => {}
            }
            match firing.due().await {
                Ok(timers) => {
                    for timer in timers {
                        self.fire(&timer, &mut firing, ui).await?;
                    }
                }
                Err(error) if self.args.once => return Err(error.into()),
                Err(error) => ui.notice(&format!("the triggers cannot be listed, which is tried again: {error}"))?,
            }
            match due.rows(|run| self.busy.contains_key(run)).await {
                Ok(rows) => {
                    for row in rows {
                        self.take(row, &mut due, ui).await?;
                    }
                }
                Err(error) if self.args.once => return Err(error.into()),
                Err(error) => ui.notice(&format!("the runs cannot be listed, which is tried again: {error}"))?,
            }
            if self.args.once && self.busy.is_empty() {
                while let Some(Some(live)) = futures::FutureExt::now_or_never(stream.next()) {
                    self.show(live, ui).await?;
                }
                return Ok(Exit::Done);
            }
        }
    }

    fn done(&mut self, Done { row, became }: &Done) {
        let runner = self.busy.remove(&row.run);
        // A run that waits costs nothing: whatever is to be told later is folded anew.
        self.told.remove(&row.run);
        match became {
            Became::Over => _ = self.held.remove(&row.run),
            Became::Waits | Became::Stopped(_) => self.held.extend(runner.map(|runner| (row.run.clone(), runner))),
            Became::Refused(_) => {}
        }
    }

    /// Takes no more work, lets what is in flight run to its end, and releases every run; a second request to end is
    /// followed at once.
    async fn leave(
        mut self,
        mut stream: impl Stream<Item = Live> + Unpin,
        mut ended: mpsc::UnboundedReceiver<Done>,
        mut interrupts: mpsc::UnboundedReceiver<Interrupt>,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        if !self.busy.is_empty() {
            ui.notice(AT_ONCE)?;
        }
        let runners: Vec<Runner> = self.held.values().chain(self.busy.values()).cloned().collect();
        let mut released = pin!(join_all(runners.iter().map(Runner::release)));
        let mut all_released = false;
        // Code that blocks its thread never says that it has left its run.
        let mut last_words = pin!(futures::future::OptionFuture::from(None));
        while !all_released || !self.busy.is_empty() {
            tokio::select! {
                biased;
                Some(_) = interrupts.recv() => return Ok(Exit::Interrupted),
                Some(live) = stream.next() => self.show(live, ui).await?,
                Some(done) = ended.recv() => self.done(&done),
                _ = &mut released, if !all_released => {
                    all_released = true;
                    last_words.set(Some(tokio::time::sleep(2 * PATIENCE)).into());
                }
                Some(()) = &mut last_words => break,
            }
        }
        while let Some(Some(live)) = futures::FutureExt::now_or_never(stream.next()) {
            self.show(live, ui).await?;
        }
        ui.notice("let go of all runs; they stay, and another `work` goes on with them")?;
        Ok(Exit::Done)
    }

    /// Goes on with a run, unless another worker has it, and waits until it has settled. Both are done beside everything
    /// else, since a plugin may wait for its server.
    async fn take(&mut self, row: RunSummary, due: &mut Due, ui: &mut Ui) -> Result<(), Failure> {
        let runner = match self.runner(&row, ui).await {
            Ok(runner) => runner,
            Err((failure, refusal)) => return self.left_out(&row, &failure, refusal, due, ui).await,
        };
        self.busy.insert(row.run.clone(), runner.clone());
        let done = self.done.clone();
        tokio::spawn(async move {
            let became = match runner.take_up(&row.run).await {
                Ok(run) => settled(&run).await,
                Err(error) => Became::Refused(error),
            };
            _ = done.send(Done { row, became });
        });
        Ok(())
    }

    /// Says why a run is not gone on with, where that is news, and when it is tried again.
    async fn refused(&self, row: &RunSummary, error: &ResumeError, due: &mut Due, ui: &mut Ui) -> Result<(), Failure> {
        if matches!(error, ResumeError::Claimed { .. } | ResumeError::Over { .. } | ResumeError::Leaves) {
            return Ok(());
        }
        self.left_out(row, &refused(error, ""), error.refusal(), due, ui).await
    }

    async fn left_out(
        &self,
        row: &RunSummary,
        failure: &Failure,
        refusal: Option<ClaimRefusal>,
        due: &mut Due,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        let name = self.name(&row.run).await.unwrap_or_else(|_| row.run.to_string());
        ui.notice(&format!("{name} is not gone on with: {failure}"))?;
        match refusal {
            Some(reason) => due.refuse(row, reason, &failure.to_string()),
            None => due.postpone(row),
        }
        Ok(())
    }

    /// Starts the prompt of a trigger that is due. What cannot be started here is told once.
    async fn fire(&mut self, timer: &Timer, firing: &mut Firing, ui: &mut Ui) -> Result<(), Failure> {
        let trigger = &timer.trigger.id;
        let runner = match self.runners.get(&*timer.brain) {
            Some(runner) => runner.clone(),
            None => match models(self.project, &self.args.model, &timer.brain, ui) {
                Ok(models) if matches!(models.tape, Tape::Plays(_)) => {
                    if !self.has_answers(&models, timer).await? {
                        firing.refuse(timer);
                        return Ok(ui.notice(&format!("the trigger {trigger} does not fire here: {PLAYED}"))?);
                    }
                    models.runner(self.project, self.kept).sink(self.sink.clone())
                }
                Ok(models) => {
                    let runner = models.runner(self.project, self.kept).sink(self.sink.clone());
                    self.runners.insert(timer.brain.to_string(), runner.clone());
                    runner
                }
                Err(failure) => {
                    firing.refuse(timer);
                    return Ok(ui.notice(&format!("the trigger {trigger} does not fire here: {failure}"))?);
                }
            },
        };
        match firing.fire(&runner, timer).await {
            Ok(Some(run)) => {
                let row = self.kept.client().store().run(run.id()).await?;
                let name = self.name(&row.run).await?;
                ui.notice(&format!("the trigger {trigger} has started {name}"))?;
                if !self.busy.contains_key(&row.run) {
                    self.busy.insert(row.run.clone(), runner);
                    let done = self.done.clone();
                    tokio::spawn(async move {
                        let became = settled(&run).await;
                        _ = done.send(Done { row, became });
                    });
                }
            }
            Ok(None) => {}
            Err(error) => ui.notice(&error.to_string())?,
        }
        Ok(())
    }

    /// Winds a cassette on to where the conversation of a trigger is, and says whether it goes on there. Outside of a
    /// conversation, a trigger's run begins anew, and no recording begins with it.
    async fn has_answers(&self, models: &Models, timer: &Timer) -> Result<bool, Failure> {
        let (Tape::Plays(cassette), Some(conversation)) = (&models.tape, &timer.conversation) else { return Ok(false) };
        let rows = self.kept.client().conversation(conversation).await?;
        let Some(last) = rows.first() else { return Ok(false) };
        rewind(cassette, self.kept, &last.run).await?;
        Ok(goes_on(cassette))
    }

    /// Finds what works on a run, or says why nothing does, and why no other try can go well where that is so.
    async fn runner(&mut self, row: &RunSummary, ui: &Ui) -> Result<Runner, (Failure, Option<ClaimRefusal>)> {
        if let Some(runner) = self.runners.get(&*row.brain) {
            return Ok(runner.clone());
        }
        self.project.titled(&row.brain).map_err(|failure| (failure, Some(ClaimRefusal::NoBrain)))?;
        let no_model = |failure| (failure, Some(ClaimRefusal::NoModel));
        let models = models(self.project, &self.args.model, &row.brain, ui).map_err(no_model)?;
        wind(&models, self.kept, row).await.map_err(|failure| {
            let refusal = matches!(failure, Failure::OtherModel { .. }).then_some(ClaimRefusal::NoModel);
            (failure, refusal)
        })?;
        let runner = models.runner(self.project, self.kept).sink(self.sink.clone());
        if matches!(models.tape, Tape::None) {
            self.runners.insert(row.brain.to_string(), runner.clone());
        }
        Ok(runner)
    }

    async fn name(&self, run: &RunId) -> Result<String, Failure> {
        Ok(Short::of(&self.kept.client(), [run]).await?.get(run).to_owned())
    }

    async fn show(&mut self, live: Live, ui: &mut Ui) -> Result<(), Failure> {
        let Live::Event(run, event) = live else { return Ok(()) };
        let events = match self.untold(&run, &event, ui.settings.unicode).await {
            Ok(events) => events,
            // The next event tells what this one should have told.
            Err(failure) => return Ok(ui.notice(&format!("what happens in {run} cannot be told: {failure}"))?),
        };
        let Some(told) = self.told.get_mut(&run) else { return Ok(()) };
        for event in &events {
            told.next = event.seq.next();
            if self.args.json {
                let line = event.to_json().map_err(io::Error::other)?;
                let event: Value = serde_json::from_str(&line).map_err(io::Error::from)?;
                ui.json_line(&json!({"run": run, "event": event}))?;
            }
            if let Some(line) = told.line(event) {
                ui.lines(&line)?;
            }
        }
        let ends = ["BRAIN_COMPLETE", "BRAIN_ERROR", "BRAIN_CANCELLED"];
        if event.path.is_root() && ends.contains(&event.kind.name()) {
            self.told.remove(&run);
        }
        Ok(())
    }

    /// Returns the events of a run that are not told yet, up to and with this one.
    async fn untold(&mut self, run: &RunId, event: &Arc<Event>, unicode: bool) -> Result<Vec<Arc<Event>>, Failure> {
        let client = self.kept.client();
        if !self.told.contains_key(run) {
            let style = Style { unicode, ..Style::default() };
            let mut told = Told { name: self.name(run).await?, lines: Plain::new(io::sink(), style), next: Seq(0) };
            // What happened before it was taken up is known, and not told again.
            for before in client.store().read(run, Seq(0), event.seq.index()).await? {
                _ = told.lines.told(&before);
                told.next = before.seq.next();
            }
            self.told.insert(run.clone(), told);
        }
        // A run that a cassette answers for has a runner of its own each time it is taken up, which knows nothing of what
        // the last one has told, and begins behind what came between.
        let next = self.told.get(run).map_or(Seq(0), |told| told.next);
        let between = event.seq.index().saturating_sub(next.index());
        let mut events = if between > 0 { client.store().read(run, next, between).await? } else { Vec::new() };
        events.extend((event.seq >= next).then(|| Arc::clone(event)));
        Ok(events)
    }
}

/// Waits until a run has settled, and its events are told.
async fn settled(run: &RunHandle<Value>) -> Became {
    let settled = run.settled().await;
    run.flushed(PATIENCE).await;
    match settled {
        Settled::Completed(_) | Settled::Failed(_) | Settled::Cancelled => Became::Over,
        Settled::Waiting(_) | Settled::Paused => Became::Waits,
        Settled::Stopped(_) => Became::Stopped(run.state().next),
    }
}

impl Told {
    fn line(&mut self, event: &Event) -> Option<String> {
        let said = self.lines.told(event)?;
        let place = self.lines.view().trail(&event.path);
        let colon = if place.is_empty() { "" } else { ": " };
        Some(format!("{}  {place}{colon}{said}", self.name))
    }
}

#[cfg(test)]
mod tests;
