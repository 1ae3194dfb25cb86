//! `positronic record`: a run as a cassette that plays without a key.

use std::io::Write as _;

use crate::app::{Failure, Ui, open_run, output_path, recording, secrets, short_secret_warning, write_recording};
use crate::cli::{Exit, ModelArgs, RecordArgs};

pub(crate) async fn record(args: &RecordArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let output_path = output_path(args.file.as_deref(), args.force)?;
    let secrets = secrets(&ModelArgs::default(), &ui.settings);
    if let Some(warning) = short_secret_warning(&secrets) {
        ui.notice(&warning)?;
    }
    let (client, row) = open_run(&args.run, ui).await?;
    let text = recording(&client, &row.run, secrets, |_| None).await?;
    match output_path {
        Some(file) => write_recording(file, &text, &row.brain, ui)?,
        None => write!(ui.out, "{text}")?,
    }
    Ok(Exit::Done)
}
