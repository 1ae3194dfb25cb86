//! Plugins as values of one type, with names for several instances of one plugin.

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use futures::future::BoxFuture;
use serde_json::Value;

use super::around::CallAround;
use super::plugin::{Plugin, PluginContext, Preparation, RequestEdit, ResponseInspection};
use super::plugin_state::{PluginState as _, document, instance_name, owner, read};
use super::plugin_update::ReceivedUpdate;
use super::services::Services;
use super::trait_bounds::{Options, State};
use super::usage_panic::usage_panic;
use crate::definition::{
    AnyPlugin, Hook, Inspected, Invocation, LoopDefinition, NextCall, PluginName, Scope, UntypedReply,
};
use crate::error::Result;
use crate::record::{ModelResponse, PluginDocument, ToolId};

/// A plugin for the loops of brains with options `O`, state `S` and services `V`, without its own type: several fit in one list.
/// [`plugin`] makes it.
#[must_use = "a plugin has its effect when it is given to a loop"]
#[derive_where(Clone, Debug)]
pub struct LoopPlugin<O = (), S = (), V = ()> {
    pub(super) name: PluginName,
    #[derive_where(skip)]
    pub(super) plugin: Arc<dyn AnyPlugin>,
    types: PhantomData<fn(O, S, V)>,
}

/// Makes a plugin a value of the type [`LoopPlugin`], for a list of different plugins or for a name of its own.
///
/// ```
/// use positronic_core::dsl::{Options, Plugin, Preparation, Services, State, plugin};
/// use positronic_core::prelude::*;
///
/// /// Shows a text to the model. It has no state.
/// struct Hint(&'static str);
///
/// impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Hint {
///     type State = ();
///     const NAME: &'static str = "hint";
///
///     fn initial(&self) {}
///
///     async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, ()>) -> Result<()> {
///         cx.context("hint", self.0);
///         Ok(())
///     }
/// }
///
/// let chat = brain("Chat").r#loop("Talk", |cx| {
///     cx.system("Help.").plugins([plugin(Hint("Be short.")), plugin(Hint("Be kind.")).named("tone")])
/// });
/// # let _ = chat;
/// ```
pub fn plugin<O: Options, S: State, V: Services>(plugin: impl Plugin<O, S, V>) -> LoopPlugin<O, S, V> {
    plugin.erased()
}

impl<O: Options, S: State, V: Services> LoopPlugin<O, S, V> {
    pub(super) fn of<P: Plugin<O, S, V>>(plugin: P) -> Self {
        const {
            assert!(
                !Typed::<P, O, S, V>::NAME.is_empty(),
                "a plugin without state has a name: `const NAME: &'static str = \"…\";` in its `impl Plugin`"
            );
        }
        Self {
            name: Typed::<P, O, S, V>::NAME.into(),
            plugin: Arc::new(Typed { plugin, types: PhantomData }),
            types: PhantomData,
        }
    }

    /// Names this instance, so that a loop can have several of one plugin. The state is stored under `work.notes` for an instance
    /// `work` of the plugin `notes`, and the plugin's tools and context begin with `work.`. Tools of the brain that a plugin adds keep
    /// their names.
    ///
    /// A name is part of what is stored: an instance with a new one begins with a new state.
    ///
    /// # Panics
    ///
    /// If the name is empty or has other characters than ASCII letters, digits, `_` and `-`, or the plugin has a name already.
    #[track_caller]
    pub fn named(self, instance: &str) -> Self {
        if ToolId::new(instance).is_err() || instance.contains('.') {
            usage_panic(&format!(
                "`{instance}` cannot name a plugin: a name has 1 to 64 ASCII letters, digits, `_` or `-`"
            ));
        }
        if let Some((known, plugin)) = self.name.split_once('.').filter(|_| self.name != self.plugin.name()) {
            usage_panic(&format!("the plugin `{plugin}` has the name `{known}` already; name it once"));
        }
        Self { name: instance_name(instance, &self.name), ..self }
    }
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for LoopPlugin<O, S, V> {
    type State = ();

    fn initial(&self) {}

    fn erased(self) -> Self {
        self
    }
}

struct Typed<P, O, S, V> {
    plugin: P,
    types: PhantomData<fn(O, S, V)>,
}

impl<O: Options, S: State, V: Services, P: Plugin<O, S, V>> Typed<P, O, S, V> {
    const NAME: &'static str = if P::State::NAME.is_empty() { P::NAME } else { P::State::NAME };

    fn context(&self, name: PluginName, scope: Scope) -> Result<PluginContext<O, S, V, P::State>> {
        let prefix = name.len().saturating_sub(Self::NAME.len());
        PluginContext::new(scope, name, prefix, || self.plugin.initial())
    }
}

impl<O: Options, S: State, V: Services, P: Plugin<O, S, V>> AnyPlugin for Typed<P, O, S, V> {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn tool_names(&self, instance: &str) -> Vec<String> {
        let prefix = instance.strip_suffix(Self::NAME).unwrap_or_default();
        self.plugin.tool_names(&|name| format!("{prefix}{name}"))
    }

    fn initial(&self, max_bytes: usize) -> Result<Option<PluginDocument>> {
        document(&self.plugin.initial(), max_bytes)
    }

    fn prepare<'a>(&'a self, name: PluginName, scope: Scope, definition: &'a mut LoopDefinition) -> Hook<'a> {
        Box::pin(async move {
            let mut preparation = Preparation { context: self.context(name, scope)?, definition };
            self.plugin.prepare(&mut preparation).await?;
            preparation.kept()
        })
    }

    fn request<'a>(&'a self, name: PluginName, scope: Scope, definition: &'a mut LoopDefinition) -> Hook<'a> {
        Box::pin(async move {
            let mut edit = RequestEdit { context: self.context(name, scope)?, definition };
            self.plugin.request(&mut edit).await?;
            edit.kept()
        })
    }

    fn response<'a>(
        &'a self,
        name: PluginName,
        scope: Scope,
        response: &'a ModelResponse,
        inspected: &'a mut Inspected,
    ) -> Hook<'a> {
        Box::pin(async move {
            let guards = P::GUARDS;
            let mut inspection = ResponseInspection { context: self.context(name, scope)?, inspected, guards };
            self.plugin.response(&mut inspection, response).await?;
            inspection.kept()
        })
    }

    fn guards(&self) -> bool {
        P::GUARDS
    }

    fn update(
        &self,
        kept: Option<&PluginDocument>,
        update: &Value,
        max_bytes: usize,
    ) -> Result<Option<PluginDocument>> {
        let mut state = kept.map_or_else(|| Ok(self.plugin.initial()), read::<P::State>)?;
        state.update(&ReceivedUpdate::new(update))?;
        document(&state, max_bytes)
    }

    fn call<'a>(
        &'a self,
        name: PluginName,
        scope: Scope,
        call: &'a Invocation,
        next: NextCall<'a>,
    ) -> BoxFuture<'a, Result<UntypedReply>> {
        Box::pin(async move {
            let context = self.context(name.clone(), scope)?;
            let around = CallAround::new(call, next);
            Ok(self.plugin.call(&context, around).await?.into_reply(|| owner::<P::State>(name.clone())))
        })
    }
}
