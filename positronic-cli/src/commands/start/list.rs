//! `positronic list`: the project's brains and webhooks.

use std::io::Write as _;

use serde_json::json;

use crate::app::{Failure, Project, Ui};
use crate::cli::{Exit, ListArgs};
use crate::render::aligned;

pub(crate) fn list(project: &Project, args: &ListArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    if args.json {
        for entry in &project.brains {
            let definition = &entry.definition;
            let stages = definition.shape();
            let line = json!({"title": definition.title, "description": definition.description, "stages": stages});
            writeln!(ui.out, "{line}")?;
        }
        for webhook in &project.webhooks {
            let payload = webhook.payload_schema();
            let line =
                json!({"webhook": webhook.name(), "description": webhook.description(), "payload_schema": payload});
            writeln!(ui.out, "{line}")?;
        }
        return Ok(Exit::Done);
    }
    let pairs = project.brains.iter().map(|entry| &entry.definition);
    let pairs: Vec<_> = pairs.map(|brain| (brain.title.clone(), brain.description.clone())).collect();
    for line in aligned(&pairs) {
        writeln!(ui.out, "{line}")?;
    }
    if !project.webhooks.is_empty() {
        writeln!(ui.out, "\nWebhooks:")?;
        let pairs = project.webhooks.iter().map(|hook| (hook.name().to_owned(), hook.description().to_owned()));
        for line in aligned(&pairs.collect::<Vec<_>>()) {
            writeln!(ui.out, "{line}")?;
        }
    }
    if project.brains.is_empty() {
        ui.notice("the project has no brains; add one with `Project::brain`")?;
    }
    Ok(Exit::Done)
}
