//! Arguments of the commands that send signals to a run.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::value_parsers::{name, text};

/// Sender of a signal, and the output format.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct By {
    /// Name of the sender [default: the environment's user]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) by: Option<String>,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The run
    pub(crate) run: String,
    /// Calls such as Chat/0.1, or the limit question of a loop (its name) or of the whole run (.) [default: the only pending
    /// item]
    pub(crate) calls: Vec<String>,
    /// Amount to add to a reached limit: 20000 tokens, 10 iterations, 2.50 of money, or 10m of time
    #[arg(long, value_name = "AMOUNT", conflicts_with_all = ["args", "all"], allow_negative_numbers = true)]
    pub(crate) more: Option<String>,
    /// Edited arguments for the call; @FILE reads a file, and - reads stdin
    #[arg(long, value_name = "JSON", conflicts_with = "all")]
    pub(crate) args: Option<String>,
    /// All calls of the run that wait for an approval
    #[arg(long, conflicts_with = "calls")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    /// The run
    pub(crate) run: String,
    /// Calls such as Chat/0.1, or the limit question of a loop (its name) or of the whole run (.) [default: the only pending
    /// item]
    pub(crate) calls: Vec<String>,
    /// Reason; the model reads it
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// All calls of the run that wait for an approval
    #[arg(long, conflicts_with = "calls")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) by: By,
}

/// Notes in `send --help`.
const SEND: &str = "\
A webhook needs no run: it goes to the run that waits for it, starts one if the project says so, or is stored for seven days. `inbox --mail` \
lists stored webhooks, and `send --discard ID` deletes one.

A payload and an update are JSON; @FILE reads a file, and - reads stdin.";

/// Usage of `send`.
const SEND_USAGE: &str = "\
positronic send <RUN> --message <TEXT> [--attach <FILE|URL>]... [--loop <LOOP>]
       positronic send <RUN> --reply <CALL> <JSON>
       positronic send <RUN> --plugin <NAME> <JSON> [--loop <LOOP>]
       positronic send [RUN] --webhook <NAME> --identifier <ID> --payload <JSON>
       positronic send --discard <ID>";

#[derive(Debug, Args)]
#[command(
    after_help = SEND,
    override_usage = SEND_USAGE,
    group = ArgGroup::new("what").required(true).multiple(true).args(["message", "attach", "webhook", "reply", "plugin", "discard"])
)]
pub(crate) struct SendArgs {
    /// The run; not needed for a webhook
    #[arg(required_unless_present_any = ["webhook", "discard"])]
    pub(crate) run: Option<String>,
    /// Send this message to the open loop
    #[arg(long, value_name = "TEXT", value_parser = text, conflicts_with_all = ["webhook", "reply", "discard"])]
    pub(crate) message: Option<String>,
    /// Attach a file to the message, at most 32 MiB, or a URL that the model's provider loads; repeatable
    #[arg(long, value_name = "FILE|URL", conflicts_with_all = ["webhook", "reply", "discard"])]
    pub(crate) attach: Vec<PathBuf>,
    /// Deliver a webhook of this name
    #[arg(
        long,
        value_name = "NAME",
        requires = "identifier",
        requires = "payload",
        value_parser = name,
        conflicts_with_all = ["reply", "discard"]
    )]
    pub(crate) webhook: Option<String>,
    /// Identifier that distinguishes waits for the same webhook
    #[arg(long, value_name = "ID", requires = "webhook", value_parser = name)]
    pub(crate) identifier: Option<String>,
    /// Payload of the webhook; `null` for none
    #[arg(long, value_name = "JSON", requires = "webhook")]
    pub(crate) payload: Option<String>,
    /// Answer a call that waits for a reply
    #[arg(long, value_names = ["CALL", "JSON"], num_args = 2, conflicts_with = "discard")]
    pub(crate) reply: Option<Vec<String>>,
    /// Update the state of a plugin: its name, with that of the instance before it if it has one (work.notes), and the update as the plugin
    /// understands it
    #[arg(long, value_names = ["NAME", "JSON"], num_args = 2, conflicts_with_all = ["message", "attach", "webhook", "reply", "discard"])]
    pub(crate) plugin: Option<Vec<String>>,
    /// Loop that gets the message, if several brains run at the same time, or whose plugin is updated, if several open ones have it
    #[arg(long, value_name = "LOOP", value_parser = name, conflicts_with_all = ["webhook", "reply", "discard"])]
    pub(crate) r#loop: Option<String>,
    /// Delete a stored webhook
    #[arg(long, value_name = "ID", conflicts_with_all = ["run", "id"])]
    pub(crate) discard: Option<String>,
    /// Idempotency key of the signal; the same id is the same signal
    #[arg(long, value_name = "ID", value_parser = name)]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Args)]
pub(crate) struct RunByArgs {
    /// The run
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The run
    pub(crate) run: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) by: By,
}
