//! The command line: commands, flags and their `--help`.

mod brains;
mod command;
pub(crate) mod exit;
pub(crate) mod json;
pub(crate) mod limits;
pub(crate) mod names;
pub(crate) mod options;
mod runs;
mod signals;
pub(crate) mod suggest;
mod talks;
pub(crate) mod values;

#[cfg(test)]
pub(crate) use brains::EndpointArgs;
pub(crate) use brains::{ActionFormatArg, ListArgs, ModelArgs, NewArgs, RunArgs, ShowArgs, WorkArgs};
pub(crate) use command::{Cli, Color, Command, StoreArgs};
pub(crate) use runs::{
    DiffArgs, EventsArgs, ExportArgs, FilesArgs, ForkArgs, ImportArgs, InboxArgs, PruneArgs, RecordArgs, ReportArgs,
    RunsArgs, StateArgs, TriggersArgs, WatchArgs,
};
pub(crate) use signals::{ApproveArgs, By, CancelArgs, RejectArgs, RunByArgs, SendArgs};
pub(crate) use talks::{
    ChatArgs, ConversationExportArgs, ConversationListArgs, ConversationShowArgs, Conversations, ConversationsArgs,
    Format,
};
