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
            let (name, payload) = (webhook.name(), webhook.payload_schema());
            let (starts, waits) = (project.started_by(name), project.waiting_for(name));
            let description = webhook.description();
            let line = json!({
                "webhook": name, "description": description, "payload_schema": payload, "starts": starts, "waits": waits,
            });
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
        let pairs = project.webhooks.iter().map(|hook| {
            let name = hook.name();
            let starts = project.started_by(name).into_iter().map(|brain| format!("starts {brain}"));
            let waits = project.waiting_for(name).into_iter().map(|brain| format!("{brain} waits for it"));
            let uses: Vec<_> = starts.chain(waits).collect();
            let text = [hook.description(), &uses.join("; ")].join("  ");
            (name.to_owned(), text.trim().to_owned())
        });
        for line in aligned(&pairs.collect::<Vec<_>>()) {
            writeln!(ui.out, "{line}")?;
        }
    }
    if project.brains.is_empty() {
        ui.notice("the project has no brains; add one with `Project::brain`")?;
    }
    Ok(Exit::Done)
}
