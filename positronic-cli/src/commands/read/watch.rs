//! `positronic watch`: the progress of a run that another process works on.

use positronic_core::runner::Runner;

use crate::app::{CassetteSession, Failure, Models, Project, ProjectStore, Ui, Unread, find_run, price_table};
use crate::cli::{Exit, WatchArgs};
use crate::session::{Ending, Role, SessionOptions, ended, left_by, session};

pub(crate) async fn watch(args: &WatchArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    ui.detach_streams(Unread::IsKept);
    let store = ProjectStore::open_to_read(ui).await?;
    let row = find_run(&store, &args.run, ui).await?;
    ui.prices = Some(price_table(None, &ui.settings)?);
    let actor = ui.actor(None);
    let options = SessionOptions::new(Role::Watches { until_waiting: args.until_waiting }, &actor, args.output);
    // A watcher needs no brain and no model.
    let runner = Models::none().runner(&Project::new(), &store);
    let begin = async |runner: Runner| Ok(runner.open(&row.run).await?);
    match session(&runner, begin, &options, ui).await? {
        (_, Ending::Released(interrupt)) => Ok(left_by(interrupt)),
        (run, ending) => ended(&store, &run, ending, &CassetteSession::None, args.output.json, ui).await,
    }
}
