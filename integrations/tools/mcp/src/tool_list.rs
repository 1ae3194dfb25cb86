//! A server's list of tools, validated and named.

use std::collections::HashMap;
use std::sync::Arc;

use positronic_core::record::{CallFlags, ToolDecl};
use positronic_core::tools::{Schema, foreign_description, foreign_schema};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::Value;

use super::connection::ServerTools;
use super::error::McpError;
use super::names::{NAME, printable, renamed, rest_of, tool_name};
use super::options::McpOptions;
use super::policy::Policy;
use super::server_identity::McpSeen;

/// A snapshot of a server's tools.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) tools: Vec<Arc<Listed>>,
    pub(super) seen: McpSeen,
    pub(super) instructions: Option<String>,
}

/// One tool.
#[derive(Debug)]
pub(super) struct Listed {
    /// The server's name for it.
    pub(super) tool: String,
    /// The name for models and people.
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: String,
    pub(super) schema: Arc<Schema>,
    pub(super) policy: Policy,
}

/// Validates and names a server's tools. A tool that cannot be offered is skipped, and a note says why. `is_first` states that the
/// options were not yet compared with a list.
///
/// # Errors
///
/// What the author has to change: an option that names no tool, a name that two tools would have, a tool of `only` that cannot be
/// offered, or a list of which no tool can.
pub(super) fn checked(
    server: &str,
    given: ServerTools,
    options: &McpOptions,
    is_first: bool,
) -> Result<(Vec<Arc<Listed>>, Vec<String>), McpError> {
    let ServerTools { tools, skipped, endless } = given;
    if is_first {
        names_exist(server, &tools, &skipped, options)?;
    }
    let mut notes: Vec<_> =
        endless.iter().map(|why| format!("the list of tools was not read to its end: {why}")).collect();
    let mut taken: HashMap<String, String> = HashMap::new();
    let (mut listed, mut first_skipped) = (Vec::new(), None);
    let unreadable = skipped.into_iter().map(|(tool, what)| (tool, Err(what)));
    let tools = tools.into_iter().map(|tool| (tool.name.to_string(), Ok(tool)));
    for (own, tool) in tools.chain(unreadable).filter(|(name, _)| is_used(name, options)) {
        let name = name_of(server, &own, options)?;
        let what = match tool.and_then(|tool| read(server, name.clone(), tool, options)) {
            Ok(tool) => match taken.get(&name) {
                None => {
                    taken.insert(name, own);
                    listed.push(Arc::new(tool));
                    continue;
                }
                Some(one) if options.renamed.iter().any(|(from, _)| *from == own || from == one) => {
                    let (one, other) = (printable(one, NAME), printable(&own, NAME));
                    return Err(McpError::SameName { server: server.to_owned(), one, other, name });
                }
                Some(one) => format!("the tool `{}` before it has the name `{name}`, too", printable(one, NAME)),
            },
            Err(what) => what,
        };
        let tool = printable(&own, NAME);
        if options.only.is_some() {
            return Err(McpError::Schema { server: server.to_owned(), tool, what });
        }
        notes.push(format!("the tool `{tool}` is skipped: {what}"));
        first_skipped.get_or_insert((tool, what));
    }
    if let (true, Some((tool, what))) = (listed.is_empty(), first_skipped) {
        return Err(McpError::Schema { server: server.to_owned(), tool, what });
    }
    for note in &notes {
        tracing::warn!(server, "an MCP server deviates from the protocol: {note}");
    }
    Ok((listed, notes))
}

fn is_used(tool: &str, options: &McpOptions) -> bool {
    let names = |list: &[String]| list.iter().any(|name| name == tool);
    options.only.as_deref().is_none_or(names) && !names(&options.without)
}

/// Rejects options with unknown tools: a typo in `without` would leave the tool in.
fn names_exist(
    server: &str,
    tools: &[Tool],
    skipped: &[(String, String)],
    options: &McpOptions,
) -> Result<(), McpError> {
    let renamed: Vec<_> = options.renamed.iter().map(|(from, _)| from.clone()).collect();
    let lists: [(&'static str, &[String]); 6] = [
        ("only", options.only.as_deref().unwrap_or_default()),
        ("without", &options.without),
        ("renamed", &renamed),
        ("read_only", &options.read_only),
        ("idempotent", &options.idempotent),
        ("unattended", &options.unattended),
    ];
    for (option, names) in lists {
        let exists = |name: &String| {
            tools.iter().any(|tool| tool.name == *name) || skipped.iter().any(|(skipped, _)| skipped == name)
        };
        if let Some(missing) = names.iter().find(|name| !exists(name)) {
            let known: Vec<_> = tools.iter().map(|tool| format!("`{}`", printable(&tool.name, NAME))).collect();
            let known = if known.is_empty() { "no tools".to_owned() } else { known.join(", ") };
            return Err(McpError::NoSuchTool { server: server.to_owned(), option, tool: missing.clone(), known });
        }
    }
    Ok(())
}

/// Returns the name of a tool for models and people.
fn name_of(server: &str, own: &str, options: &McpOptions) -> Result<String, McpError> {
    match options.renamed.iter().find(|(from, _)| from == own) {
        Some((_, to)) => renamed(server, own, to),
        None => Ok(tool_name(server, own)),
    }
}

/// Reads a tool's declaration; the error says why the tool cannot be offered.
fn read(server: &str, name: String, tool: Tool, options: &McpOptions) -> Result<Listed, String> {
    let own = tool.name.into_owned();
    let schema = foreign_schema(Value::Object(Arc::unwrap_or_clone(tool.input_schema)))?;
    let annotations = tool.annotations.as_ref();
    let policy = Policy::of(server, &own, options, annotations);
    let title = tool.title.or_else(|| annotations.and_then(|of| of.title.clone())).map(|title| printable(&title, NAME));
    let description = foreign_description(tool.description.as_deref().unwrap_or_default());
    Ok(Listed { tool: own, name, title, description, schema, policy })
}

/// Rebuilds a tool from the declaration in a log; `None` if it is not the server's. Its annotations are those of the log, the
/// author's options the current ones.
pub(super) fn recalled(server: &str, decl: &ToolDecl, options: &McpOptions) -> Option<Listed> {
    let name = decl.id.to_string();
    let other = options.renamed.iter().find(|(_, to)| *to == name).map(|(from, _)| from.clone());
    let tool = other.or_else(|| {
        let rest = rest_of(server, &name)?;
        let mut said = options.unattended.iter().chain(&options.read_only).chain(&options.idempotent);
        // A sanitized name can only be resolved by comparing it with the known names.
        Some(said.find(|own| tool_name(server, own) == name).map_or(rest, String::as_str).to_owned())
    })?;
    let CallFlags { read_only, idempotent, destructive, .. } = decl.flags;
    let claims = ToolAnnotations::new().read_only(read_only).idempotent(idempotent).destructive(destructive);
    let policy = Policy::of(server, &tool, options, options.trust_annotations.then_some(&claims));
    let schema = Arc::new(Schema::new(Value::clone(&decl.parameters)));
    Some(Listed { tool, name, title: decl.title.clone(), description: decl.description.clone(), schema, policy })
}
