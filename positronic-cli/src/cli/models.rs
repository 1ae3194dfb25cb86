//! Arguments of `models`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::brains::{ENVIRONMENT, EndpointArgs};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = ENVIRONMENT)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) what: Option<ModelsCommand>,
    /// Write JSON, one provider per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Ask models for one tool call and one word, and print their time, tokens and cost
    Check(ModelsCheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ModelsCheckArgs {
    /// Models as PROVIDER/NAME [default: the models of both tiers, and the default model of each configured provider]
    #[arg(value_name = "MODEL")]
    pub(crate) models: Vec<String>,
    /// File with model prices, as TOML or JSON [default: POSITRONIC_PRICES]
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// Write JSON, one model per line
    #[arg(long)]
    pub(crate) json: bool,
}
