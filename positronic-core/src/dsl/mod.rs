//! The API for authors: brains, loops and tools over their own types.
//!
//! [`brain`] begins a brain; [`step`](BrainBuilder::step), [`r#loop`](BrainBuilder::loop) and [`brain`](BrainBuilder::brain) add stages, each
//! of which sets the type of the next one's state. Closures get typed builders (`|t| …`, `cx.system(…)`), so type
//! annotations are rarely needed.
//!
//! ```
//! use positronic_core::prelude::*;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Count { value: u32 }
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct By { by: u32 }
//!
//! let counter = brain("Counter")
//!     .step("Begin", async |_| Ok(Count { value: 0 }))
//!     .r#loop("Count", |cx| {
//!         cx.system(format!("The count is {}.", cx.state.value))
//!             .tool("add", |t| {
//!                 t.description("Adds to the count").execute(async |By { by }, cx| {
//!                     cx.update(move |count| count.value += by);
//!                     Ok("added")
//!                 })
//!             })
//!     })
//!     .step("End", async |cx| Ok(cx.state.value));
//! # let _ = counter;
//! ```

mod actions;
mod approval;
mod around;
mod ask_model;
mod brain;
mod brain_builder;
mod brain_tool;
mod child;
mod context;
mod files;
mod guard;
mod handoff;
mod r#loop;
mod loop_plugin;
mod output;
mod plugin;
mod plugin_state;
mod plugin_update;
mod project;
mod read_only;
mod services;
mod stages;
mod start_on;
mod structured_actions;
mod tool;
mod tool_reply;
mod tool_settings;
mod trait_bounds;
mod usage_panic;
mod wait;

pub use crate::definition::{ArmStructure, StageStructure, Structure, ToolStructure, Verdict};
pub use actions::{Act, Actions};
pub use around::{CallAround, CallReply};
pub use ask_model::ModelCall;
pub use brain::{Brain, IntoBrain, Runnable};
#[doc(hidden)]
pub use brain_builder::{BeforeStages, Ended, Guarded, HasStages, Phase, Staged, TakesGuard, TakesStages, Unstaged};
pub use brain_builder::{BrainBuilder, brain};
pub use brain_tool::BrainTool;
pub use child::{Child, StartChild};
#[doc(hidden)]
pub use context::AnyToolContext;
pub use context::{Brains, LoopContext, LoopInputs, StepContext, ToolContext};
pub use guard::GuardContext;
pub use r#loop::Loop;
pub use loop_plugin::{LoopPlugin, plugin};
pub use output::OutputType;
pub use plugin::{Plugin, PluginContext, Preparation, RequestEdit, ResponseInspection};
pub use plugin_state::PluginState;
pub(crate) use plugin_state::instance_name;
pub use plugin_update::{PluginUpdate, ReceivedUpdate};
pub use project::ProjectWebhook;
#[doc(hidden)]
pub use project::check_webhook_names;
#[doc(hidden)]
pub use project::{BoundBrain, bound};
pub use read_only::ReadOnly;
#[doc(hidden)]
pub use read_only::{ChangedByToolsAndOnExit, ChangedWithUpdate, DeclaredWithOptions};
#[doc(hidden)]
pub use services::Within;
pub use services::{Bound, IntoServices, NoServices, Provides, Requirement, Services};
pub use stages::{
    All, Arm, Arms, AskedFor, BrainStage, Branch, Each, Form, FormAnswer, GuardCheck, IntoEach, IntoLoop,
    IntoLoopWithOutput, IntoQuestion, LoopWithOutput, Member, Members, PromptContext, PromptQuestion, Race, RaceOf,
    Retry, Skipped, WaitFor, Waits, each, form,
};
#[doc(hidden)]
pub use stages::{
    EndsInLoop, EndsInTimed, EndsInTried, Mapped, NestedOptions, SameEvent, Timed, Tried, Unmapped, Untried,
};
pub use start_on::{IntoStartInput, StartInput};
pub use tool::{Action, IntoTool, Tool, ToolBuilder};
pub use tool_reply::{IntoReply, NoArgs, ToolReply};
#[doc(hidden)]
pub use trait_bounds::{Agrees, Later, Now, Standalone, Unset};
pub use trait_bounds::{Args, IntoVerdict, Options, Payload, State, ToolArgs, TypedAnswer};
pub(crate) use usage_panic::usage_panic;
#[doc(hidden)]
pub use wait::{Resumed, Unresumed, Untyped};
pub use wait::{Wait, Webhook, webhook};
