//! `search_web`: a search engine behind a trait, and DuckDuckGo's page without scripts as the one that needs no key.

mod duckduckgo;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thiserror::Error;
use typed_builder::TypedBuilder;

use super::web::FetchError;
use crate::dsl::{Options, Services, State, Tool};

pub use duckduckgo::DuckDuckGo;

/// How long a query may be, in bytes: what engines take.
const MAX_QUERY: usize = 500;

/// Something that a search has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SearchHit {
    /// The page's title.
    pub title: String,
    /// Its address.
    pub url: String,
    /// What the engine shows of it.
    pub snippet: String,
}

/// Why a search gave nothing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The query cannot be searched for.
    #[error("the query {0}")]
    Query(&'static str),
    /// The engine could not be asked.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The engine takes the request for a robot's.
    #[error(
        "{engine} asks for a proof that a person searches (HTTP status {status}), so it gave no results; wait some minutes, or use another engine"
    )]
    Blocked {
        /// The engine.
        engine: &'static str,
        /// The HTTP status.
        status: u16,
    },
    /// The engine refused.
    #[error("{engine} answered with HTTP status {status}; try again later, or use another engine")]
    Status {
        /// The engine.
        engine: &'static str,
        /// The HTTP status.
        status: u16,
    },
    /// The page is not as it was.
    #[error("the page of {engine} is not laid out as it was: {reason}; whether there are results is not known")]
    Layout {
        /// The engine.
        engine: &'static str,
        /// What was not found in it.
        reason: &'static str,
    },
    /// An engine of an application's own failed.
    #[error("the search failed: {0}")]
    Other(String),
}

impl SearchError {
    /// Says whether the same search may do better in a moment.
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
/// use positronic_core::toolbox::{SearchError, SearchHit, SearchProvider};
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

/// How searches are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, TypedBuilder)]
pub struct SearchOptions {
    /// How many hits a search gives at most; 10 where nothing is said, the first page of most engines.
    #[builder(default = 10)]
    pub max_hits: usize,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// A search engine with its options. A clone is the same one.
#[derive(Clone)]
pub struct WebSearch {
    provider: Arc<dyn SearchProvider>,
    options: SearchOptions,
}

impl WebSearch {
    /// Takes an engine.
    #[must_use]
    pub fn new(provider: impl SearchProvider, options: SearchOptions) -> Self {
        Self { provider: Arc::new(provider), options }
    }

    /// Takes DuckDuckGo, which needs no key.
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
    /// A [`SearchError`]. That nothing was found is none.
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

impl fmt::Debug for WebSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSearch").field("options", &self.options).finish_non_exhaustive()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchWeb {
    /// What to search for.
    query: String,
}

/// Makes the tool that searches the web.
///
/// ```
/// use positronic_core::prelude::*;
/// use positronic_core::toolbox::{self, WebSearch};
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
                        Err(error) if error.is_transient() => Err(crate::Error::transient(error)),
                        Err(error) => Err(error.into()),
                    }
                }
            })
    })
}
