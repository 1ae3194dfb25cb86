//! `positronic work RUN`: claims and continues a run.

use positronic_core::record::{EventKind, RunSummary, Seq};
use positronic_core::runner::{ResumeError, Runner};
use positronic_core::store::StoreError;

use super::all_runs::serve;
use crate::app::{
    CassetteSession, Failure, Project, ProjectStore, Ui, Unread, find_run, models_for_run, price_table, recording,
    secrets, short_secret_warning, write_recording,
};
use crate::cli::{Exit, WorkArgs};
use crate::session::{Role, SessionOptions, ended, session};

pub(crate) async fn work(project: &Project, args: &WorkArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let Some(run) = &args.run else {
        ui.outlive_readers(Unread::IsDropped);
        return serve(project, args, ui).await;
    };
    ui.outlive_readers(Unread::IsKept);
    let store = ProjectStore::open_existing(ui).await?;
    let row = find_run(&store, run, ui).await?;
    let mut models = models_for_run(project, &args.model, &row.brain, &ui.settings)?;
    if let Some(notice) = &models.notice {
        ui.notice(notice)?;
    }
    if let (CassetteSession::Plays(_), Some(model)) = (&models.cassette, wanted(&store, &row).await?) {
        ui.notice(&format!("the fork is set to the model {model}, but a cassette answers in its place"))?;
    }
    ui.prices = Some(price_table(args.model.prices.as_deref(), &ui.settings)?);
    let actor = ui.actor(None);
    let (_, name_run) = models.in_one_run(&store);
    name_run.name(&row.run);
    // `work` never decides for people.
    let options =
        SessionOptions { cassette: &models.cassette, ..SessionOptions::new(Role::Works, &actor, args.output) };
    let runner = models.runner(project, &store);
    let watch = ui.command(&["watch", row.run.as_str()]);
    let fork = ui.command(&["fork", row.run.as_str(), "--at"]);
    let restart = ui.command(&["run", &row.brain]);
    let begin = async |runner: Runner| {
        models.can_continue(&store, &row.run).await?;
        match runner.resume(&row.run).await {
            Err(error @ ResumeError::Changed { .. }) => {
                Err(refused(&error, &watch).hint(match runner.fork_point(&row.run).await? {
                    Some(at) => format!("the new code matches the log up to event {at}; fork the run there with: {fork} {at}"),
                    None => format!(
                        "the new code matches no part of the log: declare a migration with .migrate(…), or start a new run \
                         with: {restart}"
                    ),
                }))
            }
            resumed => resumed.map_err(|error| refused(&error, &watch)),
        }
    };
    let ending = session(&runner, begin, &options, ui).await;
    if let Some(file) = &args.record {
        let hidden = secrets(&args.model, &ui.settings);
        if let Some(warning) = short_secret_warning(&hidden) {
            ui.notice(&warning)?;
        }
        let text = recording(&store.client(), &row.run, hidden, |outputs| models.normal.project(outputs)).await?;
        write_recording(file, &text, &row.brain, ui)?;
    }
    let (run, ending) = ending?;
    ended(&store, &run, ending, None, args.output.json, ui).await
}

/// Returns the model that a fork sets instead of its brain's.
async fn wanted(kept: &ProjectStore, row: &RunSummary) -> Result<Option<String>, StoreError> {
    let first = kept.client().store().read(&row.run, Seq(0), 1).await?;
    let start = first.first().and_then(|event| match &event.kind {
        EventKind::BrainStart(begin) => begin.start.as_ref(),
        _ => None,
    });
    Ok(start.and_then(|start| start.overrides.model.clone()))
}

/// Explains why a run cannot be continued.
fn refused(error: &ResumeError, watch: &str) -> Failure {
    let hint = match error {
        ResumeError::Store(error) => return error.clone().into(),
        ResumeError::Illegal(_) | ResumeError::Panicked { .. } | ResumeError::Services { .. } => {
            return Failure::environment(error);
        }
        ResumeError::Claimed { .. } => format!("`{watch}` shows what it does"),
        ResumeError::Over { .. } => format!("`{watch}` shows how it ended"),
        ResumeError::Prices { .. } => "name its table with --prices FILE or in POSITRONIC_PRICES".to_owned(),
        _ => return Failure::refused(error),
    };
    Failure::refused(error).hint(hint)
}
