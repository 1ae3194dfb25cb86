//! `positronic watch`: a run, live, while it goes on elsewhere.

use std::time::Duration;

use positronic_core::runner::Runner;

use crate::app::failure::Failure;
use crate::app::find::find;
use crate::app::models::{CassetteSession, Models};
use crate::app::prices::prices;
use crate::app::project::Project;
use crate::app::runtime::block_on;
use crate::app::store::ProjectStore;
use crate::app::ui::Ui;
use crate::cli::WatchArgs;
use crate::cli::exit::Exit;
use crate::session::driver::{Ending, Role, SessionOptions, session};
use crate::session::outcome::{ended, left_by};

pub(crate) fn watch(args: &WatchArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = ProjectStore::look(ui)?;
    let row = block_on(find(&kept, &args.run, ui))?;
    ui.prices = Some(prices(None, &ui.settings)?);
    let actor = ui.actor(None);
    let sitting = SessionOptions {
        tape: &CassetteSession::None,
        played: false,
        actor: &actor,
        lasts: true,
        role: Role::Watches { until_waiting: args.until_waiting },
        plain: args.plain,
        json: args.json,
        several: false,
    };
    // It looks and does nothing, so it needs no brain and no model.
    let runner = Models::none().runner(&Project::new(), &kept);
    let begin = async |runner: Runner| Ok(runner.open(&row.run).await?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ending = runtime.block_on(session(&runner, begin, &sitting, ui));
    runtime.shutdown_timeout(Duration::from_secs(1));
    match ending? {
        (_, Ending::LetGo(told)) => Ok(left_by(told)),
        (run, ending) => block_on(ended(&kept, &run, ending, &CassetteSession::None, args.json, ui)),
    }
}
