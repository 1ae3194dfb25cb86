//! The release of what a command leaves at work when the run that it has shown is over.

use positronic_core::record::RunId;
use positronic_core::runner::Runner;

use crate::app::{Failure, Ui};

/// Lets the work in flight of other runs end, such as a child that undoes its stages, and releases these runs. Otherwise the process
/// would end in the middle of an effect, which the next worker would repeat. Names the command that continues each.
pub(crate) async fn release_others(runner: &Runner, shown: &RunId, ui: &mut Ui) -> Result<(), Failure> {
    let release = runner.release().await;
    for run in release.released.iter().chain(&release.kept).filter(|run| *run != shown) {
        ui.notice(&format!("the run {run} goes on; continue it with: {}", ui.command(&["work", run.as_str()])))?;
    }
    Ok(())
}
