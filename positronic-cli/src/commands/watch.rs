//! `positronic watch`: a run, live, while it goes on elsewhere.

use std::time::Duration;

use positronic_core::runner::Runner;

use super::block_on;
use super::outcome::{ended, left_by};
use crate::cli::WatchArgs;
use crate::failure::{Exit, Failure};
use crate::find::find;
use crate::kept::Kept;
use crate::models::{Models, Tape};
use crate::prices::prices;
use crate::project::Project;
use crate::session::{Ending, Role, Sitting, session};
use crate::ui::Ui;

pub(crate) fn watch(args: &WatchArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = Kept::look(ui)?;
    let row = block_on(find(&kept, &args.run, ui))?;
    ui.prices = Some(prices(None, &ui.settings)?);
    let actor = ui.actor(None);
    let sitting = Sitting {
        tape: &Tape::None,
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
        (run, ending) => ended(&kept, &run, ending, &Tape::None, args.json, ui),
    }
}
