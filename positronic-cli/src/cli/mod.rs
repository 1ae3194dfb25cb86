//! The command line: commands, flags and their `--help`.

#[cfg(not(feature = "serve"))]
mod absent;
mod brains;
mod command;
mod conversations;
mod costs;
#[cfg(test)]
#[cfg(feature = "serve")]
mod docs_tests;
mod exit;
mod json;
pub(crate) mod limits;
#[cfg(feature = "serve")]
mod mcp;
mod models;
pub(crate) mod options;
mod runs;
mod schedules;
mod signals;
mod suggest;
#[cfg(feature = "serve")]
mod tokens;
mod valid_names;
mod value_parsers;

#[cfg(not(feature = "serve"))]
pub(crate) use absent::{
    AbsentArgs as InspectArgs, AbsentArgs as McpArgs, AbsentArgs as ServeArgs, AbsentArgs as TokenArgs,
};
pub(crate) use brains::{
    ActionFormatArg, DiagramForm, EndpointArgs, ListArgs, ModelArgs, NewArgs, OptionArgs, OutputArgs, RunArgs,
    ShowArgs, WorkArgs,
};
#[cfg(feature = "serve")]
pub(crate) use brains::{LogArgs, LogFormat, ServeArgs};
pub(crate) use command::{Cli, Color, Command, StoreArgs};
pub(crate) use conversations::{
    ChatArgs, ConversationExportArgs, ConversationListArgs, ConversationShowArgs, Conversations, ConversationsArgs,
    Format,
};
pub(crate) use costs::{CostKey, CostsArgs};
pub(crate) use exit::{EXIT_CODES, Exit};
pub(crate) use json::no_json;
#[cfg(feature = "serve")]
pub(crate) use mcp::McpArgs;
pub(crate) use models::{ModelsArgs, ModelsCheckArgs, ModelsCommand};
#[cfg(feature = "serve")]
pub(crate) use runs::InspectArgs;
pub(crate) use runs::{
    BackupArgs, DiffArgs, EventsArgs, ExportArgs, FilesArgs, ForkArgs, ImportArgs, InboxArgs, PruneArgs, RecordArgs,
    ReportArgs, ResultArgs, RunsArgs, StateArgs, TriggersArgs, WatchArgs,
};
pub(crate) use schedules::{
    CatchUpArg, ScheduleAddArgs, ScheduleArgs, ScheduleBackfillArgs, ScheduleCommand, ScheduleListArgs,
    SchedulePauseArgs, SchedulePreviewArgs, ScheduleTriggerArgs, WhenArgs,
};
pub(crate) use signals::{ApproveArgs, By, CancelArgs, RejectArgs, RunByArgs, SendArgs};
pub(crate) use suggest::did_you_mean;
#[cfg(feature = "serve")]
pub(crate) use tokens::{TokenArgs, TokenCommand, TokenCreateArgs, TokenListArgs, TokenRevokeArgs};
pub(crate) use valid_names::{LAST, check_name};
pub(crate) use value_parsers::earlier;
