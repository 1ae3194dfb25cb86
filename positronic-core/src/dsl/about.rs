//! What every kind of tool says of itself, whether a function or a brain does its work.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::approval::Approval;
use super::usage_panic::usage_panic;
use crate::definition::{Scope, ToolBody, ToolDefinition};
use crate::record::{CallFlags, ToolDecl, ToolId};
use crate::tools::Schema;

/// What a builder has been told beside what the tool does. `T` is what an approval is shown of a call.
pub(super) struct About<T> {
    pub(super) id: ToolId,
    pub(super) title: Option<String>,
    pub(super) description: String,
    pub(super) flags: CallFlags,
    pub(super) timeout: Duration,
    pub(super) retries: u32,
    pub(super) approval: Approval<T>,
}

/// How long one try of a tool may take where its author says nothing.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How often a transient failure is tried again where the author says nothing.
const RETRIES: u32 = 3;

impl<T> About<T> {
    pub(super) fn new(id: ToolId) -> Self {
        Self {
            id,
            title: None,
            description: String::new(),
            flags: CallFlags::default(),
            timeout: TIMEOUT,
            retries: RETRIES,
            approval: Approval::default(),
        }
    }

    /// Makes what an approval is shown from a call's arguments.
    pub(super) fn reading(
        self,
        read: impl Fn(&Arc<Value>, &Scope) -> crate::Result<T> + Send + Sync + 'static,
    ) -> About<Arc<Value>>
    where
        T: 'static,
    {
        About {
            id: self.id,
            title: self.title,
            description: self.description,
            flags: self.flags,
            timeout: self.timeout,
            retries: self.retries,
            approval: self.approval.reading(read),
        }
    }
}

impl About<Arc<Value>> {
    pub(super) fn into_definition(self, schema: Arc<Schema>, body: ToolBody) -> Arc<ToolDefinition> {
        let decl = ToolDecl {
            id: self.id,
            title: self.title,
            description: self.description,
            parameters: Arc::clone(schema.json()),
            flags: self.flags,
        };
        let gate = self.approval.into_gate();
        let Self { timeout, retries, .. } = self;
        Arc::new(ToolDefinition {
            decl,
            schema,
            foreign: false,
            timeout,
            retries,
            owner: None,
            gate,
            exits: None,
            body,
        })
    }
}

#[track_caller]
pub(super) fn tool_id(name: &str) -> ToolId {
    ToolId::new(name).unwrap_or_else(|error| usage_panic(&error.to_string()))
}

/// Gives a builder with a field `about` the methods that all tools have.
macro_rules! about_methods {
    ($builder:ident<$($param:ident),*>) => {
        impl<$($param),*> $builder<$($param),*> {
            /// Says what the tool does; the model reads it. Where nothing is said, a brain's own description stands.
            pub fn description(mut self, text: impl Into<String>) -> Self {
                self.about.description = text.into();
                self
            }

            /// Names the tool for people. Where nothing is said, a brain's title stands.
            pub fn title(mut self, text: impl Into<String>) -> Self {
                self.about.title = Some(text.into());
                self
            }

            /// Ends the loop when a call succeeds. A loop with an exit tool is not ended by a text answer.
            pub const fn exit(mut self) -> Self {
                self.about.flags.exit = true;
                self
            }

            /// Promises that the tool changes nothing outside: it waits for no other call's approval, and may run twice.
            pub const fn read_only(mut self) -> Self {
                self.about.flags.read_only = true;
                self
            }

            /// Promises that running it twice with one [idempotency key](ToolContext::idempotency_key) is running it
            /// once. A brain goes on where it was, so of a brain this is only told to people and bridges.
            pub const fn idempotent(mut self) -> Self {
                self.about.flags.idempotent = true;
                self
            }

            /// Runs the tool while no other call of its loop runs.
            pub const fn sequential(mut self) -> Self {
                self.about.flags.sequential = true;
                self
            }

            /// Says that the tool may destroy something; people and bridges are told so.
            pub const fn destructive(mut self) -> Self {
                self.about.flags.destructive = true;
                self
            }

            /// Asks a person before every call, and says why.
            pub fn requires_approval(mut self, reason: impl Into<String>) -> Self {
                self.about.approval.always(reason.into());
                self
            }

            /// Voids the question of an approval after this time; the call is then denied.
            pub fn approval_expires(mut self, after: std::time::Duration) -> Self {
                self.about.approval.expires(after);
                self
            }

            /// Forbids to approve a call with edited arguments.
            pub fn not_editable(mut self) -> Self {
                self.about.approval.not_editable();
                self
            }
        }
    };
}

/// Gives a builder with a field `about` the methods of tools that are tried as a whole.
macro_rules! tries_methods {
    ($builder:ident<$($param:ident),*>) => {
        impl<$($param),*> $builder<$($param),*> {
            /// Sets how long one try may take; 60 seconds where nothing is said.
            pub const fn timeout(mut self, timeout: std::time::Duration) -> Self {
                self.about.timeout = timeout;
                self
            }

            /// Sets how often a call of a `read_only` or `idempotent` tool is started again, after a transient failure or
            /// after the process ended during it; 3 times where nothing is said. A call that has ended the process more
            /// often is `interrupted`.
            pub const fn retries(mut self, retries: u32) -> Self {
                self.about.retries = retries;
                self
            }
        }
    };
}

pub(super) use {about_methods, tries_methods};
