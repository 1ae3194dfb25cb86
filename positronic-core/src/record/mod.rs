//! The data types: events, prompts, messages, results.
//!
//! This module is for user interfaces and other readers of runs, and for adapters; an author of brains needs single types of it, such
//! as [`Money`] and [`Tier`].
//!
//! This module has no behaviour. A run is an ordered list of [`Event`]s; the [`machine`](crate::machine) folds
//! them into a state, [`projection`](crate::projection) reads them, a [`store`](crate::store) persists them.

mod answer;
mod answer_without_text;
mod approval;
pub(crate) mod base64;
mod budget;
mod call;
pub(crate) mod canonical;
mod child;
mod content_hash;
mod continued;
mod document;
mod event;
mod event_fields;
mod event_kind;
mod failure;
mod file;
mod ids;
mod invisible;
mod limits;
mod made_by;
mod message;
pub(crate) mod micros;
mod money;
mod name;
pub(crate) mod number;
mod older_answer;
mod ordered;
mod part;
mod path;
mod plugin;
mod prompt;
mod provider_tool;
mod repair;
mod request;
mod result;
mod retry_policy;
mod routing;
mod scheduled;
mod shape;
mod side_output;
mod signal;
pub(crate) mod skip;
mod starter;
mod structured;
mod summary;
mod trigger;
mod undo;
mod usage;
mod webhook_delivery;

pub use answer::AnswerFault;
pub use answer_without_text::AnswerWithoutText;
pub use approval::{Approval, ApprovalOutcome};
pub use budget::{Amounts, AskForMore, Budget, SharedBudget};
pub(crate) use call::PrecedingCalls;
pub use call::{CallFlags, CallState, Gate, ToolDecl, ToolId, ToolIdError, WaitSpec};
pub use canonical::{Change, ChangeError};
pub use child::{ChildEnd, ChildLink, ChildRun, ParentRun};
pub use content_hash::{ContentHash, hash_json, hash_text, sha256};
pub use continued::{ContinuedLoop, Dialogue, HandedOver};
pub use document::{DocumentError, MAX_DOCUMENT_BYTES, MAX_DOCUMENT_DEPTH, check_depth};
pub(crate) use document::{check_document, check_message, check_text, encode_document};
pub use event::{Event, EventError, FORMAT_VERSION, NewEvent};
pub use event_fields::{
    BrainStart, Content, Decision, Iteration, Misfit, PausedAnswer, Question, ReplacedInput, ResumeCause, Speaker,
    ToolCall, ToolEntry,
};
pub use event_kind::EventKind;
pub use failure::{EndReason, Failure};
pub(crate) use file::stored_files;
pub use file::{Attachment, FileKind, FileLocation, FileRef, LARGEST_BLOB};
pub use ids::{Epoch, PublicId, RunId, Seq, SignalId, Timestamp, TriggerId};
pub use invisible::{first_hidden, is_invisible};
pub use limits::{BatchPolicy, BudgetRequest, LimitKind, LimitReached, Limits, OnLimit};
pub use made_by::{MadeBy, Recipient};
pub use message::{Assistant, Message, Transcript, TranscriptEntry, TranscriptGuard, WireText};
pub use money::{Charge, Money, MoneyError};
pub use name::{InvalidName, MAX_NAME_CHARS, check_name};
pub(crate) use number::unify_numbers;
pub use number::{InexactNumber, check_numbers, quote_inexact_numbers};
pub use older_answer::OlderAnswer;
pub(crate) use ordered::property_order;
pub use ordered::{OrderedJson, OrderedObject, PROPERTY_ORDERING};
pub use part::{Citation, Part, ProviderToolUse};
pub use path::{Path, PathError, Segment};
pub(crate) use path::{parent_of, segments_of};
pub use plugin::{PluginChange, PluginDocument, PluginStates};
pub use prompt::{Output, OutputKind, Prompt, PromptState, ToolOutput, shown_together};
pub use provider_tool::{ProviderTool, WebSearchOptions, code_execution, image_generation, web_fetch, web_search};
pub use repair::{ArgumentMistake, Repair};
pub use request::{ContextItem, Delta, DeltaKind, ModelRequest, OutputFormat, Settings, Tier, ToolChoice, ToolSet};
pub use result::{DenialCause, LoopOutcome, ToolResult};
pub use retry_policy::RetryPolicy;
pub use routing::{RoutingStep, WaitReason};
pub use scheduled::{Scheduled, TickCause};
pub use shape::{ArmShape, Shape, StageKind, StageShape};
pub use side_output::{CustomOutput, FileOutput, SideOutput, WidgetOutput};
pub use signal::{Actor, Overrides, Signal, SignalKind, Start, UserMessage};
pub use starter::Starter;
pub use structured::{ActionFormat, StructuredActions};
pub use summary::{Claim, ClaimRefusal, Crashes, Pending, PendingKind, RunCost, RunSummary, Status};
pub use trigger::{Busy, Fired, Timer, Trigger, TriggerChange};
pub use undo::{UndoCause, UndoStep};
pub use usage::{CODE, Finish, ModelError, ModelErrorKind, ModelResponse, ProposedCall, ResponseMetadata, Usage};
pub use webhook_delivery::WebhookDelivery;
