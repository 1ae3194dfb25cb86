//! `positronic run`: a brain, from its options to its result.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::{Event, EventKind, LoopOutcome, Opening, RunId, Seq, SignalId, Speaker, Start};
use positronic_core::runner::Runner;
use positronic_core::store::StoreError;

use crate::app::cassette_position::rewind;
use crate::app::failure::Failure;
use crate::app::models::{CassetteSession, Playing, Wanted, cassette, choose};
use crate::app::money_limit::{Limited, keepable};
use crate::app::prices::prices;
use crate::app::project::Project;
use crate::app::recording::save;
use crate::app::run_options::{Given, hears, options};
use crate::app::runtime::block_on;
use crate::app::store::ProjectStore;
use crate::app::store::unkept;
use crate::app::ui::Ui;
use crate::cli::RunArgs;
use crate::cli::exit::Exit;
use crate::session::driver::{Role, SessionOptions, session};
use crate::session::outcome::ended;

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
    let kept = if args.memory {
        ProjectStore::memory()
    } else {
        ProjectStore::open(ui).map_err(|failure| unkept(&failure))?
    };
    if let Some(notice) = &models.notice {
        ui.notice(notice)?;
    }
    ui.prices = Some(prices(args.model.prices.as_deref(), &ui.settings)?);
    let actor = ui.actor(None);
    let id = args.id.as_deref().map(SignalId::new);
    // The same words again are the same start.
    let message = args.message.clone().map(|text| Opening { text, id: None });
    let start = Start { id, user: args.user.clone(), actor: actor.clone(), message, budget, ..Start::default() };
    let sitting = SessionOptions {
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
        if let (Some(id), CassetteSession::Plays(cassette), false) = (&start.id, &models.tape, over) {
            rewind(cassette, &kept, &RunId::new(id.as_str())).await?;
        }
        Ok(runner.start_definition(definition, options, start).await?)
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
    let tape = if args.ask || over { &CassetteSession::None } else { &models.tape };
    let exit = block_on(ended(&kept, &run, ending, tape, args.json, ui))?;
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
fn over(kept: &ProjectStore, id: Option<&str>) -> Result<bool, Failure> {
    let Some(id) = id else { return Ok(false) };
    match block_on(async { Ok::<_, Failure>(kept.client().store().run(&RunId::new(id)).await) })? {
        Ok(row) => Ok(row.status.is_over()),
        Err(StoreError::NoSuchRun { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
