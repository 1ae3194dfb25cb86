//! `positronic list`: the project's brains.

use std::io::Write as _;

use serde_json::json;

use crate::app::failure::Failure;
use crate::app::project::Project;
use crate::app::ui::Ui;
use crate::cli::ListArgs;
use crate::cli::exit::Exit;
use crate::render::text::width;

pub(crate) fn list(project: &Project, args: &ListArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    if args.json {
        for entry in &project.brains {
            let definition = &entry.definition;
            let stages = definition.shape();
            let line = json!({"title": definition.title, "description": definition.description, "stages": stages});
            writeln!(ui.out, "{line}")?;
        }
        return Ok(Exit::Done);
    }
    let titles = project.brains.iter().map(|entry| width(&entry.definition.title));
    let column = titles.max().unwrap_or(0);
    for entry in &project.brains {
        let definition = &entry.definition;
        let gap = " ".repeat(column - width(&definition.title).min(column));
        let line = format!("{}{gap}  {}", definition.title, definition.description);
        writeln!(ui.out, "{}", line.trim_end())?;
    }
    if project.brains.is_empty() {
        ui.notice("the project has no brains; add one with `Project::brain`")?;
    }
    Ok(Exit::Done)
}
