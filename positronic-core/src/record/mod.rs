//! The data types: events, prompts, messages, results.
//!
//! This module is for user interfaces and other readers of runs, and for adapters; an author of brains needs single types of it, such
//! as [`Money`] and [`Tier`].
//!
//! This module has no behaviour. A run is an ordered list of [`Event`]s; the [`machine`](crate::machine) folds
//! them into a state, [`projection`](crate::projection) reads them, a [`store`](crate::store) persists them.

pub(crate) mod encoding;
mod event;
mod ids;
mod invisible;
mod money;
mod name;
mod path;
mod plugin;
mod prompt;
mod request;
mod run;
mod shape;

pub use encoding::content_hash::{ContentHash, hash_json, hash_text, sha256};
pub use encoding::document::{DocumentError, MAX_DOCUMENT_BYTES, MAX_DOCUMENT_DEPTH, check_depth};
pub(crate) use encoding::document::{check_document, check_message, check_text, encode_document};
pub(crate) use encoding::number::unify_numbers;
pub use encoding::number::{InexactNumber, check_numbers, quote_inexact_numbers};
pub(crate) use encoding::ordered_json::property_order;
pub use encoding::ordered_json::{OrderedJson, OrderedObject, PROPERTY_ORDERING};
pub use encoding::state_patch::{Change, ChangeError};
pub use event::event_envelope::{Event, EventError, FORMAT_VERSION, NewEvent};
pub use event::event_fields::{
    BrainStart, Content, Decision, Iteration, Misfit, PausedAnswer, Question, ReplacedInput, ResumeCause, Speaker,
    ToolCall, ToolEntry,
};
pub use event::event_kind::EventKind;
pub use event::failure::{EndReason, Failure};
pub use event::repair::{ArgumentMistake, Repair};
pub use event::result::{DenialCause, LoopOutcome, ToolResult};
pub use event::routing::{RoutingStep, WaitReason};
pub use event::undo::{UndoCause, UndoStep};
pub use ids::{Epoch, PublicId, RunId, Seq, SignalId, Timestamp, TriggerId};
pub use invisible::{first_hidden, is_invisible};
pub use money::{Charge, Money, MoneyError};
pub use name::{InvalidName, MAX_NAME_CHARS, check_name};
pub use path::{Path, PathError, Segment};
pub(crate) use path::{parent_of, segments_of};
pub use plugin::{PluginChange, PluginDocument, PluginStates};
pub use prompt::answer_without_text::AnswerWithoutText;
pub use prompt::approval::{Approval, ApprovalOutcome};
pub(crate) use prompt::call::PrecedingCalls;
pub use prompt::call::{CallFlags, CallState, Gate, ToolDecl, WaitDeadline, WaitSpec};
pub use prompt::caller_tool::CallerTool;
pub use prompt::continued::{ContinuedLoop, Dialogue, HandedOver};
pub(crate) use prompt::file::stored_files;
pub use prompt::file::{Attachment, FileKind, FileLocation, FileRef, LARGEST_BLOB};
pub use prompt::made_by::{MadeBy, Recipient};
pub use prompt::message::{Assistant, Message, Transcript, TranscriptEntry, TranscriptGuard, WireText, wire_text};
pub use prompt::older_answer::OlderAnswer;
pub use prompt::part::{Citation, Part, ProviderToolUse};
pub use prompt::prompt::{Output, OutputKind, Prompt, PromptState};
pub use prompt::recorded_call::ToolOutput;
pub use prompt::side_output::{CustomOutput, FileOutput, SideOutput, WidgetOutput};
pub use prompt::tool_id::{ToolId, ToolIdError};
pub use request::answer_fault::AnswerFault;
pub use request::model_error_kind::ModelErrorKind;
pub use request::model_response::{CODE, Finish, ModelError, ModelResponse, ProposedCall, ResponseMetadata, Usage};
pub use request::provider_tool::{
    ProviderTool, WebSearchOptions, code_execution, image_generation, web_fetch, web_search,
};
pub use request::request::{
    ContextItem, Delta, DeltaKind, ModelRequest, OutputFormat, PartialAnswer, Settings, Tier, ToolChoice, ToolSet,
};
pub use request::retry_policy::RetryPolicy;
pub use request::structured_action_settings::{ActionFormat, StructuredActions};
pub use run::actor::Actor;
pub use run::budget::{Amounts, AskForMore, Budget, SharedBudget};
pub use run::child::{ChildEnd, ChildLink, ChildRun, ParentRun};
pub use run::loop_limits::{BatchPolicy, BudgetRequest, LimitKind, LimitReached, Limits, OnLimit};
pub use run::pending_kind::{Pending, PendingKind};
pub use run::scheduled::{Scheduled, TickCause};
pub use run::signal::{Overrides, Signal, SignalKind, Start, UserMessage};
pub use run::starter::Starter;
pub use run::summary::{Claim, ClaimRefusal, Crashes, LastEvent, ModelUse, RunCost, RunSummary, Status};
pub use run::trigger::{Busy, Fired, Timer, Trigger, TriggerChange};
pub use run::webhook_delivery::WebhookDelivery;
pub use shape::{ArmShape, Shape, StageKind, StageShape};
