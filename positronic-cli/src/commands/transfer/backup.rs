//! `positronic backup`: copies the store into a file.

use serde_json::json;

use crate::app::{Failure, ProjectStore, Ui, relative};
use crate::cli::{BackupArgs, Exit};

pub(crate) async fn backup(args: &BackupArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let location = ProjectStore::back_up(&args.to, ui).await?;
    let bytes = std::fs::metadata(&args.to).map_err(Failure::file(&args.to, "cannot read"))?.len();
    if args.json {
        ui.json_line(&json!({"store": location, "file": args.to, "bytes": bytes}))?;
    } else {
        ui.notice(&format!("copied the store {location} to {} ({bytes} bytes)", relative(&args.to)))?;
    }
    Ok(Exit::Done)
}
