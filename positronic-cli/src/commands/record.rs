//! `positronic record`: a run as a cassette that plays without a key.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::block_on;
use super::conversations::refuse_known;
use crate::atomic_write::replace;
use crate::cli::{ModelArgs, RecordArgs};
use crate::endpoint::{secrets, unhidden};
use crate::failure::{Exit, Failure};
use crate::find::find;
use crate::kept::Kept;
use crate::recording::recording;
use crate::ui::Ui;

pub(crate) fn record(args: &RecordArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let to_file = args.file.as_deref().filter(|file| file.as_os_str() != "-");
    refuse_known(to_file, args.force)?;
    let kept = Kept::look(ui)?;
    let secrets = secrets(&ModelArgs::default(), &ui.settings);
    if let Some(warning) = unhidden(&secrets) {
        ui.notice(&warning)?;
    }
    let (row, text) = block_on(async {
        let row = find(&kept, &args.run, ui).await?;
        let text = recording(&kept, &row.run, secrets, |_| None).await?;
        Ok::<_, Failure>((row, text))
    })?;
    match to_file {
        Some(file) => written(file, &text, &row.brain, ui)?,
        None => write!(ui.out, "{text}")?,
    }
    Ok(Exit::Done)
}

/// Writes a cassette, and says how it is played.
pub(super) fn written(file: &Path, text: &str, brain: &str, ui: &mut Ui) -> Result<(), Failure> {
    let refuse = |source| Failure::File { path: PathBuf::from(file), doing: "cannot be written", source };
    replace(file, text).map_err(refuse)?;
    let file = file.display().to_string();
    let play = ui.command(&["run", brain, "--cassette", &file]);
    ui.notice(&format!("recorded to {file}; play it with: {play}"))?;
    Ok(())
}
