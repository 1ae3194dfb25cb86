//! Builder settings that all kinds of tools share.

use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use serde_json::Value;

use super::approval::Approval;
use super::usage_panic::usage_panic;
use crate::definition::{DecodesFn, Scope, ToolBody, ToolDefinition};
use crate::record::{CallFlags, ToolDecl, ToolId};
use crate::tools::Schema;

/// The settings of a tool besides its work. `T` is the call data that an approval closure sees.
#[derive_where(Debug)]
pub(super) struct About<T> {
    pub(super) id: ToolId,
    pub(super) title: Option<String>,
    pub(super) description: String,
    pub(super) flags: CallFlags,
    pub(super) timeout: Duration,
    pub(super) retries: u32,
    #[derive_where(skip)]
    pub(super) approval: Approval<T>,
}

/// The default timeout of one try.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The default number of retries after a transient failure.
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

    /// Derives the data for the approval closure from a call's arguments.
    pub(super) fn reading(
        self,
        read: impl Fn(&Arc<Value>, &Scope) -> crate::Result<T> + Send + Sync + 'static,
    ) -> About<Arc<Value>>
    where
        T: 'static,
    {
        let Self { id, title, description, flags, timeout, retries, approval } = self;
        About { id, title, description, flags, timeout, retries, approval: approval.reading(read) }
    }
}

impl About<Arc<Value>> {
    pub(super) fn into_definition(
        self,
        schema: Arc<Schema>,
        body: ToolBody,
        decodes: DecodesFn,
    ) -> Arc<ToolDefinition> {
        let Self { id, title, description, flags, timeout, retries, approval } = self;
        let decl = ToolDecl { id, title, description, parameters: Arc::clone(schema.json()), flags };
        let (gate, foreign, owner, exits) = (approval.into_gate(), false, None, None);
        Arc::new(ToolDefinition { decl, schema, foreign, timeout, retries, decodes, owner, gate, exits, body })
    }
}

#[track_caller]
pub(super) fn tool_id(name: &str) -> ToolId {
    ToolId::new(name).unwrap_or_else(|error| usage_panic(&error.to_string()))
}

/// Adds the methods of all tools to a builder with a field `about`.
macro_rules! about_methods {
    ($builder:ident<$($param:ident),*>) => {
        impl<$($param),*> $builder<$($param),*> {
            /// Sets the description for the model. A brain's own description is the default.
            pub fn description(mut self, text: impl Into<String>) -> Self {
                self.about.description = text.into();
                self
            }

            /// Sets the title for people. A brain's own title is the default.
            pub fn title(mut self, text: impl Into<String>) -> Self {
                self.about.title = Some(text.into());
                self
            }

            /// Ends the loop when a call succeeds. A text answer does not end a loop with an exit tool.
            pub const fn exit(mut self) -> Self {
                self.about.flags.exit = true;
                self
            }

            /// Declares that the tool has no side effects: it waits for no other call's approval, and may be rerun.
            pub const fn read_only(mut self) -> Self {
                self.about.flags.read_only = true;
                self
            }

            /// Declares that repeated calls with one [idempotency key](ToolContext::idempotency_key) have no further effect.
            /// A brain always resumes where it was, so for a brain this only informs people and bridges.
            pub const fn idempotent(mut self) -> Self {
                self.about.flags.idempotent = true;
                self
            }

            /// Runs the tool alone, without other calls of its loop.
            pub const fn sequential(mut self) -> Self {
                self.about.flags.sequential = true;
                self
            }

            /// Declares that the tool may destroy something, for people and bridges.
            pub const fn destructive(mut self) -> Self {
                self.about.flags.destructive = true;
                self
            }

            /// Requires a person's approval of every call, with this reason.
            pub fn requires_approval(mut self, reason: impl Into<String>) -> Self {
                self.about.approval.always(reason.into());
                self
            }

            /// Sets how long an approval may take; afterwards the call is denied.
            pub fn approval_expires(mut self, after: std::time::Duration) -> Self {
                self.about.approval.expires(after);
                self
            }

            /// Forbids approving a call with edited arguments.
            pub fn not_editable(mut self) -> Self {
                self.about.approval.not_editable();
                self
            }
        }
    };
}

/// Adds the methods of tools that are retried as a whole to a builder with a field `about`.
macro_rules! tries_methods {
    ($builder:ident<$($param:ident),*>) => {
        impl<$($param),*> $builder<$($param),*> {
            /// Sets the timeout of one try; 60 seconds by default.
            pub const fn timeout(mut self, timeout: std::time::Duration) -> Self {
                self.about.timeout = timeout;
                self
            }

            /// Sets how often a call of a `read_only` or `idempotent` tool is retried after a transient failure or
            /// after the process ended during it; 3 times by default. After more process ends, the call is
            /// `interrupted`.
            pub const fn retries(mut self, retries: u32) -> Self {
                self.about.retries = retries;
                self
            }
        }
    };
}

pub(super) use {about_methods, tries_methods};
