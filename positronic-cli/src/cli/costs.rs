//! The arguments of `costs`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::value_parsers::age;

/// What costs are summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostKey {
    /// The title of the brain whose run it is
    Brain,
    /// The model that answered
    Model,
    /// The user that the run belongs to
    User,
    /// The day of the answer, in UTC
    Day,
}

#[derive(Debug, Args)]
pub(crate) struct CostsArgs {
    /// What to sum up by, in this order; separated by commas
    #[arg(long, value_enum, value_name = "KEYS", value_delimiter = ',', default_values = ["brain", "model"])]
    pub(crate) by: Vec<CostKey>,
    /// Only answers within this time, such as 7d
    #[arg(long, value_name = "AGE", value_parser = age, allow_negative_numbers = true)]
    pub(crate) since: Option<Duration>,
    /// File with model prices, as TOML or JSON [default: POSITRONIC_PRICES, else a built-in table of 2026]
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Write JSON, one sum per line, the total last
    #[arg(long)]
    pub(crate) json: bool,
}
