//! Commands about conversations: to have one, to list them, to read one.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use positronic_core::runner;

use super::ModelArgs;
use super::brains::{AnswerBudgetArgs, BudgetArgs, ENVIRONMENT};
use super::values::{count, most, name};

/// What `chat --help` says.
const CHAT: &str = "\
On a terminal, what begins with / is a command: /help lists them. Ctrl-C ends the answer that is running, and leaves \
where there is none; Ctrl-D leaves. Approvals are asked in place, and can be left for later, also with Ctrl-C: they are \
asked again when the chat goes on, or with /pending. Triggers that are due in the conversation are fired.

Two processes can sit at one conversation. What one of them begins, the other shows, too: each answer in one piece, since \
only the process that asks the model sees it grow.

Elsewhere, each line of stdin is a message: the answers go to stdout, the progress to stderr. A message that is not \
answered to its end ends the command, with the code of its outcome: 3 where it waits for somebody. Triggers are looked \
for before each line.

A cassette answers for the model alone: its approvals and waits are left to you, as in `run --ask`.

The conversation's budget counts all that was said in it, and is kept with it: it holds in every process until another amount is said, and what is not said again stays. Once it is used up, no message is taken. That of each answer holds for this command.";

#[derive(Debug, Args)]
#[command(after_help = format!("{CHAT}\n\n{ENVIRONMENT}"))]
pub(crate) struct ChatArgs {
    /// The brain's title, or its beginning; case, blanks and dashes do not matter
    pub(crate) brain: String,
    /// The conversation: a new name begins one, a known one goes on with it, as does the beginning of an id that was made
    #[arg(long, short = 'c', value_name = "ID", value_parser = name)]
    pub(crate) conversation: Option<String>,
    /// Continues the brain's latest conversation: of the user that --user names, or one that belongs to no user
    #[arg(long, conflicts_with = "conversation")]
    pub(crate) last: bool,
    /// The user that the conversation belongs to; one that belongs to a user is continued with this alone
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) user: Option<String>,
    /// An option of the brain, read as its schema says; see `run`
    #[arg(short = 'o', value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// All options as JSON, or @FILE with them; -o is laid over it
    #[arg(long, value_name = "JSON")]
    pub(crate) options: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// What a message does while an answer is not over
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) busy: Busy,
    /// Where files are saved, in a folder a conversation; `files` beside the store where nothing is said, and
    /// nowhere where that is in memory
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
    /// How many earlier messages are shown at the beginning
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = count, allow_negative_numbers = true)]
    pub(crate) history: usize,
    /// Writes every event as one line of JSON, with its run
    #[arg(long)]
    pub(crate) json: bool,
    /// Reads and writes line by line, also on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// Records the model traffic
    #[arg(long, value_name = "FILE", conflicts_with = "cassette")]
    pub(crate) record: Option<PathBuf>,
    /// Keeps the conversation in memory alone, so that it ends with this command
    #[arg(long, conflicts_with_all = ["conversation", "last"])]
    pub(crate) memory: bool,
    #[command(flatten, next_help_heading = "Budget of the conversation")]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) each: AnswerBudgetArgs,
}

/// What a message does while an answer is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Busy {
    /// It is read when what is pending is decided
    #[default]
    Queue,
    /// It ends the answer, and begins another one
    Cancel,
}

impl From<Busy> for runner::Busy {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::Queue => Self::Queue,
            Busy::Cancel => Self::Cancel,
        }
    }
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ConversationsArgs {
    #[command(subcommand)]
    pub(crate) what: Option<Conversations>,
    #[command(flatten)]
    pub(crate) list: ConversationListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Conversations {
    /// Lists the conversations, the one that was spoken in last first
    List(ConversationListArgs),
    /// Shows what was said in a conversation
    Show(ConversationShowArgs),
    /// Writes a conversation as JSON or Markdown
    Export(ConversationExportArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ConversationListArgs {
    /// Only conversations that belong to this user
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// No more than so many
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = most, allow_negative_numbers = true)]
    pub(crate) limit: usize,
    /// Writes JSON, a line a conversation
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConversationShowArgs {
    /// The conversation's id, or its beginning
    pub(crate) conversation: String,
    /// Also the prompts that people are not shown
    #[arg(long)]
    pub(crate) all: bool,
    /// Writes JSON, as `export` does
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConversationExportArgs {
    /// The conversation's id, or its beginning
    pub(crate) conversation: String,
    /// The file; stdout where none is named, and for `-`
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The form; where nothing is said, Markdown for a file that ends with .md, else JSON
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) format: Option<Format>,
    /// In Markdown, also the prompts that people are not shown; JSON has all of them
    #[arg(long)]
    pub(crate) all: bool,
    /// Replaces the file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// The form of a conversation that is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Every prompt as it is recorded
    Json,
    /// To be read
    Markdown,
}
