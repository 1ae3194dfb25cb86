//! What a plugin keeps: its name and version in the log, and how it is read again.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::definition::{StateOwner, encode};
use crate::error::{Error, Result};
use crate::record::PluginDocument;
use crate::tools::Schema;

/// What a plugin keeps, in the log, from iteration to iteration.
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
    message = "`{Self}` is not what a plugin keeps",
    label = "this type has no name in the log",
    note = "derive `serde::Serialize`, `serde::Deserialize` and `schemars::JsonSchema` for `{Self}`, and write \
            `impl PluginState for {Self} {{ const NAME: &'static str = \"…\"; }}`"
)]
pub trait PluginState: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The plugin's name in the log; a loop has one plugin of a name.
    const NAME: &'static str;

    /// The version of the type. Raise it when what was kept before does not fit any more.
    const VERSION: u32 = 0;

    /// Makes a state from one that another version has kept.
    ///
    /// # Errors
    ///
    /// An [`Error`], which is what happens where it is not written: the loop fails with a sentence that names both versions.
    fn migrate(version: u32, kept: Value) -> Result<Self> {
        _ = kept;
        Err(Error::new(format!("version {} does not say how to read version {version}", Self::VERSION)))
    }
}

/// Reads what a plugin keeps: checked against the type's schema, or migrated from another version.
pub(super) fn read<P: PluginState>(kept: &PluginDocument) -> Result<P> {
    let refused = |reason: String| {
        let name = P::NAME;
        Error::new(format!("what the plugin `{name}` has kept does not fit `{}`: {reason}", std::any::type_name::<P>()))
    };
    if kept.version != P::VERSION {
        return P::migrate(kept.version, Value::clone(&kept.state)).map_err(|error| refused(error.to_string()));
    }
    let raise = "raise its `VERSION` and write `migrate`";
    Schema::of::<P>().check(&kept.state).map_err(|reason| refused(format!("{reason}; {raise}")))?;
    P::deserialize(&*kept.state).map_err(|error| refused(format!("{error}; {raise}")))
}

pub(super) const fn owner<P: PluginState>() -> StateOwner {
    StateOwner { plugin: P::NAME, version: P::VERSION, read: |kept| encode(&read::<P>(kept)?) }
}
