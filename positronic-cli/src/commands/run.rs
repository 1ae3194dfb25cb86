//! `positronic run`: a brain, from its options to its result.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use positronic_core::definition::StageBody;
use positronic_core::record::{Event, EventKind, LoopOutcome, Opening, RunId, Seq, SignalId, Speaker, Start};
use positronic_core::runner::{Runner, StartError};
use positronic_core::store::StoreError;
use serde_json::Value;

use super::block_on;
use super::outcome::ended;
use crate::cli::RunArgs;
use crate::failure::{Exit, Failure};
use crate::kept::Kept;
use crate::models::{Models, Playing, Tape, Wanted, cassette, choose};
use crate::options::parse;
use crate::prices::{Limited, keepable, prices};
use crate::private;
use crate::project::{Entry, Project};
use crate::rewind::rewind;
use crate::session::{Role, Sitting, session};
use crate::ui::Ui;

pub(crate) fn run(project: &Project, args: &RunArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    if let (true, Some(store)) = (args.memory, &ui.place.store) {
        let message = format!("a run in memory is not kept in {}", store.display());
        return Err(Failure::Misused { message, hint: "say --memory or --store FILE".to_owned() });
    }
    ui.goes_on_unread();
    let entry = project.find(&args.brain)?;
    if args.message.is_some() {
        hears(entry, || "leave --message out".to_owned())?;
    }
    let wanted = Wanted { model: &args.model, record: args.record.as_deref() };
    let playing = cassette(project, entry, wanted, &ui.settings)?;
    let given = Given { pairs: &args.pairs, document: args.options.as_deref() };
    let options = options(entry, given, playing.as_ref().and_then(Playing::options), ui)?;
    let models = choose(project, entry, wanted, &options, playing, &ui.settings)?;
    let budget = args.budget.budget();
    keepable(Limited::of(&[("--max-money", budget.as_ref())], &entry.definition), &models)?;
    let kept = if args.memory { Kept::memory() } else { Kept::open(ui).map_err(|failure| unkept(&failure))? };
    if let Some(notice) = &models.notice {
        ui.notice(notice)?;
    }
    ui.prices = Some(prices(args.model.prices.as_deref(), &ui.settings)?);
    let actor = ui.actor(None);
    let id = args.id.as_deref().map(SignalId::new);
    // The same words again are the same start.
    let message = args.message.clone().map(|text| Opening { text, id: None });
    let start = Start { id, user: args.user.clone(), actor: actor.clone(), message, budget, ..Start::default() };
    let sitting = Sitting {
        tape: &models.tape,
        played: !args.ask,
        actor: &actor,
        lasts: kept.lasts(),
        role: Role::Runs,
        plain: args.plain,
        json: args.json,
        several: false,
    };
    let runner = models.runner(project, &kept);
    let definition = Arc::clone(&entry.definition);
    let over = over(&kept, args.id.as_deref())?;
    let begin = async |runner: Runner| {
        // Nothing is played into a run that is over.
        if let (Some(id), Tape::Plays(cassette), false) = (&start.id, &models.tape, over) {
            rewind(cassette, &kept, &RunId::new(id.as_str())).await?;
        }
        runner.start_definition(definition, options, start).await.map_err(refused)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ending = runtime.block_on(session(&runner, begin, &sitting, ui));
    // A question that is still on the screen must not hold the process back.
    runtime.shutdown_timeout(Duration::from_secs(1));
    save(&models, args.record.as_deref(), ui)?;
    let (run, ending) = ending?;
    if over {
        let show = ui.command(&["show", run.as_str()]);
        ui.notice(&format!("the run {run} was over already, and nothing was done; `{show}` says how it went"))?;
    }
    // Where people answer, the cassette's answers of theirs stay.
    let tape = if args.ask || over { &Tape::None } else { &models.tape };
    let exit = ended(&kept, &run, ending, tape, args.json, ui)?;
    if over {
        return Ok(exit);
    }
    let log = block_on(async { Ok::<_, Failure>(kept.client().events(&run, Seq(0)).await?) })?;
    if ui.settings.stderr_is_terminal && !takes_options(&log) && answered_nobody(&log) {
        let title = &entry.definition.title;
        ui.notice(&format!("nothing was said to `{title}`: say something with --message TEXT, or talk with it:"))?;
        ui.lines(&format!("  {}", ui.command(&["chat", title])))?;
    }
    Ok(exit)
}

/// Refuses what has no loop that could hear a message.
pub(super) fn hears(entry: &Entry, hint: impl FnOnce() -> String) -> Result<(), Failure> {
    if entry.definition.stages.iter().any(|stage| matches!(stage.body, StageBody::Loop(_))) {
        return Ok(());
    }
    let message =
        format!("`{}` takes no message: it has no loop of its own that could hear one", entry.definition.title);
    Err(Failure::Misused { message, hint: hint() })
}

fn takes_options(log: &[Arc<Event>]) -> bool {
    log.first().is_some_and(|event| matches!(&event.kind, EventKind::BrainStart(start) if !start.options.is_null()))
}

/// Says whether the run's first loop has answered, or failed, although neither the brain nor a person has said anything to it.
/// One that ends by a tool has done what its instructions say.
fn answered_nobody(log: &[Arc<Event>]) -> bool {
    let mut own = log.iter().filter(|event| event.path.parent().is_some_and(|owner| owner.is_root()));
    let first = own.find(|event| matches!(event.kind, EventKind::LoopStart { .. }));
    let is_unopened = |event: &&Arc<Event>| {
        matches!(
            event.kind,
            EventKind::LoopStart { input: None, .. } | EventKind::LoopStart { from: Speaker::Engine, .. }
        )
    };
    let Some(first) = first.filter(is_unopened) else { return false };
    let later = own.filter(|event| event.path == first.path).map(|event| &event.kind);
    for body in later {
        match body {
            EventKind::LoopMessage { from: Speaker::Person, .. } => return false,
            EventKind::LoopComplete { outcome, .. } => {
                return matches!(outcome, LoopOutcome::Answered | LoopOutcome::Failed { .. });
            }
            _ => {}
        }
    }
    false
}

/// Says whether the run of an id is over before anything is done.
fn over(kept: &Kept, id: Option<&str>) -> Result<bool, Failure> {
    let Some(id) = id else { return Ok(false) };
    match block_on(async { Ok::<_, Failure>(kept.client().store().run(&RunId::new(id)).await) })? {
        Ok(row) => Ok(row.status.is_over()),
        Err(StoreError::NoSuchRun { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The options as the command line says them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) pairs: &'a [String],
    pub(super) document: Option<&'a str>,
}

/// Reads the options: what was given, laid over what the cassette was recorded with.
pub(super) fn options(
    entry: &Entry,
    given: Given<'_>,
    recorded: Option<&Value>,
    ui: &mut Ui,
) -> Result<Value, Failure> {
    let document = match given.document {
        Some(given) => Some(crate::json::text(given, ui)?),
        None => recorded.map(Value::to_string),
    };
    let options = parse(entry.definition.options.json(), given.pairs, document.as_deref());
    options.map_err(|source| Failure::Options { brain: entry.definition.title.clone(), source })
}

/// Says what to do where runs cannot be kept.
pub(super) fn unkept(failure: &Failure) -> Failure {
    let hint = "--store FILE keeps runs elsewhere, and --memory runs it without keeping it";
    Failure::Store { message: failure.to_string(), hints: vec![hint.to_owned()] }
}

pub(crate) fn refused(error: StartError) -> Failure {
    match error {
        StartError::Started { run, differs } => {
            let differs: Vec<_> = differs.iter().map(ToString::to_string).collect();
            let message = format!("the run `{run}` is another one: {}", differs.join(", "));
            let hint = "the same id starts one run; give this one another id".to_owned();
            Failure::Refused { message, hints: vec![hint] }
        }
        StartError::Store(error) => error.into(),
        other => Failure::Run { message: other.to_string() },
    }
}

/// Writes what was recorded, however the run ended.
pub(super) fn save(models: &Models, record: Option<&Path>, ui: &mut Ui) -> Result<(), Failure> {
    let (Tape::Records(cassette), Some(path)) = (&models.tape, record) else { return Ok(()) };
    private::write(path, cassette.to_text().as_bytes()).map_err(|source| Failure::File {
        path: path.to_owned(),
        doing: "cannot be written",
        source,
    })?;
    ui.notice(&format!("recorded to {}", path.display()))?;
    Ok(())
}
