//! Commands about runs: lists, looks, copies.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use positronic_core::record::Status;

use super::values::{age, most, name, number, over, status};

/// What `runs --help` says.
const RUNS: &str = "\
A run whose code has changed since it began is marked by the project's own binary alone, such as `cargo run -- runs`: the \
`positronic` command does not build the project to look.";

#[derive(Debug, Args)]
#[command(after_help = RUNS)]
pub(crate) struct RunsArgs {
    /// Only runs with this status; several can be named
    #[arg(long, value_parser = status(), value_delimiter = ',')]
    pub(crate) status: Vec<Status>,
    /// Only runs of the brain with this title; case, blanks and dashes do not matter
    #[arg(long, value_name = "TITLE")]
    pub(crate) brain: Option<String>,
    /// Only runs that belong to this user
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Only runs in which something has happened in the last time, such as 2d
    #[arg(long, value_name = "AGE", value_parser = age, allow_negative_numbers = true)]
    pub(crate) since: Option<Duration>,
    /// Only runs in which nothing has happened for a time, such as 30d
    #[arg(long, value_name = "AGE", value_parser = age, allow_negative_numbers = true)]
    pub(crate) before: Option<Duration>,
    /// Only runs with this text in their events
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// No more than so many
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = most, allow_negative_numbers = true)]
    pub(crate) limit: usize,
    /// Writes JSON, a line a run
    #[arg(long)]
    pub(crate) json: bool,
}

impl RunsArgs {
    /// Says whether some runs are left out.
    pub(crate) const fn is_narrowed(&self) -> bool {
        !self.status.is_empty()
            || self.brain.is_some()
            || self.user.is_some()
            || self.since.is_some()
            || self.before.is_some()
            || self.search.is_some()
    }
}

#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    /// No more than so many
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = most, allow_negative_numbers = true)]
    pub(crate) limit: usize,
    /// Also what waits for machines: webhooks
    #[arg(long)]
    pub(crate) all: bool,
    /// Writes the arguments of every call whole, however many rows they take
    #[arg(long)]
    pub(crate) full: bool,
    /// What waits the other way round: webhooks that came early, and are kept until a call waits for them
    #[arg(long, conflicts_with = "all")]
    pub(crate) mail: bool,
    /// Writes JSON, a line for each that waits
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The run
    pub(crate) run: String,
    /// Ends when the run waits, too
    #[arg(long)]
    pub(crate) until_waiting: bool,
    /// Writes every event as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Tells the progress line by line
    #[arg(long)]
    pub(crate) plain: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The run
    pub(crate) run: String,
    /// From this number on
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = number, allow_negative_numbers = true)]
    pub(crate) from: u64,
    /// Writes JSON, a line an event
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// The run
    pub(crate) run: String,
    /// As of this event; as of the last one where nothing is said
    #[arg(long, value_name = "NUMBER", value_parser = number, allow_negative_numbers = true)]
    pub(crate) at: Option<u64>,
    /// Shows the next request to the model, as it was sent
    #[arg(long)]
    pub(crate) request: bool,
    /// Writes JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run
    pub(crate) run: String,
    /// The file; stdout where none is named, and for `-`
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replaces the file that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// The prices that its cost is reckoned with, as TOML or JSON; the environment's POSITRONIC_PRICES, or a small table of
    /// March 2026, where nothing is said
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Writes JSON in place of Markdown
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("from").required(true).args(["at", "stage"]))]
pub(crate) struct ForkArgs {
    /// The run
    pub(crate) run: String,
    /// The last event that both have in common; what was written with it at once stays with it
    #[arg(long, value_name = "NUMBER", value_parser = number, allow_negative_numbers = true)]
    pub(crate) at: Option<u64>,
    /// Runs this stage again, and what comes after it; one of a nested brain is written Survey/Ask
    #[arg(long, value_name = "NAME")]
    pub(crate) stage: Option<String>,
    /// Names another model, for every loop from its next iteration on
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) model: Option<String>,
    /// Another system prompt, for every loop from its next iteration on
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Another option; what is done already has read the old one
    #[arg(short = 'o', value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// The result of a call that is open at the fork; @FILE and - are read
    #[arg(long = "result", value_name = "CALL=JSON", value_parser = result)]
    pub(crate) results: Vec<(String, String)>,
    /// Who forks; the user of the environment where nothing is said
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) by: Option<String>,
    /// Writes JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// One run
    pub(crate) one: String,
    /// The other run
    pub(crate) other: String,
    /// Writes JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Only runs in which nothing has happened for this time, such as 30d
    #[arg(long, value_name = "AGE", value_parser = age, allow_negative_numbers = true)]
    pub(crate) before: Duration,
    /// Only runs that ended so: completed, failed or cancelled
    #[arg(long, value_parser = over(), value_delimiter = ',')]
    pub(crate) status: Vec<Status>,
    /// Only says which runs those are
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Writes JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The run
    pub(crate) run: String,
    /// The file; stdout where none is named, and for `-`
    pub(crate) file: Option<PathBuf>,
    /// Replaces the file that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Writes what was done as JSON, where a file is named
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `record --help` says.
const RECORD: &str = "\
The cassette holds each request to a model with its answer or failure, and what people and webhooks answered, from the \
run's first event on. `run BRAIN --cassette FILE` plays it without a key. Keys and tokens are hidden in it, what else \
the model read and wrote is not. Messages that were sent to the run while it ran are not played.";

#[derive(Debug, Args)]
#[command(after_help = RECORD)]
pub(crate) struct RecordArgs {
    /// The run
    pub(crate) run: String,
    /// The file; stdout where none is named, and for `-`
    pub(crate) file: Option<PathBuf>,
    /// Replaces the file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// The run
    pub(crate) run: String,
    /// Only files of these names
    pub(crate) names: Vec<String>,
    /// Writes the files into this folder, which is made where there is none
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// Replaces files that are there
    #[arg(long, requires = "save")]
    pub(crate) force: bool,
    /// Writes JSON, a line a file
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TriggersArgs {
    /// Takes this trigger back
    #[arg(long, value_name = "ID", value_parser = name)]
    pub(crate) delete: Option<String>,
    /// Only those that belong to this user
    #[arg(long, value_name = "NAME", conflicts_with = "delete")]
    pub(crate) user: Option<String>,
    /// Writes JSON, a line a trigger
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file that `export` has written; `-` for stdin
    pub(crate) file: PathBuf,
    /// Writes JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a call with its result.
fn result(text: &str) -> Result<(String, String), String> {
    let (call, value) = text.split_once('=').ok_or("expected CALL=JSON, such as Chat/0.0=12")?;
    Ok((call.to_owned(), value.to_owned()))
}
