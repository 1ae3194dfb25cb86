//! Commands that say something to a run.

use clap::{ArgGroup, Args};

use super::values::{name, text};

/// Who says it, and how it is answered.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct By {
    /// Who says it; the user of the environment where nothing is said
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) by: Option<String>,
    /// Writes JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The run
    pub(crate) run: String,
    /// The calls, such as Chat/0.1, or what asks for more: a loop, or . for the whole run; the only one that waits where none
    /// is named
    pub(crate) calls: Vec<String>,
    /// How much more a loop or the run gets that has reached a limit: 20000 tokens, 10 iterations, 2.50 of money, or 10m of time
    #[arg(long, value_name = "AMOUNT", conflicts_with_all = ["args", "all"], allow_negative_numbers = true)]
    pub(crate) more: Option<String>,
    /// Other arguments to run the call with; @FILE reads a file, and - reads stdin
    #[arg(long, value_name = "JSON", conflicts_with = "all")]
    pub(crate) args: Option<String>,
    /// All calls of the run that wait for approval
    #[arg(long, conflicts_with = "calls")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) by: By,
}

#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    /// The run
    pub(crate) run: String,
    /// The calls, such as Chat/0.1, or what asks for more: a loop, or . for the whole run; the only one that waits where none
    /// is named
    pub(crate) calls: Vec<String>,
    /// Why; the model reads it
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// All calls of the run that wait for approval
    #[arg(long, conflicts_with = "calls")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) by: By,
}

/// What `send --help` says.
const SEND: &str = "\
A webhook needs no run: it goes to the one that waits for it, or is kept for seven days until one does. `inbox --mail` \
lists what is kept, and `send --discard ID` throws it away.

A payload is JSON; @FILE reads a file, and - reads stdin.";

/// The ways to say it.
const SEND_USAGE: &str = "\
positronic send <RUN> --message <TEXT>
       positronic send <RUN> --reply <CALL> <JSON>
       positronic send [RUN] --webhook <NAME> --identifier <ID> --payload <JSON>
       positronic send --discard <ID>";

#[derive(Debug, Args)]
#[command(
    after_help = SEND,
    override_usage = SEND_USAGE,
    group = ArgGroup::new("what").required(true).args(["message", "webhook", "reply", "discard"])
)]
pub(crate) struct SendArgs {
    /// The run; a webhook needs none
    #[arg(required_unless_present_any = ["webhook", "discard"])]
    pub(crate) run: Option<String>,
    /// Says this to the open loop
    #[arg(long, value_name = "TEXT", value_parser = text)]
    pub(crate) message: Option<String>,
    /// Delivers a webhook of this name
    #[arg(long, value_name = "NAME", requires = "identifier", requires = "payload", value_parser = name)]
    pub(crate) webhook: Option<String>,
    /// What tells this wait from others for the same webhook
    #[arg(long, value_name = "ID", requires = "webhook", value_parser = name)]
    pub(crate) identifier: Option<String>,
    /// What the webhook carries; `null` for nothing
    #[arg(long, value_name = "JSON", requires = "webhook")]
    pub(crate) payload: Option<String>,
    /// Answers a call that waits for a reply
    #[arg(long, value_names = ["CALL", "JSON"], num_args = 2)]
    pub(crate) reply: Option<Vec<String>>,
    /// Throws a webhook away that is kept
    #[arg(long, value_name = "ID", conflicts_with_all = ["run", "id"])]
    pub(crate) discard: Option<String>,
    /// The signal's own id; the same id again is the same signal
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
