//! Plugin states: their name and version in the log, and decoding.

use std::any::TypeId;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::plugin_update::ReceivedUpdate;
use crate::definition::{PluginName, StateOwner, encode, encode_state};
use crate::error::{Error, Result};
use crate::record::{PluginDocument, PluginStates};
use crate::tools::Schema;

/// The state of a plugin, which the log preserves between iterations.
///
/// ```
/// use positronic_core::dsl::PluginState;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Default, Serialize, Deserialize, JsonSchema)]
/// struct Seen { iterations: u32 }
///
/// impl PluginState for Seen {
///     const NAME: &'static str = "seen";
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the state of a plugin",
    label = "this type has no name in the log",
    note = "derive `serde::Serialize`, `serde::Deserialize` and `schemars::JsonSchema` for `{Self}`, and write \
            `impl PluginState for {Self} {{ const NAME: &'static str = \"…\"; }}`"
)]
pub trait PluginState: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The plugin's name in the log. Of several plugins of a name in a loop, all but one have a name as
    /// [instance](super::LoopPlugin::named).
    const NAME: &'static str;

    /// The version of the type. Increase it when earlier states no longer match.
    const VERSION: u32 = 0;

    /// Migrates a state of another version.
    ///
    /// # Errors
    ///
    /// An [`Error`], which is the default: the loop fails with a message that names both versions.
    fn migrate(version: u32, kept: Value) -> Result<Self> {
        _ = kept;
        Err(Error::new(format!("version {} cannot migrate from version {version}", Self::VERSION)))
    }

    /// Takes an [update](super::PluginUpdate) that an application has sent to the run. It runs before an iteration or the end of the
    /// loop, and after a crash perhaps again.
    ///
    /// # Errors
    ///
    /// An [`Error`], which is the default, refuses the update: `LOOP_PLUGIN_FAILED` has its message, the state stays as it was, and the
    /// loop continues.
    fn update(&mut self, update: &ReceivedUpdate<'_>) -> Result<()> {
        _ = update;
        Err(Error::new(format!("the plugin `{}` takes no updates", Self::NAME)))
    }
}

/// Marks a plugin without state. It is named by [`Plugin::NAME`](super::Plugin::NAME), and nothing of it is recorded.
impl PluginState for () {
    const NAME: &'static str = "";
}

/// Returns whether plugins with this state type have a state.
pub(super) fn has_state<P: PluginState>() -> bool {
    TypeId::of::<P>() != TypeId::of::<()>()
}

/// Returns the name of an instance of the plugin with this name.
pub(crate) fn instance_name(instance: &str, plugin: &str) -> PluginName {
    format!("{instance}.{plugin}").into()
}

/// Decodes a plugin's state: validated against the type's schema, or migrated from another version.
pub(super) fn read<P: PluginState>(kept: &PluginDocument) -> Result<P> {
    let refused = |reason: String| {
        let name = P::NAME;
        Error::new(format!(
            "cannot decode the stored state of the plugin `{name}` as `{}`: {reason}",
            std::any::type_name::<P>()
        ))
    };
    if kept.version != P::VERSION {
        return P::migrate(kept.version, Value::clone(&kept.state)).map_err(|error| refused(error.to_string()));
    }
    let raise = "raise its `VERSION` and write `migrate`";
    Schema::of::<P>().check(&kept.state).map_err(|reason| refused(format!("{reason}; {raise}")))?;
    P::deserialize(&*kept.state).map_err(|error| refused(format!("{error}; {raise}")))
}

/// Encodes a plugin's state; `None` for a plugin without.
pub(super) fn document<P: PluginState>(state: &P, max_bytes: usize) -> Result<Option<PluginDocument>> {
    if !has_state::<P>() {
        return Ok(None);
    }
    Ok(Some(PluginDocument { version: P::VERSION, state: Arc::new(encode_state(state, max_bytes)?) }))
}

/// Decodes the state of the plugin with this name.
pub(super) fn read_named<P: PluginState>(states: &PluginStates, name: &str) -> Result<P> {
    match states.get(name) {
        Some(kept) => read(kept),
        None => Err(Error::new(format!("no plugin `{name}` has been prepared in this brain"))),
    }
}

pub(super) fn owner<P: PluginState>(plugin: PluginName) -> StateOwner {
    StateOwner {
        plugin,
        has_state: has_state::<P>(),
        version: P::VERSION,
        read: |kept, max_bytes| encode(&read::<P>(kept)?, max_bytes),
    }
}
