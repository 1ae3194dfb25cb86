//! `search_web`: a trait for search engines, with DuckDuckGo's page without scripts as an engine without API key.

mod duckduckgo;

use std::sync::Arc;

use derive_where::derive_where;
use futures::future::BoxFuture;
use positronic_core::dsl::{Options, Services, State, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thiserror::Error;
use typed_builder::TypedBuilder;

use super::web::FetchError;

pub use duckduckgo::DuckDuckGo;

/// The maximum length of a query, in bytes, as in most engines.
const MAX_QUERY: usize = 500;

/// A search hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SearchHit {
    /// The page's title.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// The engine's excerpt.
    pub snippet: String,
}

/// The reason why a search failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The query is invalid.
    #[error("the query {0}")]
    Query(&'static str),
    /// The request failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The engine suspects a robot.
    #[error("{engine} requires a CAPTCHA (HTTP status {status}); wait some minutes, or use another engine")]
    Blocked {
        /// The engine.
        engine: &'static str,
        /// The HTTP status.
        status: u16,
    },
    /// The engine returned an error.
    #[error("{engine} answered with HTTP status {status}; try again later, or use another engine")]
    Status {
        /// The engine.
        engine: &'static str,
        /// The HTTP status.
        status: u16,
    },
    /// The page's layout has changed.
    #[error("the page of {engine} has an unknown layout: {reason}; it may contain results")]
    Layout {
        /// The engine.
        engine: &'static str,
        /// The missing part.
        reason: &'static str,
    },
    /// An application's own engine failed.
    #[error("the search failed: {0}")]
    Other(String),
}

impl SearchError {
    /// Returns whether a retry may succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Fetch(error) => error.is_transient(),
            Self::Status { status, .. } => *status >= 500,
            Self::Query(_) | Self::Blocked { .. } | Self::Layout { .. } | Self::Other(_) => false,
        }
    }
}

/// A search engine.
///
/// ```
/// use futures::future::BoxFuture;
/// use positronic_toolbox::{SearchError, SearchHit, SearchProvider};
///
/// struct Intranet;
///
/// impl SearchProvider for Intranet {
///     fn search<'a>(&'a self, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
///         Box::pin(async move {
///             let hit = |page| SearchHit { title: format!("{query} {page}"), url: String::new(), snippet: String::new() };
///             Ok((0..limit).map(hit).collect())
///         })
///     }
/// }
/// ```
pub trait SearchProvider: Send + Sync + 'static {
    /// Searches; the best hit comes first.
    fn search<'a>(&'a self, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>>;
}

/// Options of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, TypedBuilder)]
#[non_exhaustive]
pub struct SearchOptions {
    /// The maximum number of hits; 10 by default, the first page of most engines.
    #[builder(default = 10)]
    pub max_hits: usize,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// A search engine with its options. Clones share it.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct WebSearch {
    #[derive_where(skip)]
    provider: Arc<dyn SearchProvider>,
    options: SearchOptions,
}

impl WebSearch {
    /// Creates a search with an engine.
    #[must_use]
    pub fn new(provider: impl SearchProvider, options: SearchOptions) -> Self {
        Self { provider: Arc::new(provider), options }
    }

    /// Creates a search with DuckDuckGo, which needs no API key.
    ///
    /// # Errors
    ///
    /// A [`FetchError`] when TLS cannot be set up.
    pub fn duckduckgo() -> Result<Self, FetchError> {
        Ok(Self::new(DuckDuckGo::new()?, SearchOptions::default()))
    }

    /// Searches.
    ///
    /// # Errors
    ///
    /// A [`SearchError`]. No hits are not an error.
    pub async fn search(&self, query: &str) -> Result<Vec<SearchHit>, SearchError> {
        let query = query.trim();
        if query.is_empty() {
            return Err(SearchError::Query("is empty; say what to search for"));
        }
        if query.len() > MAX_QUERY {
            return Err(SearchError::Query("is longer than 500 bytes; search for less"));
        }
        let mut hits = self.provider.search(query, self.options.max_hits).await?;
        hits.truncate(self.options.max_hits);
        Ok(hits)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchWeb {
    /// What to search for.
    query: String,
}

/// Creates the tool that searches the web.
///
/// ```
/// use positronic_core::prelude::*;
/// use positronic_toolbox::{self as toolbox, WebSearch};
///
/// # fn main() -> positronic_core::Result<()> {
/// let web = WebSearch::duckduckgo()?;
/// let scout = brain("Scout").r#loop("Search", move |cx| cx.system("Search.").tools([toolbox::search_web(&web)]));
/// # let _ = scout;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn search_web<O: Options, S: State, V: Services>(web: &WebSearch) -> Tool<O, S, V> {
    let web = web.clone();
    Tool::new("search_web", |t| {
        t.title("Search the web")
            .description("Searches the web. Gives the titles, addresses and snippets of pages, and not their texts.")
            .read_only()
            .execute(move |SearchWeb { query }, _| {
                let web = web.clone();
                async move {
                    match web.search(&query).await {
                        Ok(hits) if hits.is_empty() => Ok(json!({"results": [], "note": "nothing was found"})),
                        Ok(hits) => Ok(json!({"results": hits})),
                        Err(error) if error.is_transient() => Err(positronic_core::Error::transient(error)),
                        Err(error) => Err(error.into()),
                    }
                }
            })
    })
}
