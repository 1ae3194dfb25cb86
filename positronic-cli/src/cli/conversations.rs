//! Arguments of the commands for conversations: chatting, listing, reading.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use positronic_core::runner;

use super::ModelArgs;
use super::brains::{AnswerBudgetArgs, BudgetArgs, ENVIRONMENT};
use super::brains::{OptionArgs, OutputArgs};
use super::value_parsers::{limit, name};

/// Notes in `chat --help`.
const CHAT: &str = "\
On a terminal, a line that begins with / is a command: /help lists them. Ctrl-C cancels the running answer, or exits \
if there is none; Ctrl-D exits. Approvals are asked in place and can be left for later, also with Ctrl-C: they are \
asked again when the chat continues, or with /pending. The chat fires due triggers of the conversation.

Two processes can share one conversation. Each shows the answers of the other in one piece, since \
only the process that asks the model receives the stream.

Without a terminal, each line of stdin is a message: answers go to stdout, progress to stderr. A message without a \
complete answer ends the command with the code of its outcome: 3 if it waits for a person. Due triggers are fired \
before each line.

A cassette replaces only the model: you answer approvals and waits, as in `run --ask`.

The conversation's budget counts all its prompts and is stored with it: every process applies it until a flag sets another \
amount; limits without a flag keep their amount. Once it is exhausted, no message is accepted. The budget of each answer \
applies to this command only.";

#[derive(Debug, Args)]
#[command(after_help = format!("{CHAT}\n\n{ENVIRONMENT}"))]
pub(crate) struct ChatArgs {
    /// The brain's title or a prefix of it; case, spaces and dashes are ignored
    pub(crate) brain: String,
    /// The conversation: a new name begins one, a known name or a prefix of a generated id continues it
    #[arg(long, short = 'c', value_name = "ID", value_parser = name)]
    pub(crate) conversation: Option<String>,
    /// Continue the brain's latest conversation: of the user in --user, or one without a user
    #[arg(long, conflicts_with = "conversation")]
    pub(crate) last: bool,
    /// The user that the conversation belongs to; it can then only be continued with this flag
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Effect of a message during an answer
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) busy: Busy,
    /// Folder for saved files, one folder per conversation [default: `files` next to the store, or none with
    /// --memory]
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
    /// Number of earlier messages to show at the start
    #[arg(long, value_name = "NUMBER", default_value_t = 3, allow_negative_numbers = true)]
    pub(crate) history: usize,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Record the model traffic
    #[arg(long, value_name = "FILE", conflicts_with = "cassette")]
    pub(crate) record: Option<PathBuf>,
    /// Store the conversation in memory only, so that it ends with this command
    #[arg(long, conflicts_with_all = ["conversation", "last"])]
    pub(crate) memory: bool,
    #[command(flatten, next_help_heading = "Budget of the conversation")]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) each: AnswerBudgetArgs,
}

/// Effect of a message during an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Busy {
    /// Queue the message until pending items are decided
    #[default]
    Queue,
    /// Cancel the answer and begin another one
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
    /// List conversations, the most recent first
    List(ConversationListArgs),
    /// Show the messages of a conversation
    Show(ConversationShowArgs),
    /// Export a conversation as JSON or Markdown
    Export(ConversationExportArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ConversationListArgs {
    /// Only conversations that belong to this user
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Maximum number of entries
    #[arg(long, value_name = "NUMBER", default_value = "50", value_parser = limit, allow_negative_numbers = true)]
    pub(crate) limit: NonZeroUsize,
    /// Write JSON, one conversation per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConversationShowArgs {
    /// The conversation's id or a prefix of it
    pub(crate) conversation: String,
    /// Include hidden prompts
    #[arg(long)]
    pub(crate) all: bool,
    /// Write JSON, as `export` does
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConversationExportArgs {
    /// The conversation's id or a prefix of it
    pub(crate) conversation: String,
    /// The file, or `-` [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The format [default: Markdown for a file that ends with .md, else JSON]
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) format: Option<Format>,
    /// Include hidden prompts in Markdown; JSON always has them
    #[arg(long)]
    pub(crate) all: bool,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

/// The format of an exported conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Every prompt as recorded
    Json,
    /// For people
    Markdown,
}
