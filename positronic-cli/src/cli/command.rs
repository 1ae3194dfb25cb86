//! The commands, and what all of them take.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{
    ApproveArgs, CancelArgs, ChatArgs, ConversationsArgs, DiffArgs, EventsArgs, ExportArgs, FilesArgs, ForkArgs,
    ImportArgs, InboxArgs, ListArgs, NewArgs, PruneArgs, RecordArgs, RejectArgs, ReportArgs, RunArgs, RunByArgs,
    RunsArgs, SendArgs, ShowArgs, StateArgs, TriggersArgs, WatchArgs, WorkArgs,
};
use crate::failure::EXIT_CODES;

/// What `--help` says about runs, after the commands.
const RUNS: &str = "\
Runs:
  A run is named by its id or by the beginning of it, as long as that fits one run alone.
  Runs are kept in runs.db of the nearest folder .positronic upwards. Where there is none, it is made at the root of \
the cargo workspace, outside of any package in this folder.";

/// Makes and runs brains, and deals with their runs.
#[derive(Debug, Parser)]
#[command(name = "positronic", version, after_help = format!("{RUNS}\n\n{EXIT_CODES}"), max_term_width = 100)]
pub(crate) struct Cli {
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,
    #[command(flatten)]
    pub(crate) place: Where,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where runs are kept.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Where {
    /// Where runs are kept; the environment's POSITRONIC_STORE, or the project's own file, where nothing is said
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Makes a project with a first brain
    New(NewArgs),
    /// Lists the project's brains
    List(ListArgs),
    /// Shows a brain or a run: what it does, or what has happened and what it waits for
    Show(ShowArgs),
    /// Runs a brain
    Run(RunArgs),
    /// Talks with a brain: a conversation that can be gone on with
    Chat(ChatArgs),
    /// Lists conversations, shows one, or writes one down
    Conversations(ConversationsArgs),
    /// Goes on with a run that nobody works on, or with all of them
    Work(WorkArgs),
    /// Lists the runs, the last started first
    Runs(RunsArgs),
    /// Lists what waits for a person, over all runs, the oldest first
    Inbox(InboxArgs),
    /// Lists what starts a prompt at its time, or takes it back
    Triggers(TriggersArgs),
    /// Shows a run while it goes on elsewhere
    Watch(WatchArgs),
    /// Lists a run's events
    Events(EventsArgs),
    /// Lists a run's files, or writes them into a folder
    Files(FilesArgs),
    /// Lets calls run that wait for a person's approval
    Approve(ApproveArgs),
    /// Refuses calls that wait for a person's approval
    Reject(RejectArgs),
    /// Says something to a run, answers a call of it, or delivers a webhook
    Send(SendArgs),
    /// Stops starting new work in a run; what is in flight runs to its end
    Pause(RunByArgs),
    /// Lifts a pause; the work is then done by whoever works on the run
    Resume(RunByArgs),
    /// Ends a run; every open call gets a result that says so
    Cancel(CancelArgs),
    /// Shows a run's state, and the next request to the model, as of an event
    State(StateArgs),
    /// Writes a run down: its steps with their reasons, its files, tokens and cost
    Report(ReportArgs),
    /// Makes a new run that shares another one's past and may be other from there on
    Fork(ForkArgs),
    /// Compares two runs: where they part, and what they come to
    Diff(DiffArgs),
    /// Writes a run into a file
    Export(ExportArgs),
    /// Writes a run as a cassette, which plays it again without a key
    Record(RecordArgs),
    /// Takes a run in from a file
    Import(ImportArgs),
    /// Removes runs that are over, and files that no run has any more
    Prune(PruneArgs),
}

impl Command {
    /// Says whether the command needs the code of the project's brains.
    pub(crate) const fn needs_brains(&self) -> bool {
        matches!(self, Self::List(_) | Self::Show(_) | Self::Run(_) | Self::Chat(_) | Self::Work(_) | Self::Fork(_))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_line_is_valid_and_its_help_matches_the_snapshots() {
        Cli::command().debug_assert();
        insta::assert_snapshot!("help", Cli::command().term_width(80).render_long_help().to_string());
        for name in ["run", "chat", "work", "approve", "send"] {
            let mut command = Cli::command().term_width(80);
            let command = command.find_subcommand_mut(name).unwrap();
            insta::assert_snapshot!(format!("help_{name}"), command.render_help().to_string());
        }
    }
}
