//! `positronic record`: a run as a cassette that plays without a key.

use std::io::Write as _;

use crate::app::{Failure, Ui, open_run, recording, secrets, to_file, unhidden, write_recording};
use crate::cli::{Exit, ModelArgs, RecordArgs};

pub(crate) async fn record(args: &RecordArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let to_file = to_file(args.file.as_deref(), args.force)?;
    let secrets = secrets(&ModelArgs::default(), &ui.settings);
    if let Some(warning) = unhidden(&secrets) {
        ui.notice(&warning)?;
    }
    let (client, row) = open_run(&args.run, ui).await?;
    let text = recording(&client, &row.run, secrets, |_| None).await?;
    match to_file {
        Some(file) => write_recording(file, &text, &row.brain, ui)?,
        None => write!(ui.out, "{text}")?,
    }
    Ok(Exit::Done)
}
