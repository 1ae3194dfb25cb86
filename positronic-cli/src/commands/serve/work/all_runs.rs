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
#[cfg(feature = "serve")]
use positronic_core::runner::{Clock as _, SystemClock};
use positronic_core::runner::{FindRunner, NotFired, Release, RunUpdate, ServeEvent, Server};
use positronic_core::store::StoreError;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::runners::Runners;
#[cfg(feature = "serve")]
use super::serve_log::{Level, ServeLog};
use super::served_brains::Served;
use crate::app::{Failure, Project, ProjectStore, Ui, price_table};
use crate::cli::{Exit, OutputArgs, WorkArgs};
use crate::render::figures::many;
use crate::render::{Plain, ShortIds, Style};
use crate::session::{AT_ONCE, Interrupt, interrupts};

/// Maximum wait for the last events of all runs.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) async fn serve(project: &Project, args: &WorkArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let served = Served::read(&args.brain, project)?;
    ui.prices = Some(price_table(args.model.prices.as_deref(), &ui.settings)?);
    let store = ProjectStore::open(ui).await?;
    if !args.once {
        ui.notice(&format!("serving the runs in {}; press Ctrl-C to release them", store.location))?;
    }
    let runners = Runners::new(project, &args.model, &store, ui.settings.clone()).serving(served);
    runners.check()?;
    let server = Server::new(store.client(), runners).once(args.once);
    Shown::new((args.once, args.output), &store, ui).serve(&server, interrupts()).await
}

type RunUpdates = BoxStream<'static, Result<RunUpdate, StoreError>>;

/// A run's next update, with the stream of those after it.
type NextUpdate = (RunId, Option<Result<RunUpdate, StoreError>>, RunUpdates);

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
    /// How `serve` writes its lines; `work` writes every event.
    #[cfg(feature = "serve")]
    log: Option<ServeLog>,
}

/// The display of a run.
struct ShownRun {
    name: String,
    lines: Plain<io::Sink>,
    /// The first event that is shown.
    from: Seq,
    /// The next event.
    next: Seq,
    /// Whether its log could not be read the last time.
    is_unreadable: bool,
}

impl<'a> Shown<'a> {
    pub(super) fn new((once, output): (bool, OutputArgs), store: &'a ProjectStore, ui: &'a mut Ui) -> Self {
        let (busy, updates) = (HashSet::new(), FuturesUnordered::new());
        Self {
            once,
            output,
            store,
            ui,
            busy,
            updates,
            shown: HashMap::new(),
            positions: HashMap::new(),
            #[cfg(feature = "serve")]
            log: None,
        }
    }

    /// Writes lines with their time and level.
    #[cfg(feature = "serve")]
    pub(super) const fn logging(mut self, log: ServeLog) -> Self {
        self.log = Some(log);
        self
    }

    /// Shows the work until the server ends. An interrupt releases every run after its effects in flight; a second one exits at
    /// once. A display that cannot be read or written does not delay the work: it is shown later or not at all.
    pub(super) async fn serve<F: FindRunner>(
        mut self,
        server: &Server<F>,
        mut interrupts: UnboundedReceiver<Interrupt>,
    ) -> Result<Exit, Failure> {
        let mut events = server.events();
        let (mut is_leaving, mut is_released, mut has_ended, mut failed) = (false, false, false, None);
        let mut release = Release::default();
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
                        self.say(AT_ONCE);
                    }
                    released.set(Some(server.release()).into());
                }
                Some((run, update, updates)) = self.updates.next() => self.show(run, update, updates),
                event = events.next(), if !has_ended => match event {
                    // It cannot know whether there is more work. The effects in flight end first.
                    Some(ServeEvent::Failed(error)) if self.once && !is_leaving => {
                        self.warn(&format!("cannot list the work of the store, releasing the runs: {error}"));
                        (is_leaving, failed) = (true, Some(error));
                        released.set(Some(server.release()).into());
                    }
                    Some(event) => self.event(event).await,
                    None => has_ended = true,
                },
                Some(done) = &mut released, if is_leaving && !is_released => {
                    (is_released, release) = (true, done);
                    // A container kills the process ten seconds after the signal, and a release takes up to nine.
                    last_words.set(Some(tokio::time::sleep(PATIENCE / 2)).into());
                }
                Some(()) = &mut last_words, if is_released => break,
            }
        }
        self.catch_up().await;
        if let Some(error) = failed {
            return Err(error.into());
        }
        if is_leaving {
            let text = self.released(&release).await;
            self.say(&text);
        }
        Ok(Exit::Done)
    }

    /// Says which runs were released.
    async fn released(&self, Release { released, kept, .. }: &Release) -> String {
        if kept.is_empty() {
            return "released all runs; another `work` can continue them".to_owned();
        }
        let mut names = Vec::new();
        for run in kept {
            names.push(self.name(run).await);
        }
        let (count, all) = (released.len(), many(released.len() + kept.len(), "run"));
        format!(
            "released {count} of {all}; the others ({}) did not stop in time or could not be recorded as released: another `work` can continue them when this process has ended",
            names.join(", ")
        )
    }

    /// Shows the events of all runs up to now, as far as they can be read soon.
    async fn catch_up(&mut self) {
        let caught_up = async {
            let mut ends = HashMap::new();
            for run in self.shown.keys() {
                if let Ok(row) = self.store.client().store().run(run).await {
                    ends.insert(run.clone(), row.next);
                }
            }
            let is_behind = |shown: &Self| {
                ends.iter().any(|(run, end)| shown.shown.get(run).is_some_and(|shown| shown.next < *end))
            };
            while is_behind(self) {
                let Ok(Some((run, update, updates))) = tokio::time::timeout(PATIENCE, self.updates.next()).await else {
                    break;
                };
                self.show(run, update, updates);
            }
        };
        // What cannot be read soon is not shown.
        _ = tokio::time::timeout(2 * PATIENCE, caught_up).await;
    }

    /// Shows an event of the server.
    async fn event(&mut self, event: ServeEvent) {
        match event {
            ServeEvent::Claimed { run, from } => {
                self.busy.insert(run.clone());
                self.follow(run, from).await;
            }
            ServeEvent::Suspect { run, crashes } => {
                let name = self.name(&run).await;
                self.warn(&format!("{name}: {}", crashes.sentence()));
            }
            ServeEvent::Settled { run, .. } | ServeEvent::Released { run } => {
                self.busy.remove(&run);
            }
            ServeEvent::Refused { run, error } => {
                let name = self.name(&run).await;
                self.warn(&format!("skipped {name}: {error}"));
            }
            ServeEvent::Fired { timer, run } => {
                let name = self.name(&run).await;
                self.say(&format!("{} has started {name}", cause(&timer)));
                self.busy.insert(run.clone());
                self.follow(run, Seq(0)).await;
            }
            ServeEvent::NotFired { timer, error: NotFired::NoRunner(none) } => {
                self.warn(&format!("{} cannot fire here: {none}", cause(&timer)));
            }
            ServeEvent::NotFired { error, .. } => self.warn(&error.to_string()),
            ServeEvent::Failed(error) => {
                self.warn(&format!("cannot list the work of the store, trying again: {error}"));
            }
            _ => {}
        }
    }

    /// Shows the events of a run from a number on, or from the last shown one. Earlier events only update the view.
    async fn follow(&mut self, run: RunId, from: Seq) {
        if self.shown.contains_key(&run) {
            return;
        }
        let from = self.positions.remove(&run).unwrap_or(from);
        let lines = Plain::new(io::sink(), Style::default()).priced(self.ui.prices.clone());
        let shown = ShownRun { name: self.name(&run).await, lines, from, next: Seq(0), is_unreadable: false };
        self.shown.insert(run.clone(), shown);
        let updates = self.store.client().follow(&run, Seq(0));
        self.read_on(run, updates);
    }

    fn read_on(&self, run: RunId, mut updates: RunUpdates) {
        self.updates.push(Box::pin(async move {
            let update = updates.next().await;
            (run, update, updates)
        }));
    }

    /// Shows an update of a run, and reads the next one unless the run is over or released.
    fn show(&mut self, run: RunId, update: Option<Result<RunUpdate, StoreError>>, updates: RunUpdates) {
        let updates = match update {
            Some(Ok(RunUpdate::Event(event))) => {
                self.line(&run, &event);
                let is_new = self.shown.get(&run).is_some_and(|shown| event.seq >= shown.from);
                // Another claim may have followed already.
                if is_new && matches!(event.kind, EventKind::RunReleased { .. }) && !self.busy.contains(&run) {
                    self.shown.remove(&run);
                    self.positions.insert(run, event.seq.next());
                    return;
                }
                updates
            }
            Some(Ok(_)) => updates,
            Some(Err(error @ StoreError::Failed { .. })) => {
                let Some(shown) = self.shown.get_mut(&run) else { return };
                let (next, is_first) = (shown.next, !std::mem::replace(&mut shown.is_unreadable, true));
                let text = format!("cannot show {}, trying again: {error}", shown.name);
                if is_first {
                    self.warn(&text);
                }
                self.store.client().follow(&run, next)
            }
            Some(Err(error)) => {
                let Some(shown) = self.shown.remove(&run) else { return };
                self.positions.insert(run, shown.next);
                return self.warn(&format!("cannot show {} any longer: {error}", shown.name));
            }
            None => {
                self.shown.remove(&run);
                return;
            }
        };
        self.read_on(run, updates);
    }

    fn line(&mut self, run: &RunId, event: &Arc<Event>) {
        let Some(shown) = self.shown.get_mut(run) else { return };
        (shown.next, shown.is_unreadable) = (event.seq.next(), false);
        let line = shown.line(event);
        if event.seq < shown.from {
            return;
        }
        if self.output.json
            && let Ok(json) = event.to_json()
            && let Ok(event) = serde_json::from_str::<Value>(&json)
        {
            _ = self.ui.json_line(&json!({"run": run, "event": event}));
        }
        let Some(text) = line else { return };
        #[cfg(feature = "serve")]
        if let Some(log) = self.log {
            if let Some(line) = log.event(run, &shown.name, event, &text) {
                _ = self.ui.log_line(&line);
            }
            return;
        }
        _ = self.ui.lines(&format!("{}  {text}", shown.name));
    }

    /// Writes a message. If that fails, the work continues without it.
    fn say(&mut self, text: &str) {
        #[cfg(feature = "serve")]
        if let Some(log) = self.log {
            if let Some(line) = log.notice(Level::Info, SystemClock.now(), text) {
                _ = self.ui.log_line(&line);
            }
            return;
        }
        _ = self.ui.notice(text);
    }

    /// Writes a message about something that went wrong.
    fn warn(&mut self, text: &str) {
        #[cfg(feature = "serve")]
        if let Some(log) = self.log {
            if let Some(line) = log.notice(Level::Warn, SystemClock.now(), text) {
                _ = self.ui.log_line(&line);
            }
            return;
        }
        _ = self.ui.notice(text);
    }

    /// Returns the short id of a run, or its id while the store cannot be read.
    async fn name(&self, run: &RunId) -> String {
        let short = tokio::time::timeout(PATIENCE, ShortIds::of(&self.store.client(), [run])).await;
        short.ok().and_then(Result::ok).map_or_else(|| run.to_string(), |short| short.get(run).to_owned())
    }
}

impl ShownRun {
    fn line(&mut self, event: &Event) -> Option<String> {
        let text = self.lines.apply(event)?;
        let place = self.lines.view().trail(&event.path);
        let colon = if place.is_empty() { "" } else { ": " };
        Some(format!("{place}{colon}{text}"))
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
