//! A run as a cassette, from its log: `record RUN`, and `work RUN --record FILE`.

use positronic_core::model::cassette::{Header, Recording};
use positronic_core::projection::{Exchange, Traffic, traffic};
use positronic_core::record::{EventKind, Message, Output, RunId, Seq};
use positronic_core::runner::Client;

use crate::app::{CassetteSession, Failure, Models, Ui, write_file};
use positronic_core::private;
use std::path::Path;

/// Renders the cassette of a run. `project` makes messages as the asked model does, and `secrets` are redacted.
pub(crate) async fn recording(
    client: &Client,
    run: &RunId,
    secrets: Vec<String>,
    project: impl FnMut(&[Output]) -> Option<Vec<Message>>,
) -> Result<String, Failure> {
    let log = client.events(run, Seq(0)).await?;
    let history = client.history(run).await?;
    let traffic = traffic(log.iter().map(|event| &**event), history, project).map_err(Failure::environment)?;
    let exchanges = || {
        traffic.iter().filter_map(|one| match one {
            Traffic::Exchange(exchange) => Some(&**exchange),
            _ => None,
        })
    };
    let Some(first) = exchanges().next() else {
        return Err(Failure::refused(format!("the run {run} asked no model; there is nothing to record")));
    };
    let options = match log.first().map(|event| &event.kind) {
        Some(EventKind::BrainStart(start)) => Some(start.options.clone()),
        _ => None,
    };
    let header = Header {
        note: Some(format!("recorded from the run {run}, which {} answered", models(exchanges()))),
        model: Some(first.model.clone()),
        options: options.filter(|options| !options.is_null()),
        action_format: exchanges().find_map(|exchange| exchange.form).unwrap_or_default(),
        ..Header::default()
    };
    let mut recording = Recording::new(header).hide(secrets);
    for one in &traffic {
        match one {
            Traffic::Exchange(exchange) => recording.exchange(&exchange.request, &exchange.outcome),
            Traffic::Signal { after, signal } => recording.signal(after.as_str(), signal),
            _ => {}
        }
    }
    Ok(recording.to_text())
}

/// Lists the names of the models without duplicates.
fn models<'a>(exchanges: impl Iterator<Item = &'a Exchange>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for exchange in exchanges {
        if !names.contains(&exchange.model.as_str()) {
            names.push(&exchange.model);
        }
    }
    names.join(" and ")
}

/// Writes a cassette, and prints the command that plays it.
pub(crate) fn write_recording(file: &Path, text: &str, brain: &str, ui: &mut Ui) -> Result<(), Failure> {
    write_file(file, text)?;
    let file = file.display().to_string();
    let play = ui.command(&["run", brain, "--cassette", &file]);
    ui.notice(&format!("recorded to {file}; play it with: {play}"))?;
    Ok(())
}

/// Writes the recorded cassette, however the run ended.
pub(crate) fn save_recording(models: &Models, record: Option<&Path>, ui: &mut Ui) -> Result<(), Failure> {
    let (CassetteSession::Records(cassette), Some(path)) = (&models.cassette, record) else { return Ok(()) };
    private::write(path, cassette.to_text().as_bytes()).map_err(Failure::file(path, "cannot write"))?;
    ui.notice(&format!("recorded to {}", path.display()))?;
    Ok(())
}
