//! Builder settings that all kinds of tools share.

use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;

use super::approval::ApprovalRule;
use super::usage_panic::usage_panic;
use crate::definition::{DecodesFn, ToolBody, ToolDefinition};
use crate::record::{CallFlags, Dialogue, ToolDecl, ToolId};
use crate::tools::Schema;

/// The settings of a tool besides its work.
#[derive_where(Debug)]
pub(super) struct About {
    pub(super) id: ToolId,
    pub(super) title: Option<String>,
    pub(super) description: String,
    pub(super) flags: CallFlags,
    pub(super) timeout: Duration,
    pub(super) retries: u32,
    #[derive_where(skip)]
    pub(super) approval: ApprovalRule,
}

/// The default timeout of one try.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The default number of retries after a transient failure.
const RETRIES: u32 = 3;

impl About {
    pub(super) fn new(id: ToolId) -> Self {
        Self {
            id,
            title: None,
            description: String::new(),
            flags: CallFlags::default(),
            timeout: TIMEOUT,
            retries: RETRIES,
            approval: ApprovalRule::default(),
        }
    }

    pub(super) fn into_definition(
        self,
        schema: Arc<Schema>,
        body: ToolBody,
        decodes: DecodesFn,
    ) -> Arc<ToolDefinition> {
        let Self { id, title, description, flags, timeout, retries, approval } = self;
        let decl = ToolDecl { id, title, description, parameters: Arc::clone(schema.json()), flags };
        let input = match &body {
            ToolBody::Brain(nested) => Some(Arc::clone(&nested.input)),
            ToolBody::Function { .. } => None,
        };
        let (gate, foreign, owner, exits) = (approval.into_gate(input), false, None, None);
        let dialogue = Dialogue::Whole;
        Arc::new(ToolDefinition {
            decl,
            schema,
            foreign,
            timeout,
            retries,
            decodes,
            owner,
            gate,
            exits,
            dialogue,
            body,
        })
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

pub(super) use about_methods;
