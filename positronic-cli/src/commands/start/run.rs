//! `positronic run`: runs a brain.

use std::sync::Arc;

use positronic_core::record::{Event, EventKind, LoopOutcome, RunId, Seq, SignalId, Speaker, Start};
use positronic_core::runner::Runner;
use positronic_core::store::StoreError;

use crate::app::{
    Failure, ModelSettings, Prepared, Project, ProjectStore, Ui, Unread, attachments, check_accepts_messages,
    check_enforceable, message, open_store, prepare, price_table, save_recording, store_attachments,
};
use crate::cli::{Exit, RunArgs};
use crate::session::{Role, SessionOptions, ended, session};

pub(crate) async fn run(project: &Project, args: &RunArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    ui.outlive_readers(Unread::IsKept);
    let entry = project.find(&args.brain)?;
    if args.message.is_some() || !args.attach.is_empty() {
        let flag = if args.message.is_some() { "--message" } else { "--attach" };
        check_accepts_messages(entry, || format!("remove {flag}"))?;
    }
    let attached = attachments(&args.attach)?;
    let settings = ModelSettings { model: &args.model, record: args.record.as_deref() };
    let Prepared { options, mut models, .. } = prepare(project, entry, settings, &args.options, ui)?;
    let budget = args.budget.budget();
    let of_brain = format!("`{}` has a money limit", entry.definition.title);
    let budgets = [("--max-money is a money limit", budget.as_ref()), (&of_brain, entry.definition.budget.as_ref())];
    check_enforceable(&budgets, &models)?;
    let store = open_store(args.memory, ui).await?;
    if let Some(notice) = &models.notice {
        ui.notice(notice)?;
    }
    ui.prices = Some(price_table(args.model.prices.as_deref(), &ui.settings)?);
    let actor = ui.actor(None);
    let id = args.id.as_deref().map(SignalId::new);
    // Without an id of its own, the same message counts as the same start.
    let message = message(args.message.as_ref(), &attached);
    let (user, tags) = (args.user.clone(), args.tags.clone());
    let start = Start { id, user, tags, actor: actor.clone(), message, budget, ..Start::default() };
    let (played, name_run) = models.in_one_run(&store);
    // If people answer, the cassette's signals are unused.
    let people = played.as_deref().filter(|_| !args.ask);
    let session_options = SessionOptions {
        cassette: &models.cassette,
        people,
        lasts: store.is_persistent(),
        ..SessionOptions::new(Role::Runs, &actor, args.output)
    };
    let runner = models.runner(project, &store);
    let definition = Arc::clone(&entry.definition);
    let over = over(&store, args.id.as_deref()).await?;
    let begin = async |runner: Runner| {
        // A finished run needs no cassette.
        if let (Some(id), false) = (&start.id, over) {
            models.can_continue(&store, &RunId::new(id.as_str())).await?;
        }
        store_attachments(&attached, &store.client()).await?;
        let run = runner.start_definition(definition, options, start).await?;
        name_run.name(run.id());
        Ok(run)
    };
    let ending = session(&runner, begin, &session_options, ui).await;
    save_recording(&models, args.record.as_deref(), ui)?;
    let (run, ending) = ending?;
    if over {
        let show = ui.command(&["show", run.as_str()]);
        ui.notice(&format!("the run {run} was already over, and nothing was done; `{show}` shows it"))?;
    }
    let cassette = match people.filter(|_| !over) {
        Some(people) => people.at_position(&runner.worker().await?).await.ok(),
        None => None,
    };
    let exit = ended(&store, &run, ending, cassette, args.output.json, ui).await?;
    if over {
        return Ok(exit);
    }
    // The run is over; a hint needs no store.
    let log = store.client().events(&run, Seq(0)).await.unwrap_or_default();
    if ui.settings.stderr_is_terminal && !takes_options(&log) && answered_without_message(&log) {
        let title = &entry.definition.title;
        ui.notice(&format!("`{title}` got no message; send one with --message TEXT, or chat with it:"))?;
        ui.lines(&format!("  {}", ui.command(&["chat", title])))?;
    }
    Ok(exit)
}

fn takes_options(log: &[Arc<Event>]) -> bool {
    log.first().is_some_and(|event| matches!(&event.kind, EventKind::BrainStart(start) if !start.options.is_null()))
}

/// Returns whether the run's first loop answered or failed without a message of the brain or a person. A loop that a tool
/// ended has followed its instructions.
fn answered_without_message(log: &[Arc<Event>]) -> bool {
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

/// Returns whether the run of an id is already over.
async fn over(store: &ProjectStore, id: Option<&str>) -> Result<bool, Failure> {
    let Some(id) = id else { return Ok(false) };
    match store.client().store().run(&RunId::new(id)).await {
        Ok(row) => Ok(row.status.is_over()),
        Err(StoreError::NoSuchRun { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
