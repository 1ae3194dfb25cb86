//! `positronic report`: a run as Markdown or JSON.

use std::sync::Arc;

use positronic_core::projection::timeline::Timeline;
use positronic_core::record::Seq;

use crate::app::{Failure, Ui, open_run, output_path, write_file};
use crate::cli::{Exit, ReportArgs};
use crate::render::report_markdown;

pub(crate) async fn report(args: &ReportArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let output_path = output_path(args.out.as_deref(), args.force)?;
    let prices = crate::app::price_table(args.prices.as_deref(), &ui.settings)?;
    let (client, row) = open_run(&args.run, ui).await?;
    let log = client.events(&row.run, Seq(0)).await?;
    let mut timeline = Timeline::new().priced(Arc::new(prices));
    log.iter().for_each(|event| timeline.apply(event));
    let text = || {
        let text = report_markdown(&timeline, &row);
        text.ok_or_else(|| Failure::environment(format!("the log of {} does not begin with a brain", row.run)))
    };
    let document = || serde_json::json!({"run": row, "timeline": timeline});
    let Some(file) = output_path else {
        if args.json {
            ui.document(&document())?;
        } else {
            ui.print(&text()?)?;
        }
        return Ok(Exit::Done);
    };
    let text = if args.json {
        serde_json::to_string_pretty(&document()).map_err(Failure::environment)? + "\n"
    } else {
        text()?
    };
    write_file(file, &text)?;
    ui.print(&format!("wrote the report of the run {} to {}", row.run, file.display()))?;
    Ok(Exit::Done)
}
