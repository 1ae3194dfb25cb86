//! Blueprints: documents that match the latest user input, as context.

mod folder;
mod index;

use std::sync::Arc;

use derive_where::derive_where;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use folder::MarkdownFolder;
pub use index::MemoryIndex;

use positronic_core::Result;
use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::record::{ContentHash, Path, hash_text};

use super::latest_input;

/// A searchable document.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// Its name, for people and models.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Single words about its subject; a search weighs them like the name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl Document {
    /// Creates a document.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), tags: Vec::new() }
    }

    /// Sets the tags.
    #[must_use]
    pub fn tags<'t>(mut self, tags: impl IntoIterator<Item = &'t str>) -> Self {
        self.tags.extend(tags.into_iter().map(str::to_owned));
        self
    }
}

/// A searchable source of documents: a [`MemoryIndex`], a [`MarkdownFolder`], or an application's own index.
///
/// ```
/// use positronic_plugins::{Document, DocumentSource};
/// use positronic_core::Result;
///
/// struct Wiki { url: String }
///
/// impl DocumentSource for Wiki {
///     async fn search(&self, query: &str, limit: usize) -> Result<Vec<Document>> {
///         // … ask the wiki's own search for `limit` pages …
///         Ok(vec![Document::new("Home", format!("{}: nothing about {query}", self.url))].into_iter().take(limit).collect())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no source of documents",
    label = "it cannot be searched",
    note = "write `impl DocumentSource for {Self}`, or use `MemoryIndex` or `MarkdownFolder`"
)]
pub trait DocumentSource: Send + Sync + 'static {
    /// Finds the documents that match a query, best match first.
    ///
    /// # Errors
    ///
    /// An [`Error`](positronic_core::Error) when the search fails.
    fn search(&self, query: &str, limit: usize) -> impl Future<Output = Result<Vec<Document>>> + Send;
}

impl<D: DocumentSource> DocumentSource for Arc<D> {
    fn search(&self, query: &str, limit: usize) -> impl Future<Output = Result<Vec<Document>>> + Send {
        D::search(self, query, limit)
    }
}

/// Shows the model the documents that match the latest user input.
///
/// Each is a context item named `blueprint/` and the document's name, best match first; at most 3 unless
/// [`top`](Self::top) is set. The input is the loop's own or the latest message to it, whichever is later;
/// a loop without input finds nothing, unless [`query`](Self::query) is set.
///
/// Matches are stored, so a search is made only when the input changes, and a restart sends the same documents.
/// When the search fails, a warning is logged, the iteration uses the earlier matches, and the next one searches again.
///
/// ```
/// use positronic_plugins::{Blueprints, Document, MemoryIndex};
/// use positronic_core::prelude::*;
///
/// let rules = MemoryIndex::new([
///     Document::new("Refunds", "Broken goods are paid back within 30 days.").tags(["broken", "money"]),
///     Document::new("Shipping", "Parcels leave on the same day."),
/// ]);
/// let blueprints = Blueprints::new(rules).top(2);
/// let brain = brain("Support").r#loop("Chat", move |cx| {
///     cx.system("Follow the rules.").input("My mug is broken.").plugin(blueprints.clone())
/// });
/// # let _ = brain;
/// ```
#[derive(Clone)]
#[must_use = "blueprints have their effect when they are given to a loop"]
#[derive_where(Debug)]
pub struct Blueprints {
    #[derive_where(skip)]
    source: Arc<dyn AnySource>,
    top: usize,
    query: Option<String>,
}

/// The state of [`Blueprints`]; read it with `cx.plugin_state::<FoundBlueprints>()`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FoundBlueprints {
    /// The path of the searching loop.
    pub loop_at: String,
    /// The hash of the query, as text; empty if there was none.
    pub query: String,
    /// The matches, best first.
    pub found: Vec<Document>,
}

impl PluginState for FoundBlueprints {
    const NAME: &'static str = "blueprints";
}

impl Blueprints {
    /// Creates the plugin with its source.
    pub fn new(source: impl DocumentSource) -> Self {
        Self { source: Arc::new(source), top: 3, query: None }
    }

    /// Sets the maximum number of documents.
    pub const fn top(mut self, documents: usize) -> Self {
        self.top = documents;
        self
    }

    /// Sets the query instead of the latest user input: for instance a tool's answer in the
    /// state, which the loop's configuration sees.
    pub fn query(mut self, text: impl Into<String>) -> Self {
        self.query = Some(text.into());
        self
    }
}

/// A type-erased source.
trait AnySource: Send + Sync {
    fn search<'a>(&'a self, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Document>>>;
}

impl<D: DocumentSource> AnySource for D {
    fn search<'a>(&'a self, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Document>>> {
        Box::pin(DocumentSource::search(self, query, limit))
    }
}

fn fingerprint(query: &str, top: usize) -> ContentHash {
    hash_text(&format!("{top} {query}"))
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Blueprints {
    type State = FoundBlueprints;

    fn initial(&self) -> FoundBlueprints {
        FoundBlueprints::default()
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, FoundBlueprints>) -> Result<()> {
        let loop_at = cx.path().parent().as_ref().map(Path::to_string).unwrap_or_default();
        if cx.state.loop_at != loop_at {
            cx.state = FoundBlueprints { loop_at, ..FoundBlueprints::default() };
        }
        let query = self.query.clone().or_else(|| cx.history().and_then(latest_input)).unwrap_or_default();
        let hash = fingerprint(&query, self.top).to_string();
        if query.trim().is_empty() {
            (cx.state.query, cx.state.found) = (String::new(), Vec::new());
        } else if cx.state.query != hash {
            match self.source.search(&query, self.top).await {
                Ok(mut found) => {
                    found.truncate(self.top);
                    (cx.state.query, cx.state.found) = (hash, found);
                }
                Err(error) => {
                    tracing::warn!(run = %cx.run_id(), path = %cx.path(), %error, "no documents are found for this iteration");
                }
            }
        }
        for Document { name, text, .. } in cx.state.found.clone() {
            cx.context(format!("blueprint/{name}"), format!("# {name}\n\n{text}"));
        }
        Ok(())
    }
}
