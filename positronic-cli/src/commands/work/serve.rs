//! `positronic work` without a run: serves all runs of the store and fires due triggers, until an interrupt. The core does
//! the work and reports it as values; this shows them. At the end it claims no more runs, waits for effects in flight, and
//! releases its runs, so that another worker can claim them at once.

use std::collections::{HashMap, HashSet};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::future::OptionFuture;
use futures::stream::{BoxStream, FuturesUnordered};
use positronic_core::record::{Event, EventKind, RunId, Seq, Timer};
use positronic_core::runner::{FindRunner, NotFired, RunUpdate, ServeEvent, Server};
use positronic_core::store::StoreError;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::runners::Runners;
use super::served::Served;
use crate::app::{Failure, Project, ProjectStore, Ui};
use crate::cli::{Exit, OutputArgs, WorkArgs};
use crate::render::{Plain, ShortIds, Style};
use crate::session::{AT_ONCE, Interrupt, interrupts};

/// Maximum wait for the last events of all runs.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) async fn serve(project: &Project, args: &WorkArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let served = Served::read(&args.brain, project)?;
    let store = ProjectStore::open(ui).await?;
    if !args.once {
        ui.notice(&format!("serving the runs in {}; press Ctrl-C to release them", store.location))?;
    }
    let runners = Runners::new(project, &args.model, &store, ui.settings.clone()).serving(served);
    runners.check()?;
    let server = Server::new(store.client(), runners).once(args.once);
    Shown::new((args.once, args.output), &store, ui).serve(&server, interrupts()).await
}

type Updates = BoxStream<'static, Result<RunUpdate, StoreError>>;

/// A run's next update, with the stream of those after it.
type NextUpdate = (RunId, Option<Result<RunUpdate, StoreError>>, Updates);

/// The display of the served runs.
pub(super) struct Shown<'a> {
    /// Whether the server ends when no work is left.
    once: bool,
    output: OutputArgs,
    store: &'a ProjectStore,
    ui: &'a mut Ui,
    /// Claimed runs that have not settled yet.
    busy: HashSet<RunId>,
    /// The next update of each shown run.
    updates: FuturesUnordered<BoxFuture<'static, NextUpdate>>,
    /// The display of each shown run.
    shown: HashMap<RunId, ShownRun>,
    /// The next event of each released run.
    positions: HashMap<RunId, Seq>,
}

/// The display of a run.
struct ShownRun {
    name: String,
    lines: Plain<io::Sink>,
    next: Seq,
}

impl<'a> Shown<'a> {
    pub(super) fn new((once, output): (bool, OutputArgs), store: &'a ProjectStore, ui: &'a mut Ui) -> Self {
        let (busy, updates) = (HashSet::new(), FuturesUnordered::new());
        Self { once, output, store, ui, busy, updates, shown: HashMap::new(), positions: HashMap::new() }
    }

    /// Shows the work until the server ends. An interrupt releases every run after its effects in flight; a second one exits at
    /// once.
    pub(super) async fn serve<F: FindRunner>(
        mut self,
        server: &Server<F>,
        mut interrupts: UnboundedReceiver<Interrupt>,
    ) -> Result<Exit, Failure> {
        let mut events = server.events();
        let (mut is_leaving, mut is_released, mut has_ended) = (false, false, false);
        let mut released = pin!(OptionFuture::from(None));
        // A tool that blocks its thread never releases its run.
        let mut last_words = pin!(OptionFuture::from(None));
        while !has_ended || is_leaving != is_released {
            // Without `biased`, a busy run starves neither interrupts nor other runs.
            tokio::select! {
                Some(_) = interrupts.recv() => {
                    if is_leaving {
                        return Ok(Exit::Interrupted);
                    }
                    is_leaving = true;
                    if !self.busy.is_empty() {
                        self.ui.notice(AT_ONCE)?;
                    }
                    released.set(Some(server.release()).into());
                }
                Some((run, update, updates)) = self.updates.next() => self.show(run, update, updates)?,
                event = events.next(), if !has_ended => match event {
                    Some(ServeEvent::Failed(error)) if self.once && !is_leaving => return Err(error.into()),
                    Some(event) => self.event(event).await?,
                    None => has_ended = true,
                },
                Some(()) = &mut released, if is_leaving && !is_released => {
                    is_released = true;
                    last_words.set(Some(tokio::time::sleep(2 * PATIENCE)).into());
                }
                Some(()) = &mut last_words, if is_released => break,
            }
        }
        self.catch_up().await?;
        if is_leaving {
            self.ui.notice("released all runs; another `work` can continue them")?;
        }
        Ok(Exit::Done)
    }

    /// Shows the events of all runs up to now.
    async fn catch_up(&mut self) -> Result<(), Failure> {
        let mut ends = HashMap::new();
        for run in self.shown.keys() {
            ends.insert(run.clone(), self.store.client().store().run(run).await?.next);
        }
        let is_behind =
            |shown: &Self| ends.iter().any(|(run, end)| shown.shown.get(run).is_some_and(|shown| shown.next < *end));
        while is_behind(self) {
            let Ok(Some((run, update, updates))) = tokio::time::timeout(PATIENCE, self.updates.next()).await else {
                break;
            };
            self.show(run, update, updates)?;
        }
        Ok(())
    }

    /// Shows an event of the server.
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
                self.ui.notice(&format!("{} has started {name}", cause(&timer)))?;
                self.busy.insert(run.clone());
                self.follow(run, Seq(0)).await
            }
            ServeEvent::NotFired { timer, error: NotFired::NoRunner(none) } => {
                Ok(self.ui.notice(&format!("{} cannot fire here: {none}", cause(&timer)))?)
            }
            ServeEvent::NotFired { error, .. } => Ok(self.ui.notice(&error.to_string())?),
            ServeEvent::Failed(error) => {
                Ok(self.ui.notice(&format!("cannot list the work of the store, trying again: {error}"))?)
            }
            _ => Ok(()),
        }
    }

    /// Shows the events of a run from a number on, or from the last shown one.
    async fn follow(&mut self, run: RunId, from: Seq) -> Result<(), Failure> {
        if self.shown.contains_key(&run) {
            return Ok(());
        }
        let from = self.positions.remove(&run).unwrap_or(from);
        let client = self.store.client();
        let mut shown =
            ShownRun { name: self.name(&run).await?, lines: Plain::new(io::sink(), Style::default()), next: from };
        // Earlier events only update the view.
        for before in client.store().read(&run, Seq(0), from.index()).await? {
            _ = shown.lines.apply(&before);
        }
        self.shown.insert(run.clone(), shown);
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

    /// Shows an update of a run, and reads the next one unless the run is over or released.
    fn show(
        &mut self,
        run: RunId,
        update: Option<Result<RunUpdate, StoreError>>,
        updates: Updates,
    ) -> Result<(), Failure> {
        match update {
            Some(Ok(RunUpdate::Event(event))) => {
                self.line(&run, &event)?;
                // Another claim may have followed already.
                if matches!(event.kind, EventKind::RunReleased { .. }) && !self.busy.contains(&run) {
                    self.shown.remove(&run);
                    self.positions.insert(run, event.seq.next());
                    return Ok(());
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                if let Some(shown) = self.shown.remove(&run) {
                    self.ui.notice(&format!("cannot show {} any longer: {error}", shown.name))?;
                    self.positions.insert(run, shown.next);
                }
                return Ok(());
            }
            None => {
                self.shown.remove(&run);
                return Ok(());
            }
        }
        self.read_on(run, updates);
        Ok(())
    }

    fn line(&mut self, run: &RunId, event: &Arc<Event>) -> Result<(), Failure> {
        let Some(shown) = self.shown.get_mut(run) else { return Ok(()) };
        shown.next = event.seq.next();
        if self.output.json {
            let line = event.to_json().map_err(io::Error::other)?;
            let event: Value = serde_json::from_str(&line).map_err(io::Error::from)?;
            self.ui.json_line(&json!({"run": run, "event": event}))?;
        }
        if let Some(line) = shown.line(event) {
            self.ui.lines(&line)?;
        }
        Ok(())
    }

    async fn name(&self, run: &RunId) -> Result<String, Failure> {
        Ok(ShortIds::of(&self.store.client(), [run]).await?.get(run).to_owned())
    }
}

impl ShownRun {
    fn line(&mut self, event: &Event) -> Option<String> {
        let text = self.lines.apply(event)?;
        let place = self.lines.view().trail(&event.path);
        let colon = if place.is_empty() { "" } else { ": " };
        Some(format!("{}  {place}{colon}{text}", self.name))
    }
}

#[cfg(test)]
mod tests;

/// Names the trigger or the schedule of a timer.
fn cause(timer: &Timer) -> String {
    match &timer.scheduled {
        Some(tick) => format!("the schedule {}", tick.schedule),
        None => format!("the trigger {}", timer.trigger.id),
    }
}
