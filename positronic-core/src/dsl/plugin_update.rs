//! Updates of plugins' states that applications send to runs.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::plugin_state::PluginState;
use crate::error::{Error, Result};

/// An update of a plugin's state, which an application sends with [`RunHandle::update_plugin`](crate::runner::RunHandle::update_plugin) or
/// [`Client::update_plugin`](crate::runner::Client::update_plugin).
///
/// It is recorded as JSON when it is sent, whether or not a worker is alive. The state takes it in [`PluginState::update`], before the next
/// iteration of the plugin's loop, or before the loop ends.
///
/// ```
/// use positronic_core::dsl::{PluginState, PluginUpdate, ReceivedUpdate};
/// use positronic_core::prelude::*;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Default, Serialize, Deserialize, JsonSchema)]
/// struct Notes { lines: Vec<String> }
///
/// #[derive(Serialize, Deserialize)]
/// enum NotesUpdate { Write(String), Clear }
///
/// impl PluginUpdate for NotesUpdate {
///     type State = Notes;
/// }
///
/// impl PluginState for Notes {
///     const NAME: &'static str = "notes";
///
///     fn update(&mut self, update: &ReceivedUpdate<'_>) -> Result<()> {
///         match update.read()? {
///             NotesUpdate::Write(line) => self.lines.push(line),
///             NotesUpdate::Clear => self.lines.clear(),
///         }
///         Ok(())
///     }
/// }
///
/// # use positronic_core::runner::{RunHandle, SignalError};
/// # async fn example(run: RunHandle<()>) -> Result<(), SignalError> {
/// run.update_plugin(&NotesUpdate::Write("milk".to_owned()), "ann").await?;
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an update of a plugin",
    label = "no plugin's state takes this type",
    note = "derive `serde::Serialize` and `serde::Deserialize` for `{Self}`, and write `impl PluginUpdate for {Self} {{ type State = …; }}` \
            with the state of the plugin"
)]
pub trait PluginUpdate: Serialize + DeserializeOwned + Send + Sync {
    /// The state that takes it, which names the plugin.
    type State: PluginState;
}

/// An update as the state of a plugin receives it.
#[derive(Debug)]
pub struct ReceivedUpdate<'a>(&'a Value);

impl<'a> ReceivedUpdate<'a> {
    pub(super) const fn new(update: &'a Value) -> Self {
        Self(update)
    }

    /// Decodes the update.
    ///
    /// # Errors
    ///
    /// An [`Error`] if what was sent is not a `U`: it comes from older code, or was not sent with the typed methods.
    pub fn read<U: PluginUpdate>(&self) -> Result<U> {
        let name = std::any::type_name::<U>();
        U::deserialize(self.0).map_err(|error| Error::new(format!("the update is not a `{name}`: {error}")))
    }
}
