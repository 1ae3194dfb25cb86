//! The signals to a run as methods, the same for a client and for a handle.

use serde_json::Value;

use super::client::Client;
use super::handle::RunHandle;
use super::signals::SignalError;
use crate::dsl::{PluginState as _, PluginUpdate, instance_name};
use crate::machine::Refusal;
use crate::record::{Actor, Amounts, Path, RunId, Seq, SignalKind, UserMessage};

/// Adds a method for each kind of signal to [`Client`], which takes the run's id first, and to [`RunHandle`].
macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident($($argument:ident: $type:ty),*) => $kind:expr, $actor:expr;)*) => {
        impl Client {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                ///
                /// As [`Client::send`].
                pub async fn $verb(&self, run: &RunId, $($argument: $type),*) -> Result<Seq, SignalError> {
                    self.signal(run, $kind, $actor).await
                }
            )*
        }

        impl<R> RunHandle<R> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                ///
                /// As [`RunHandle::send`].
                pub async fn $verb(&self, $($argument: $type),*) -> Result<Seq, SignalError> {
                    self.signal($kind, $actor).await
                }
            )*
        }
    };
}

verbs! {
    /// Approves a pending call.
    approve(call: &Path, by: impl Into<Actor>) => SignalKind::Approve { call: call.clone(), arguments: None }, by;

    /// Rejects a pending call, or a request for more. The reason of a rejected call is shown to the model.
    reject(call: &Path, reason: &str, by: impl Into<Actor>) =>
        SignalKind::Reject { call: call.clone(), reason: Some(reason.to_owned()) }, by;

    /// Grants more to a loop or a brain that has reached a limit and asks for it. The path of the run's own brain is empty.
    grant(to: &Path, more: Amounts, by: impl Into<Actor>) => SignalKind::Grant { to: to.clone(), more }, by;

    /// Answers a call that waits for a reply.
    reply(call: &Path, payload: Value, by: impl Into<Actor>) => SignalKind::Reply { call: call.clone(), payload }, by;

    /// Sends a message to the open loop.
    message(message: impl Into<UserMessage>, by: impl Into<Actor>) => SignalKind::message(message), by;

    /// Updates the state of a plugin of an open loop. The plugin takes the update before the loop's next iteration, or before the loop ends;
    /// if it refuses it, the log has the reason (`LOOP_PLUGIN_FAILED`).
    update_plugin(update: &impl PluginUpdate, by: impl Into<Actor>) => plugin_update(None, update)?, by;

    /// Updates the state of the [instance](crate::dsl::LoopPlugin::named) of a plugin with this name, as `update_plugin` does.
    update_plugin_named(instance: &str, update: &impl PluginUpdate, by: impl Into<Actor>) =>
        plugin_update(Some(instance), update)?, by;

    /// Answers the call of this run that waits for a webhook. [`Client::deliver`] finds the run that waits for it.
    webhook(name: &str, identifier: &str, payload: Value) =>
        SignalKind::Webhook { name: name.to_owned(), identifier: identifier.to_owned(), payload }, Actor::default();

    /// Pauses the run: no new work starts, and work in flight completes. To record who paused it, send
    /// [`SignalKind::Pause`].
    pause() => SignalKind::Pause, Actor::default();

    /// Resumes a paused run. To record who resumed it, send [`SignalKind::Resume`].
    resume() => SignalKind::Resume, Actor::default();

    /// Cancels the run: work in flight is aborted, and every open call gets a typed result. To record who cancelled it, send
    /// [`SignalKind::Cancel`].
    cancel(reason: &str) => SignalKind::Cancel { reason: Some(reason.to_owned()) }, Actor::default();
}

fn plugin_update<U: PluginUpdate>(instance: Option<&str>, update: &U) -> Result<SignalKind, Refusal> {
    let name = U::State::NAME;
    let plugin = instance.map_or_else(|| name.to_owned(), |instance| instance_name(instance, name).into_owned());
    let update = serde_json::to_value(update).map_err(|error| Refusal::Misfit {
        what: format!("the update of the plugin `{plugin}` cannot be recorded"),
        reason: error.to_string(),
    })?;
    Ok(SignalKind::UpdatePlugin { to: None, plugin, update })
}
