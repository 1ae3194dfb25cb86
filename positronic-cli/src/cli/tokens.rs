//! Arguments of `token`.

use std::time::Duration;

use clap::{Args, Subcommand};
use positronic_server::Scope;

use super::value_parsers::{age, name};

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create an access token for the API of `serve`, and print it once
    Create(TokenCreateArgs),
    /// List the access tokens, without their secrets
    List(TokenListArgs),
    /// Revoke an access token
    Revoke(TokenRevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreateArgs {
    /// Name of the holder in the log of runs
    #[arg(value_name = "NAME", value_parser = name)]
    pub(crate) subject: String,
    /// Rights: read, run, decide, playground, operate, admin; repeatable, or separated by commas
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', default_value = "read", value_parser = scope)]
    pub(crate) scope: Vec<Scope>,
    /// The user for whom the holder acts: without the scope operate, it sees only the runs of that user [default: none, so it
    /// sees the runs of all users]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) user: Option<String>,
    /// Title of a brain of which the holder may start runs; repeatable, or separated by commas [default: all brains]
    #[arg(long, value_name = "TITLE", value_delimiter = ',', value_parser = name)]
    pub(crate) brains: Vec<String>,
    /// Time until the token expires, such as 30d [default: never]
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub(crate) expires: Option<Duration>,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenListArgs {
    /// Write JSON, one token per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArgs {
    /// The id of the token, as `token list` shows it
    pub(crate) id: String,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn scope(text: &str) -> Result<Scope, String> {
    let all = || Scope::ALL.map(Scope::as_str).join(", ");
    Scope::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or_else(|| format!("expected one of {}", all()))
}
