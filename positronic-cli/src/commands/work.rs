//! `positronic work`: goes on with a run that nobody works on, or serves all of them.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::RunSummary;
use positronic_core::runner::{ResumeError, Runner};
use serde_json::Value;

use super::block_on;
use super::outcome::ended;
use super::serve::serve;
use crate::cli::{ModelArgs, WorkArgs};
use crate::failure::{Exit, Failure};
use crate::find::find;
use crate::kept::Kept;
use crate::models::{Models, Tape, Wanted, cassette, choose};
use crate::project::Project;
use crate::rewind::rewind;
use crate::session::{Role, Sitting, session};
use crate::ui::Ui;

pub(crate) fn work(project: &Project, args: &WorkArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let Some(written) = &args.run else { return serve(project, args, ui) };
    let kept = Kept::known(ui)?;
    let row = block_on(find(&kept, written, ui))?;
    let models = models(project, &args.model, &row, ui)?;
    if let Some(notice) = &models.notice {
        ui.notice(notice)?;
    }
    let actor = ui.actor(None);
    let sitting = Sitting {
        tape: &models.tape,
        // Whoever only works does not decide for people.
        played: false,
        actor: &actor,
        lasts: true,
        role: Role::Works,
        plain: args.plain,
        json: args.json,
    };
    let runner = models.runner(project, &kept);
    let watch = ui.command(&["watch", row.run.as_str()]);
    let begin = async |runner: Runner| {
        wind(&models, &kept, &row).await?;
        runner.resume(&row.run).await.map_err(|error| refused(&error, &watch))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ending = runtime.block_on(session(&runner, begin, &sitting, ui));
    runtime.shutdown_timeout(Duration::from_secs(1));
    let (run, ending) = ending?;
    ended(&kept, &run, ending, &Tape::None, args.json, ui)
}

/// Chooses the models for a run.
pub(super) fn models(project: &Project, model: &ModelArgs, row: &RunSummary, ui: &Ui) -> Result<Models, Failure> {
    let entry = project.titled(&row.brain)?;
    let wanted = Wanted { model, record: None };
    let playing = cassette(project, entry, wanted, &ui.settings)?;
    choose(project, entry, wanted, &Value::Null, playing, &ui.settings)
}

/// Winds the cassette that is played on to where the run is.
pub(super) async fn wind(models: &Models, kept: &Kept, row: &RunSummary) -> Result<(), Failure> {
    match &models.tape {
        Tape::Plays(cassette) => rewind(&Arc::clone(cassette), kept, &row.run).await,
        Tape::None | Tape::Records(_) => Ok(()),
    }
}

/// Says why a run is not gone on with.
pub(super) fn refused(error: &ResumeError, watch: &str) -> Failure {
    let hint = match error {
        ResumeError::Store(error) => return error.clone().into(),
        ResumeError::Failed(message) => return Failure::Run { message: message.clone() },
        ResumeError::Held { .. } => format!("`{watch}` shows what it does"),
        ResumeError::Over { .. } => format!("`{watch}` shows how it ended"),
        _ => String::new(),
    };
    let hints = if hint.is_empty() { Vec::new() } else { vec![hint] };
    Failure::Refused { message: error.to_string(), hints }
}
