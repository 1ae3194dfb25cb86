//! The commands and their global options.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{
    ApproveArgs, BackupArgs, CancelArgs, ChatArgs, ConversationsArgs, CostsArgs, DiffArgs, EventsArgs, ExportArgs,
    FilesArgs, ForkArgs, ImportArgs, InboxArgs, InspectArgs, ListArgs, McpArgs, ModelsArgs, NewArgs, PruneArgs,
    RecordArgs, RejectArgs, ReportArgs, ResultArgs, RunArgs, RunByArgs, RunsArgs, ScheduleArgs, SendArgs, ServeArgs,
    ShowArgs, StateArgs, TokenArgs, TriggersArgs, WatchArgs, WorkArgs,
};
use crate::cli::EXIT_CODES;

/// The heading of the options of all commands.
const GLOBAL: &str = "Global options";

/// Notes about runs in `--help`.
const RUNS: &str = "\
Runs:
  RUN is a run's id, or as much of its beginning, or of the end of a generated id (4 digits or more), as no other run has; \
`@` and `last` are the last started run.
  The default store is .positronic/runs.db in the nearest parent folder that has one. Otherwise it is created at the root of \
the cargo workspace, or in this folder outside of a package.";

/// Creates and runs brains, and manages their runs
#[derive(Debug, Parser)]
#[command(name = "positronic", version, after_help = format!("{RUNS}\n\n{EXIT_CODES}"), max_term_width = 100)]
pub(crate) struct Cli {
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = GLOBAL)]
    pub(crate) color: Color,
    #[command(flatten)]
    pub(crate) store_args: StoreArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The store of runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArgs {
    /// The store of runs: a file, or postgres://… [default: POSITRONIC_STORE, else the project's own file]
    #[arg(long, global = true, value_name = "STORE", help_heading = GLOBAL)]
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

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a project with a first brain
    New(NewArgs),
    /// List the project's brains
    List(ListArgs),
    /// Show a brain's stages and options, or a run's progress and pending items
    Show(ShowArgs),
    /// List the configured providers of models, or ask their models for one word
    Models(ModelsArgs),
    /// Run a brain
    Run(RunArgs),
    /// Chat with a brain, in a conversation that can be continued
    Chat(ChatArgs),
    /// List, show or export conversations
    Conversations(ConversationsArgs),
    /// Claim and continue a run that no worker has, or all such runs
    Work(WorkArgs),
    /// Serve the API and the inspector page, and work on the runs
    Serve(ServeArgs),
    /// Serve the brains as tools to an MCP client that starts this command, and work on the runs
    Mcp(McpArgs),
    /// Create, list or revoke access tokens for the API of `serve`
    Token(TokenArgs),
    /// Show an exported run in the inspector page, read-only
    Inspect(InspectArgs),
    /// List runs, the last started first
    Runs(RunsArgs),
    /// List items of all runs that wait for a person, the oldest first
    Inbox(InboxArgs),
    /// List or delete triggers, which start prompts at set times
    Triggers(TriggersArgs),
    /// Manage schedules, which start runs at given times
    Schedule(ScheduleArgs),
    /// Show the progress of a run that another process works on, or of what is live
    Watch(WatchArgs),
    /// Show the result of a run, with an exit code by its status
    Result(ResultArgs),
    /// List a run's events
    Events(EventsArgs),
    /// List a run's files, or save them to a folder
    Files(FilesArgs),
    /// Approve pending calls
    Approve(ApproveArgs),
    /// Reject pending calls
    Reject(RejectArgs),
    /// Send a message to a run, reply to a call, update a plugin, or deliver a webhook
    Send(SendArgs),
    /// Pause a run: it starts no new effects, and those in flight finish
    Pause(RunByArgs),
    /// Lift a pause; the run's worker, or `work`, continues the run
    Resume(RunByArgs),
    /// Continue a run that has failed or was parked after crashes; what has a result is not done again
    Retry(RunByArgs),
    /// Undo what a completed run has done, in a run of its own
    Undo(RunByArgs),
    /// Cancel a run; every open call gets a `cancelled` result
    Cancel(CancelArgs),
    /// Show a run's state, or its next model request, as of an event
    State(StateArgs),
    /// Write a report of a run: its steps with reasons, files, tokens and cost
    Report(ReportArgs),
    /// Sum up what the models of all runs cost, by brain, model, user or day
    Costs(CostsArgs),
    /// Fork a run: the new run shares its past and may differ afterwards
    Fork(ForkArgs),
    /// Compare two runs: their first difference and their results
    Diff(DiffArgs),
    /// Export a run to a file
    Export(ExportArgs),
    /// Write a run as a cassette, which replays it without a key
    Record(RecordArgs),
    /// Import a run from a file
    Import(ImportArgs),
    /// Remove finished runs, and files that no remaining run has
    Prune(PruneArgs),
    /// Copy the store into a file, also while processes use it
    Backup(BackupArgs),
}

impl Command {
    /// Returns whether the command needs the code of the project's brains.
    pub(crate) const fn needs_brains(&self) -> bool {
        if let Self::Schedule(args) = self {
            return matches!(args.what, super::ScheduleCommand::Add(_));
        }
        matches!(
            self,
            Self::List(_)
                | Self::Show(_)
                | Self::Models(_)
                | Self::Run(_)
                | Self::Chat(_)
                | Self::Work(_)
                | Self::Serve(_)
                | Self::Mcp(_)
                | Self::Fork(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[cfg(not(feature = "serve"))]
    #[test]
    fn commands_of_absent_features_are_there_with_all_arguments() {
        for line in
            ["serve --listen 127.0.0.1:0", "serve --help", "mcp --user ann", "token create ann", "inspect run.jsonl"]
        {
            let cli = Cli::try_parse_from(std::iter::once("desk").chain(line.split(' '))).unwrap();
            assert!(
                matches!(cli.command, Command::Serve(_) | Command::Mcp(_) | Command::Token(_) | Command::Inspect(_)),
                "{line}"
            );
        }
    }

    #[test]
    fn command_line_is_valid_and_its_help_matches_the_snapshots() {
        Cli::command().debug_assert();
        insta::assert_snapshot!("help", Cli::command().term_width(80).render_long_help().to_string());
        for name in ["run", "chat", "work", "models", "approve", "schedule", "send"]
            .into_iter()
            .chain(cfg!(feature = "serve").then_some("serve"))
        {
            let mut command = Cli::command().term_width(80);
            let command = command.find_subcommand_mut(name).unwrap();
            insta::assert_snapshot!(format!("help_{name}"), command.render_help().to_string());
        }
    }
}
