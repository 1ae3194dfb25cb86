//! Cards of agents: the brains that the caller may start, as skills.

use std::sync::Arc;

use positronic_core::definition::BrainDefinition;
use positronic_server::extension::RequestContext;
use positronic_server::{Problem, ProblemType};
use serde_json::{Value, json};

use super::VERSION;
use crate::shared::Shared;

/// The extension that describes options, results and questions.
const EXTENSION: &str = "urn:positronic:a2a:v1";
/// The media types of messages and of artifacts.
pub(super) const MODES: [&str; 2] = ["text/plain", "application/json"];

/// Returns the card of the brain in the path, or of all brains.
///
/// # Errors
///
/// `UnknownBrain` if the caller may not start runs of the brain.
pub(super) fn card(cx: &RequestContext, shared: &Shared) -> Result<Value, Problem> {
    let mut brains = cx.brains()?;
    let (mut rpc, mut http) = (format!("{}/api/v1/a2a", cx.address()), format!("{}/api/v1/a2a-http", cx.address()));
    let (mut name, mut description, mut version) = (
        "positronic".to_owned(),
        "Runs the brains of this server; `message.metadata.skill` names the one of a new task.".to_owned(),
        "1".to_owned(),
    );
    if let Some(title) = title(cx) {
        brains.retain(|brain| brain.title == title);
        let brain = brains.first().ok_or_else(|| unknown(title))?;
        rpc = format!("{rpc}/{}", segment(title));
        http = rpc.clone();
        (name, description, version) = (title.to_owned(), described(brain), brain.version.to_string());
    }
    let schemas: serde_json::Map<_, _> = brains
        .iter()
        .map(|brain| {
            let result = brain.result_schema.as_ref().map(|schema| schema.json().clone());
            (brain.title.clone(), json!({ "options": brain.options.json(), "result": result }))
        })
        .collect();
    Ok(json!({
        "name": name,
        "description": description,
        "version": version,
        "supportedInterfaces": [
            { "url": rpc, "protocolBinding": "JSONRPC", "protocolVersion": VERSION },
            { "url": http, "protocolBinding": "HTTP+JSON", "protocolVersion": VERSION },
        ],
        "capabilities": {
            "streaming": true,
            "pushNotifications": shared.push_notifications,
            "extendedAgentCard": false,
            "extensions": [{
                "uri": EXTENSION,
                "description": "Schemas of the options and the results of the skills. A data part of the first message has the \
                                options; `INPUT_REQUIRED` has a data part for each question, with the schema of its response.",
                "required": false,
                "params": { "skills": schemas },
            }],
        },
        "securitySchemes": {
            "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer", "description": "A token of `positronic token create`." } },
        },
        "securityRequirements": [{ "schemes": { "bearer": { "list": [] } } }],
        "defaultInputModes": MODES,
        "defaultOutputModes": MODES,
        "skills": brains.iter().map(skill).collect::<Vec<_>>(),
    }))
}

fn skill(brain: &Arc<BrainDefinition>) -> Value {
    let modes = if has_loop(brain) { &MODES[..] } else { &MODES[1..] };
    json!({
        "id": brain.title,
        "name": brain.title,
        "description": described(brain),
        "tags": ["workflow"],
        "inputModes": modes,
    })
}

fn described(brain: &BrainDefinition) -> String {
    match brain.description.trim() {
        "" => format!("Runs the workflow {}", brain.title),
        description => description.to_owned(),
    }
}

/// Returns whether a brain takes a message.
pub(super) fn has_loop(brain: &BrainDefinition) -> bool {
    brain.stages.iter().any(|stage| stage.body.as_loop().is_some())
}

/// Returns the title in the path.
pub(super) fn title(cx: &RequestContext) -> Option<&str> {
    cx.param("title").ok()
}

pub(super) fn unknown(title: &str) -> Problem {
    Problem::new(ProblemType::UnknownBrain).detail(format!(
        "there is no brain `{title}` that this caller may start; `/.well-known/agent-card.json` lists them"
    ))
}

/// Encodes a title as a segment of a path.
fn segment(title: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    title.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn titles_are_encoded_as_segments_of_a_path() {
        assert_eq!(super::segment("Night watch/2 ü"), "Night%20watch%2F2%20%C3%BC");
    }
}
