//! A plugin's hook around a call.

use std::marker::PhantomData;

use derive_where::derive_where;
use serde::Serialize;
use serde_json::Value;

use super::plugin_state::PluginState;
use crate::definition::{Invocation, NextCall, StateOwner, StateValue, UntypedReply, Update, encode};
use crate::error::Result;

/// A try of a call, with the rest of the chain.
#[derive_where(Debug)]
pub struct CallAround<'a, P> {
    call: &'a Invocation,
    #[derive_where(skip)]
    next: NextCall<'a>,
    state: PhantomData<fn(P)>,
}

impl<'a, P> CallAround<'a, P> {
    pub(super) const fn new(call: &'a Invocation, next: NextCall<'a>) -> Self {
        Self { call, next, state: PhantomData }
    }

    /// Returns the call.
    #[must_use]
    pub const fn call(&self) -> &Invocation {
        self.call
    }

    /// Runs the rest of the chain: the hooks of later plugins, and the tool.
    ///
    /// # Errors
    ///
    /// The error of the chain.
    pub async fn run(self) -> Result<CallReply<P>> {
        Ok(CallReply { reply: (self.next)().await?, updates: Vec::new(), state: PhantomData })
    }
}

/// The reply to a call.
#[derive_where(Debug)]
pub struct CallReply<P> {
    reply: UntypedReply,
    #[derive_where(skip)]
    updates: Vec<Update>,
    state: PhantomData<fn(P)>,
}

impl<P> CallReply<P> {
    /// Makes a reply instead of running the tool.
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::error::Error) when the value cannot be encoded as JSON.
    pub fn instead<T: Serialize>(value: &T) -> Result<Self> {
        // The runner checks the size of every result.
        let reply = UntypedReply { output: encode(value, usize::MAX)?, ..UntypedReply::default() };
        Ok(Self { reply, updates: Vec::new(), state: PhantomData })
    }

    /// Returns the result that will be recorded and that the model reads.
    #[must_use]
    pub const fn output(&self) -> &Value {
        &self.reply.output
    }

    /// Replaces the result.
    #[must_use]
    pub fn with_output(mut self, output: Value) -> Self {
        self.reply.output = output;
        self.reply.output.sort_all_objects();
        self
    }

    pub(super) fn into_reply(mut self, owner: impl Fn() -> StateOwner) -> UntypedReply {
        self.reply.plugin_updates.extend(self.updates.into_iter().map(|update| (owner(), update)));
        self.reply
    }
}

impl<P: PluginState> CallReply<P> {
    /// Changes the plugin's state when the result is recorded, after all earlier updates.
    #[must_use]
    pub fn update(mut self, update: impl FnOnce(&mut P) + Send + 'static) -> Self {
        self.updates.push(Box::new(move |document: &StateValue| document.updated(update)));
        self
    }
}
