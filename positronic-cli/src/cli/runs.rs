//! Arguments of the commands for runs: listing, inspecting, copying.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use positronic_core::record::Status;

use super::brains::OutputArgs;
use super::value_parsers::{age, limit, name, over};

/// Notes in `runs --help`.
const RUNS: &str = "\
Search:
  status:failed,waiting   running, waiting, paused, completed, failed or cancelled; stuck, queued, sleeping, parked, 'cut off'
  brain:support           a brain's title or its beginning; case, spaces and dashes are ignored
  user:ann  tag:urgent    whom a run belongs to, and its tags
  conversation:ID         the runs of a conversation
  tool:refund             runs whose models have called a tool
  model:gpt-5-mini        runs in which a model has answered
  cost:>0.1               what the models have cost: >0.1, <=5, 0.1..5
  since:7d  before:today  runs with an event since a time, or none since: 90m, 24h, 7d, today, yesterday, 2026-11-27
  needs:decision          runs that wait for a person
  amount:249              an event with such a field; any other key
  leaks \"two words\"      words and texts, each in an event of the run; the beginning of an id, or 4 digits of its end

  The inspector page and the API read the same words. Quote them for the shell: runs 'status:failed cost:>0.1'.
  An argument with spaces and without a colon is one text: runs 'leaks now'

Only the project's own binary, such as `cargo run -- runs`, marks runs whose code has changed since their start: the \
`positronic` command does not build the project for this.";

#[derive(Debug, Args)]
#[command(after_help = RUNS)]
pub(crate) struct RunsArgs {
    /// Only runs that match a search, such as status:failed [default: all runs]
    #[arg(value_name = "SEARCH")]
    pub(crate) search: Vec<String>,
    /// Maximum number of entries
    #[arg(long, value_name = "NUMBER", default_value = "50", value_parser = limit, allow_negative_numbers = true)]
    pub(crate) limit: NonZeroUsize,
    /// Write JSON, one run per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    /// Maximum number of entries
    #[arg(long, value_name = "NUMBER", default_value = "50", value_parser = limit, allow_negative_numbers = true)]
    pub(crate) limit: NonZeroUsize,
    /// Also items that wait for webhooks
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the arguments of every call in full
    #[arg(long)]
    pub(crate) full: bool,
    /// List early webhooks instead, which are stored until a call waits for them
    #[arg(long, conflicts_with = "all")]
    pub(crate) mail: bool,
    /// Write JSON, one item per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The run [default: each run on which a worker works, until Ctrl-C]
    pub(crate) run: Option<String>,
    /// Also exit when the run waits
    #[arg(long)]
    pub(crate) until_waiting: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The run
    pub(crate) run: String,
    /// First event number
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) from: u64,
    /// Write JSON, one event per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// The run
    pub(crate) run: String,
    /// As of this event [default: the last one]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) at: Option<u64>,
    /// Show the next request to the model, as it was sent
    #[arg(long)]
    pub(crate) request: bool,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResultArgs {
    /// The run
    pub(crate) run: String,
    /// Wait until the run is over
    #[arg(long)]
    pub(crate) wait: bool,
    /// Write JSON with the run's status, also without a result
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run
    pub(crate) run: String,
    /// The file, or `-` [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// File with model prices for the run's cost, as TOML or JSON [default: POSITRONIC_PRICES, else a built-in table of
    /// 2026]
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Write JSON instead of Markdown
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("from").required(true).args(["at", "stage"]))]
pub(crate) struct ForkArgs {
    /// The run
    pub(crate) run: String,
    /// Last common event; events of the same append stay together
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) at: Option<u64>,
    /// Run this stage and all later ones again; a nested brain's stage is written as Survey/Ask
    #[arg(long, value_name = "NAME")]
    pub(crate) stage: Option<String>,
    /// Another model, for every loop from its next iteration on
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) model: Option<String>,
    /// Another system prompt, for every loop from its next iteration on
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Another option; finished steps have used the old one
    #[arg(short = 'o', value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// Result of a call that is open at the fork; @FILE reads a file, and - reads stdin
    #[arg(long = "result", value_name = "CALL=JSON", value_parser = result)]
    pub(crate) results: Vec<(String, String)>,
    /// Name of the person who forks [default: the environment's user]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) by: Option<String>,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// One run
    pub(crate) one: String,
    /// The other run
    pub(crate) other: String,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Only runs without an event for this time, such as 30d
    #[arg(long, value_name = "AGE", value_parser = age, allow_negative_numbers = true)]
    pub(crate) before: Duration,
    /// Only runs with this status: completed, failed or cancelled
    #[arg(long, value_parser = over(), value_delimiter = ',')]
    pub(crate) status: Vec<Status>,
    /// Only list the runs
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The new file
    #[arg(value_name = "FILE")]
    pub(crate) to: PathBuf,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The run
    pub(crate) run: String,
    /// The file, or `-` [default: stdout]
    pub(crate) file: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Write a summary as JSON; needs a file
    #[arg(long)]
    pub(crate) json: bool,
}

/// Notes in `record --help`.
const RECORD: &str = "\
The cassette contains each model request with its answer or failure, and the answers of people and webhooks, from the \
run's first event on. `run BRAIN --cassette FILE` plays it without a key. Keys and tokens are redacted, other texts \
of the model are not. Messages sent to the run while it ran are not played.";

#[derive(Debug, Args)]
#[command(after_help = RECORD)]
pub(crate) struct RecordArgs {
    /// The run
    pub(crate) run: String,
    /// The file, or `-` [default: stdout]
    pub(crate) file: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// The run
    pub(crate) run: String,
    /// Only files with these names
    pub(crate) names: Vec<String>,
    /// Save the files to this folder, which is created if missing; other content under a known name gets a number
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// Write JSON, one file per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TriggersArgs {
    /// Delete this trigger
    #[arg(long, value_name = "ID", value_parser = name)]
    pub(crate) delete: Option<String>,
    /// Only triggers that belong to this user
    #[arg(long, value_name = "NAME", conflicts_with = "delete")]
    pub(crate) user: Option<String>,
    /// Write JSON, one trigger per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// A file written by `export`; `-` for stdin
    pub(crate) file: PathBuf,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(feature = "serve")]
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A file written by `export`; `-` for stdin
    pub(crate) file: PathBuf,
    /// Address to listen on, of this machine only; port 0 chooses a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
}

/// Parses a call with its result.
fn result(text: &str) -> Result<(String, String), String> {
    let (call, value) = text.split_once('=').ok_or("expected CALL=JSON, such as Chat/0.0=12")?;
    Ok((call.to_owned(), value.to_owned()))
}
