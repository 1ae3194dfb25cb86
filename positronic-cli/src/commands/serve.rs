//! `positronic work` without a run: does whatever work there is in all runs, until it is told to end.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use positronic_core::record::{Event, RunId, RunSummary, Seq};
use positronic_core::runner::{Clock as _, ResumeError, Run, Runner, Settled, SystemClock};
use positronic_core::sink::{ChannelSink, Live};
use positronic_core::store::{RunFilter, Watcher};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::signal::worker;
use super::work::{models, refused, wind};
use crate::cli::WorkArgs;
use crate::display::{Plain, Style};
use crate::failure::{Exit, Failure};
use crate::find::Short;
use crate::interrupts::interrupts;
use crate::kept::Kept;
use crate::models::Tape;
use crate::project::Project;
use crate::ui::Ui;

/// How often it is looked whether something is due, or a worker has died.
const LOOK: Duration = Duration::from_secs(1);
/// How long a run rests at most that fails again and again.
const LONGEST: Duration = Duration::from_secs(5 * 60);
/// How many events may be on their way to the screen.
const ROOM: usize = 4096;

pub(super) fn serve(project: &Project, args: &WorkArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = Kept::open(ui)?;
    if !args.once {
        ui.notice(&format!("serving the runs in {}; Ctrl-C ends it, and the runs stay", kept.place))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (sink, stream) = ChannelSink::new(ROOM);
    let (done, ended) = mpsc::unbounded_channel();
    let server = Server {
        project,
        args,
        kept: &kept,
        sink,
        done,
        busy: HashSet::new(),
        runners: HashMap::new(),
        refused: HashMap::new(),
        told: HashMap::new(),
    };
    let served = runtime.block_on(server.work(stream, ended, ui));
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

struct Bell(Notify);

impl Watcher for Bell {
    fn appended(&self, _: &RunId, _: Seq) {
        self.0.notify_one();
    }
}

struct Server<'a> {
    project: &'a Project,
    args: &'a WorkArgs,
    kept: &'a Kept,
    sink: ChannelSink,
    /// Tells that a run has ended, or waits.
    done: mpsc::UnboundedSender<Ended>,
    busy: HashSet<RunId>,
    /// What works on the runs of a brain, by its title; a cassette plays for one run alone.
    runners: HashMap<String, Runner>,
    /// Where a run was refused, as of which event: it is not tried again before something has changed, or for a while
    /// where another try may go well.
    refused: HashMap<RunId, Refused>,
    /// How far each run is told, and under which name.
    told: HashMap<RunId, Told>,
}

/// A run that has settled; where its worker had to stop, with the number of its next event.
type Ended = (RunId, Option<Seq>);

struct Refused {
    next: Seq,
    /// When it is tried again, after which pause.
    again: Option<(Instant, Duration)>,
}

struct Told {
    name: String,
    lines: Plain<io::Sink>,
    next: Seq,
}

impl Server<'_> {
    async fn work(
        mut self,
        mut stream: impl Stream<Item = Live> + Unpin,
        mut ended: mpsc::UnboundedReceiver<Ended>,
        ui: &mut Ui,
    ) -> Result<Exit, Failure> {
        let control = self.kept.control();
        let bell = Arc::new(Bell(Notify::new()));
        let watcher: Arc<dyn Watcher> = Arc::clone(&bell) as Arc<dyn Watcher>;
        control.store().watch(None, Arc::downgrade(&watcher) as Weak<dyn Watcher>);
        let mut interrupts = interrupts();
        let mut looks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                biased;
                Some(_) = interrupts.recv() => return Ok(Exit::Done),
                Some(live) = stream.next() => {
                    self.show(live, ui).await?;
                    continue;
                }
                Some((run, stopped)) = ended.recv() => {
                    self.busy.remove(&run);
                    match stopped {
                        Some(next) => self.refuse(run, next, true),
                        None => _ = self.refused.remove(&run),
                    }
                }
                () = bell.0.notified() => {}
                _ = looks.tick() => {}
            }
            let due = RunFilter::builder().due(SystemClock.now()).build();
            let rows = control.store().runs(&due).await?;
            self.refused.retain(|run, _| rows.iter().any(|row| row.run == *run));
            for row in rows {
                // A worker that is alive looks for its mail itself.
                if row.mail && worker(&control, &row).await?.is_some() {
                    continue;
                }
                if !self.busy.contains(&row.run) && !self.rests(&row) {
                    self.take(row, ui).await?;
                }
            }
            if self.args.once && self.busy.is_empty() {
                while let Some(Some(live)) = futures::FutureExt::now_or_never(stream.next()) {
                    self.show(live, ui).await?;
                }
                return Ok(Exit::Done);
            }
        }
    }

    /// Goes on with a run, unless another worker has it.
    async fn take(&mut self, row: RunSummary, ui: &mut Ui) -> Result<(), Failure> {
        let begun = self.begin(&row, ui).await;
        let run = match begun {
            Ok(run) => run,
            Err(None) => return Ok(()),
            Err(Some((failure, passes))) => {
                let name = self.name(&row.run).await?;
                ui.notice(&format!("{name} is not gone on with: {failure}"))?;
                self.refuse(row.run, row.next, passes);
                return Ok(());
            }
        };
        self.busy.insert(row.run.clone());
        let done = self.done.clone();
        tokio::spawn(async move {
            let settled = run.settled().await;
            run.flushed(LOOK).await;
            let stopped = matches!(settled, Settled::Stopped(_)).then(|| run.state().next);
            _ = done.send((row.run, stopped));
        });
        Ok(())
    }

    fn refuse(&mut self, run: RunId, next: Seq, passes: bool) {
        let last = self.refused.get(&run).and_then(|last| last.again);
        let pause = last.map_or(LOOK, |(_, pause)| (pause * 2).min(LONGEST));
        let again = passes.then(|| (Instant::now() + pause, pause));
        self.refused.insert(run, Refused { next, again });
    }

    fn rests(&self, row: &RunSummary) -> bool {
        let rests =
            |last: &Refused| last.next == row.next && last.again.is_none_or(|(again, _)| again > Instant::now());
        self.refused.get(&row.run).is_some_and(rests)
    }

    /// Goes on with a run, or says why not, and whether another try may go well.
    async fn begin(&mut self, row: &RunSummary, ui: &Ui) -> Result<Run<Value>, Option<(Failure, bool)>> {
        let runner = match self.runners.get(&row.brain) {
            Some(runner) => runner.clone(),
            None => {
                let models = models(self.project, &self.args.model, row, ui).map_err(|failure| (failure, false))?;
                wind(&models, self.kept, row).await.map_err(|failure| (failure, true))?;
                let runner = models.runner(self.project, self.kept).sink(self.sink.clone());
                if matches!(models.tape, Tape::None) {
                    self.runners.insert(row.brain.clone(), runner.clone());
                }
                runner
            }
        };
        match runner.resume(&row.run).await {
            Ok(run) => Ok(run),
            Err(ResumeError::Held { .. } | ResumeError::Over { .. }) => Err(None),
            Err(error) => {
                let passes = !matches!(error, ResumeError::NoBrain { .. } | ResumeError::Changed { .. });
                Err(Some((refused(&error, ""), passes)))
            }
        }
    }

    async fn name(&self, run: &RunId) -> Result<String, Failure> {
        Ok(Short::of(&self.kept.control(), [run]).await?.get(run).to_owned())
    }

    async fn show(&mut self, live: Live, ui: &mut Ui) -> Result<(), Failure> {
        let Live::Event(run, event) = live else { return Ok(()) };
        if self.args.json {
            let line = event.to_json().map_err(io::Error::other)?;
            let event: Value = serde_json::from_str(&line).map_err(io::Error::from)?;
            ui.json_line(&json!({"run": run, "event": event}))?;
        }
        if !self.told.contains_key(&run) {
            let style = Style { unicode: ui.settings.unicode, ..Style::default() };
            let mut told = Told { name: self.name(&run).await?, lines: Plain::new(io::sink(), style), next: Seq(0) };
            // What happened before it was taken up is known, and not told again.
            for before in self.kept.control().store().read(&run, Seq(0), event.seq.index()).await? {
                _ = told.lines.told(&before);
                told.next = before.seq.next();
            }
            self.told.insert(run.clone(), told);
        }
        let Some(told) = self.told.get_mut(&run) else { return Ok(()) };
        if event.seq >= told.next {
            told.next = event.seq.next();
            if let Some(line) = told.line(&event) {
                ui.lines(&line)?;
            }
        }
        if event.path.is_root() && event.body.name() == "BRAIN_COMPLETE" {
            self.told.remove(&run);
        }
        Ok(())
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
