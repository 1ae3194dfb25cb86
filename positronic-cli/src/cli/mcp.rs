//! The flags of `mcp`.

use clap::Args;

use super::brains::{ENVIRONMENT, ModelArgs};
use super::value_parsers::name;

/// Notes in `mcp --help`.
const MCP: &str = "\
An MCP client such as an editor or a chat application starts this command and speaks to it over stdin and stdout. It gets each brain \
as a tool, and shows its user what a run asks. The command also works on the runs of the store as `work` does, until the client \
closes its streams. `serve --bridge mcp` is the same over HTTP.";

#[derive(Debug, Args)]
#[command(after_help = format!("{MCP}\n\n{ENVIRONMENT}"))]
pub(crate) struct McpArgs {
    /// Title of a brain that is a tool; repeatable [default: all brains]
    #[arg(long, value_name = "TITLE", value_parser = name)]
    pub(crate) brain: Vec<String>,
    /// The user for whom the client acts, in the log and as the owner of its runs [default: USER]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}
