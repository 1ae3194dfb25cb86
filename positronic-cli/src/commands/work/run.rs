//! `positronic work`: goes on with a run that nobody works on, or serves all of them.

use std::time::Duration;

use positronic_core::record::{EventKind, RunSummary, Seq};
use positronic_core::runner::{ResumeError, Runner};
use positronic_core::store::StoreError;

use super::serve::serve;
use crate::app::endpoint::{secrets, unhidden};
use crate::app::failure::Failure;
use crate::app::find::find;
use crate::app::models::CassetteSession;
use crate::app::models::models_of;
use crate::app::prices::prices;
use crate::app::project::Project;
use crate::app::recording::recording;
use crate::app::recording::written;
use crate::app::runtime::block_on;
use crate::app::store::ProjectStore;
use crate::app::ui::Ui;
use crate::cli::WorkArgs;
use crate::cli::exit::Exit;
use crate::session::driver::{Role, SessionOptions, session};
use crate::session::outcome::ended;

pub(crate) fn work(project: &Project, args: &WorkArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    ui.goes_on_unread();
    let Some(run) = &args.run else { return serve(project, args, ui) };
    let kept = ProjectStore::known(ui)?;
    let row = block_on(find(&kept, run, ui))?;
    let models = models_of(project, &args.model, &row.brain, &ui.settings)?;
    if let Some(notice) = &models.notice {
        ui.notice(notice)?;
    }
    if let (CassetteSession::Plays(_), Some(model)) = (&models.tape, block_on(wanted(&kept, &row))?) {
        ui.notice(&format!("the fork is to ask the model {model}; a cassette answers in its place"))?;
    }
    ui.prices = Some(prices(args.model.prices.as_deref(), &ui.settings)?);
    let actor = ui.actor(None);
    let sitting = SessionOptions {
        tape: &models.tape,
        // Whoever only works does not decide for people.
        played: false,
        actor: &actor,
        lasts: true,
        role: Role::Works,
        plain: args.plain,
        json: args.json,
        several: false,
    };
    let runner = models.runner(project, &kept);
    let watch = ui.command(&["watch", row.run.as_str()]);
    let fork = ui.command(&["fork", row.run.as_str(), "--at"]);
    let anew = ui.command(&["run", &row.brain]);
    let begin = async |runner: Runner| {
        models.wind(&kept, &row.run).await?;
        match runner.resume(&row.run).await {
            Err(error @ ResumeError::Changed { .. }) => {
                let mut failure = refused(&error, &watch);
                if let Failure::Refused { hints, .. } = &mut failure {
                    hints.push(match runner.fork_point(&row.run).await? {
                        Some(at) => format!("the new code fits up to event {at}; a fork goes on from there: {fork} {at}"),
                        None => format!(
                            "the new code fits no part of it: declare with Brain::migrate how it gets there, or begin anew \
                             with: {anew}"
                        ),
                    });
                }
                Err(failure)
            }
            resumed => resumed.map_err(|error| refused(&error, &watch)),
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ending = runtime.block_on(session(&runner, begin, &sitting, ui));
    runtime.shutdown_timeout(Duration::from_secs(1));
    if let Some(file) = &args.record {
        let hidden = secrets(&args.model, &ui.settings);
        if let Some(warning) = unhidden(&hidden) {
            ui.notice(&warning)?;
        }
        let text = block_on(recording(&kept, &row.run, hidden, |outputs| models.normal.project(outputs)))?;
        written(file, &text, &row.brain, ui)?;
    }
    let (run, ending) = ending?;
    block_on(ended(&kept, &run, ending, &CassetteSession::None, args.json, ui))
}

/// Returns the model that a fork is to ask, whatever its brain says.
async fn wanted(kept: &ProjectStore, row: &RunSummary) -> Result<Option<String>, StoreError> {
    let first = kept.client().store().read(&row.run, Seq(0), 1).await?;
    let start = first.first().and_then(|event| match &event.kind {
        EventKind::BrainStart(begin) => begin.start.as_ref(),
        _ => None,
    });
    Ok(start.and_then(|start| start.overrides.model.clone()))
}

/// Says why a run is not gone on with.
fn refused(error: &ResumeError, watch: &str) -> Failure {
    let hint = match error {
        ResumeError::Store(error) => return error.clone().into(),
        ResumeError::Illegal(_) | ResumeError::Panicked { .. } | ResumeError::Services { .. } => {
            return Failure::Run { message: error.to_string() };
        }
        ResumeError::Claimed { .. } => format!("`{watch}` shows what it does"),
        ResumeError::Over { .. } => format!("`{watch}` shows how it ended"),
        ResumeError::Prices { .. } => "name its table with --prices FILE or in POSITRONIC_PRICES".to_owned(),
        _ => String::new(),
    };
    let hints = if hint.is_empty() { Vec::new() } else { vec![hint] };
    Failure::Refused { message: error.to_string(), hints }
}
