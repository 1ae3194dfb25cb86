//! `positronic work` without a run: serves all runs of the store and fires the triggers that are due, until it is told to
//! end. The core does the work and says what it does; this shows it. At the end it claims no more, waits for what is in
//! flight, and releases its runs, so that another worker can claim them at once.

use std::collections::{HashMap, HashSet};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered};
use positronic_core::record::{Event, EventKind, RunId, Seq};
use positronic_core::runner::{FindRunner, NotFired, RunUpdate, ServeEvent, Server};
use positronic_core::store::StoreError;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::runners::Runners;
use crate::app::failure::Failure;
use crate::app::project::Project;
use crate::app::store::ProjectStore;
use crate::app::ui::Ui;
use crate::cli::WorkArgs;
use crate::cli::exit::Exit;
use crate::render::short_ids::Short;
use crate::render::{Plain, Style};
use crate::session::driver::AT_ONCE;
use crate::session::interrupts::{Interrupt, interrupts};

/// How long the last events of all runs may take to the screen.
const PATIENCE: Duration = Duration::from_secs(1);
pub(super) fn serve(project: &Project, args: &WorkArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = ProjectStore::open(ui)?;
    if !args.once {
        ui.notice(&format!("serving the runs in {}; Ctrl-C lets go of them, and they stay", kept.place))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let runners = Runners::new(project, &args.model, &kept, ui.settings.clone());
    let server = Server::new(kept.client(), runners).once(args.once);
    let served = runtime.block_on(async { Shown::new(args, &kept, ui).serve(&server, interrupts()).await });
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

type Updates = BoxStream<'static, Result<RunUpdate, StoreError>>;

/// A run's next update, with the stream of those after it.
type NextUpdate = (RunId, Option<Result<RunUpdate, StoreError>>, Updates);

/// What is shown of the runs that are served.
struct Shown<'a> {
    args: &'a WorkArgs,
    kept: &'a ProjectStore,
    ui: &'a mut Ui,
    /// The runs that are claimed and have not settled yet.
    busy: HashSet<RunId>,
    /// The next update of each run that is shown.
    updates: FuturesUnordered<BoxFuture<'static, NextUpdate>>,
    /// How each run is shown.
    told: HashMap<RunId, Told>,
    /// Up to where the runs were shown that are released and not over.
    positions: HashMap<RunId, Seq>,
}

/// How far a run is shown, and under which name.
struct Told {
    name: String,
    lines: Plain<io::Sink>,
    next: Seq,
}

impl<'a> Shown<'a> {
    fn new(args: &'a WorkArgs, kept: &'a ProjectStore, ui: &'a mut Ui) -> Self {
        let (busy, updates) = (HashSet::new(), FuturesUnordered::new());
        Self { args, kept, ui, busy, updates, told: HashMap::new(), positions: HashMap::new() }
    }

    async fn serve<F: FindRunner>(
        mut self,
        server: &Server<F>,
        mut interrupts: UnboundedReceiver<Interrupt>,
    ) -> Result<Exit, Failure> {
        let mut events = server.events();
        loop {
            // Each gets its turn: a run that says much keeps nobody from ending, and no other run waiting.
            tokio::select! {
                Some(_) = interrupts.recv() => break,
                Some((run, update, updates)) = self.updates.next() => self.show(run, update, updates)?,
                event = events.next() => match event {
                    Some(ServeEvent::Failed(error)) if self.args.once => return Err(error.into()),
                    Some(event) => self.event(event).await?,
                    None => {
                        self.catch_up().await?;
                        return Ok(Exit::Done);
                    }
                }
            }
        }
        self.leave(server, events, interrupts).await
    }

    /// Releases every run once what is in flight has ended; a second request to end is followed at once.
    async fn leave<F: FindRunner>(
        mut self,
        server: &Server<F>,
        mut events: BoxStream<'_, ServeEvent>,
        mut interrupts: UnboundedReceiver<Interrupt>,
    ) -> Result<Exit, Failure> {
        if !self.busy.is_empty() {
            self.ui.notice(AT_ONCE)?;
        }
        let mut released = pin!(server.release());
        let (mut is_released, mut has_ended) = (false, false);
        // Code that blocks its thread never says that it has left its run.
        let mut last_words = pin!(futures::future::OptionFuture::from(None));
        while !is_released || !has_ended {
            tokio::select! {
                biased;
                Some(_) = interrupts.recv() => return Ok(Exit::Interrupted),
                Some((run, update, updates)) = self.updates.next() => self.show(run, update, updates)?,
                event = events.next(), if !has_ended => match event {
                    Some(event) => self.event(event).await?,
                    None => has_ended = true,
                },
                () = &mut released, if !is_released => {
                    is_released = true;
                    last_words.set(Some(tokio::time::sleep(2 * PATIENCE)).into());
                }
                Some(()) = &mut last_words => break,
            }
        }
        self.catch_up().await?;
        self.ui.notice("let go of all runs; they stay, and another `work` goes on with them")?;
        Ok(Exit::Done)
    }

    /// Shows the events of all runs up to now.
    async fn catch_up(&mut self) -> Result<(), Failure> {
        let mut ends = HashMap::new();
        for run in self.told.keys() {
            ends.insert(run.clone(), self.kept.client().store().run(run).await?.next);
        }
        let is_behind =
            |shown: &Self| ends.iter().any(|(run, end)| shown.told.get(run).is_some_and(|told| told.next < *end));
        while is_behind(self) {
            let Ok(Some((run, update, updates))) = tokio::time::timeout(PATIENCE, self.updates.next()).await else {
                break;
            };
            self.show(run, update, updates)?;
        }
        Ok(())
    }

    /// Shows what the server does.
    async fn event(&mut self, event: ServeEvent) -> Result<(), Failure> {
        match event {
            ServeEvent::Claimed { run, from } => {
                self.busy.insert(run.clone());
                self.follow(run, from).await
            }
            ServeEvent::Settled { run, .. } | ServeEvent::Released { run } => {
                self.busy.remove(&run);
                Ok(())
            }
            ServeEvent::Refused { run, error } => {
                let name = self.name(&run).await.unwrap_or_else(|_| run.to_string());
                Ok(self.ui.notice(&format!("skipped {name}: {error}"))?)
            }
            ServeEvent::Fired { timer, run } => {
                let name = self.name(&run).await?;
                self.ui.notice(&format!("the trigger {} has started {name}", timer.trigger.id))?;
                self.busy.insert(run.clone());
                self.follow(run, Seq(0)).await
            }
            ServeEvent::NotFired { timer, error: NotFired::NoRunner(none) } => {
                Ok(self.ui.notice(&format!("the trigger {} does not fire here: {none}", timer.trigger.id))?)
            }
            ServeEvent::NotFired { error, .. } => Ok(self.ui.notice(&error.to_string())?),
            ServeEvent::Failed(error) => {
                Ok(self.ui.notice(&format!("cannot list the work of the store, trying again: {error}"))?)
            }
            _ => Ok(()),
        }
    }

    /// Shows the events of a run from a number on, or from where it was shown last.
    async fn follow(&mut self, run: RunId, from: Seq) -> Result<(), Failure> {
        if self.told.contains_key(&run) {
            return Ok(());
        }
        let from = self.positions.remove(&run).unwrap_or(from);
        let client = self.kept.client();
        let style = Style { unicode: self.ui.settings.unicode, ..Style::default() };
        let mut told = Told { name: self.name(&run).await?, lines: Plain::new(io::sink(), style), next: from };
        // What happened before is known, and not shown again.
        for before in client.store().read(&run, Seq(0), from.index()).await? {
            _ = told.lines.told(&before);
        }
        self.told.insert(run.clone(), told);
        let updates = client.follow(&run, from);
        self.read_on(run, updates);
        Ok(())
    }

    fn read_on(&self, run: RunId, mut updates: Updates) {
        self.updates.push(Box::pin(async move {
            let update = updates.next().await;
            (run, update, updates)
        }));
    }

    /// Shows an update of a run, and goes on with the next one unless the run has ended or was released.
    fn show(
        &mut self,
        run: RunId,
        update: Option<Result<RunUpdate, StoreError>>,
        updates: Updates,
    ) -> Result<(), Failure> {
        match update {
            Some(Ok(RunUpdate::Event(event))) => {
                self.line(&run, &event)?;
                // It may be claimed again already.
                if matches!(event.kind, EventKind::RunReleased { .. }) && !self.busy.contains(&run) {
                    self.told.remove(&run);
                    self.positions.insert(run, event.seq.next());
                    return Ok(());
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                if let Some(told) = self.told.remove(&run) {
                    self.ui.notice(&format!("cannot show {} any longer: {error}", told.name))?;
                    self.positions.insert(run, told.next);
                }
                return Ok(());
            }
            None => {
                self.told.remove(&run);
                return Ok(());
            }
        }
        self.read_on(run, updates);
        Ok(())
    }

    fn line(&mut self, run: &RunId, event: &Arc<Event>) -> Result<(), Failure> {
        let Some(told) = self.told.get_mut(run) else { return Ok(()) };
        told.next = event.seq.next();
        if self.args.json {
            let line = event.to_json().map_err(io::Error::other)?;
            let event: Value = serde_json::from_str(&line).map_err(io::Error::from)?;
            self.ui.json_line(&json!({"run": run, "event": event}))?;
        }
        if let Some(line) = told.line(event) {
            self.ui.lines(&line)?;
        }
        Ok(())
    }

    async fn name(&self, run: &RunId) -> Result<String, Failure> {
        Ok(Short::of(&self.kept.client(), [run]).await?.get(run).to_owned())
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
