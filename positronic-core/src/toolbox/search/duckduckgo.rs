//! DuckDuckGo's page for browsers without scripts.
//!
//! It is a page for people, and no interface with a promise: it may change, and it asks for a proof where it takes a request for a
//! robot's. Both are errors that say so, never "nothing was found". An application that searches a lot gives a
//! [`SearchProvider`] of its own.

use futures::future::BoxFuture;
use url::Url;

use super::{SearchError, SearchHit, SearchProvider};
use crate::toolbox::blocking::blocking;
use crate::toolbox::html::{Piece, StartTag, read};
use crate::toolbox::web::{Answer, FetchError, FetchOptions, Fetcher, parse};

const ENGINE: &str = "DuckDuckGo";
const HOST: &str = "html.duckduckgo.com";

/// What stands in the page that asks for a proof that a person searches.
const CHALLENGE: [&str; 4] = ["anomaly-modal", "anomaly.js", "challenge-form", "bots use DuckDuckGo"];

/// DuckDuckGo, without a key.
#[derive(Debug, Clone)]
pub struct DuckDuckGo {
    page: Url,
    region: Option<String>,
    fetcher: Fetcher,
}

impl DuckDuckGo {
    /// Takes DuckDuckGo's own page.
    ///
    /// # Errors
    ///
    /// A [`FetchError`] when TLS cannot be set up.
    pub fn new() -> Result<Self, FetchError> {
        let fetcher = Fetcher::new(FetchOptions::builder().hosts([HOST]).build())?;
        Self::at(&format!("https://{HOST}/html/"), fetcher)
    }

    /// Takes the page at another address, for instance one's own proxy; the fetcher has to list its host.
    ///
    /// # Errors
    ///
    /// [`FetchError::Url`] when the address is none.
    pub fn at(page: &str, fetcher: Fetcher) -> Result<Self, FetchError> {
        Ok(Self { page: parse(page)?, region: None, fetcher })
    }

    /// Prefers the pages of a region, such as `de-de`.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }
}

impl SearchProvider for DuckDuckGo {
    fn search<'a>(&'a self, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
        Box::pin(async move {
            let mut url = self.page.clone();
            url.query_pairs_mut().append_pair("q", query);
            if let Some(region) = &self.region {
                url.query_pairs_mut().append_pair("kl", region);
            }
            let Answer { status, bytes, .. } = self.fetcher.get(url, false).await?;
            let page = String::from_utf8_lossy(&bytes).into_owned();
            // The page that asks for a proof comes with a status of success that no results have.
            if status == 202 || status == 403 || status == 429 || CHALLENGE.iter().any(|mark| page.contains(mark)) {
                return Err(SearchError::Blocked { engine: ENGINE, status });
            }
            if status != 200 {
                return Err(SearchError::Status { engine: ENGINE, status });
            }
            blocking(move || hits(&page, limit)).await
        })
    }
}

/// Reads the hits of a page.
fn hits(page: &str, limit: usize) -> Result<Vec<SearchHit>, SearchError> {
    let layout = |reason| SearchError::Layout { engine: ENGINE, reason };
    let mut results = Results { limit, ..Results::default() };
    read(page, |piece| results.add(&piece));
    results.finish();
    match results {
        Results { seen: false, nothing: true, .. } => Ok(Vec::new()),
        Results { seen: false, .. } => Err(layout("there are neither results nor a word that there are none")),
        Results { hits, .. } if hits.is_empty() => Err(layout("no result has a title with an address")),
        Results { hits, .. } => Ok(hits),
    }
}

/// The results of a page, read one after the other: one lasts until the next one begins.
#[derive(Default)]
struct Results {
    limit: usize,
    hits: Vec<SearchHit>,
    /// Whether there was a result that is not an advertisement.
    seen: bool,
    /// Whether the page says that nothing was found.
    nothing: bool,
    /// The result that is being read.
    open: Option<OpenResult>,
}

#[derive(Default)]
struct OpenResult {
    title: Option<Reading>,
    url: Option<String>,
    snippet: Option<Reading>,
}

/// The text of an element, read until as many tags of its name have ended as have begun.
struct Reading {
    element: String,
    open: usize,
    text: String,
}

impl Results {
    fn add(&mut self, piece: &Piece<'_>) {
        if let Piece::Start(tag) = piece {
            self.nothing |= tag.has_class("result--no-result") || tag.has_class("no-results");
            if tag.has_class("result") {
                self.finish();
                if !tag.has_class("result--ad") && !tag.has_class("result--no-result") {
                    self.seen = true;
                    self.open = Some(OpenResult::default());
                }
            }
        }
        let Some(open) = &mut self.open else { return };
        for reading in [&mut open.title, &mut open.snippet].into_iter().flatten() {
            reading.add(piece);
        }
        if let Piece::Start(tag) = piece {
            if tag.name == "a" && tag.has_class("result__a") && open.title.is_none() {
                open.title = Some(Reading::of(tag));
                open.url = tag.href.as_deref().and_then(target);
            }
            if tag.has_class("result__snippet") && open.snippet.is_none() {
                open.snippet = Some(Reading::of(tag));
            }
        }
    }

    /// Ends the result that is being read.
    fn finish(&mut self) {
        let Some(OpenResult { title: Some(title), url: Some(url), snippet }) = self.open.take() else { return };
        if self.hits.len() < self.limit {
            self.hits.push(SearchHit {
                title: title.text(),
                url,
                snippet: snippet.map(|snippet| snippet.text()).unwrap_or_default(),
            });
        }
    }
}

impl Reading {
    fn of(tag: &StartTag) -> Self {
        Self { element: tag.name.clone(), open: 1, text: String::new() }
    }

    fn add(&mut self, piece: &Piece<'_>) {
        match piece {
            _ if self.open == 0 => {}
            Piece::Start(tag) if tag.name == self.element => self.open += 1,
            Piece::End(name) if **name == self.element => self.open -= 1,
            Piece::Text(text) => self.text.push_str(text),
            Piece::Start(_) | Piece::End(_) => {}
        }
    }

    fn text(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Returns where a link leads: most lead over the engine, which is told where to.
fn target(link: &str) -> Option<String> {
    let link = Url::parse("https://duckduckgo.com/").ok()?.join(link).ok()?;
    let engine = link.host_str().is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"));
    let target = match engine {
        false => link,
        true => {
            let (_, target) = link.query_pairs().find(|(name, _)| name == "uddg").filter(|_| link.path() == "/l/")?;
            Url::parse(&target).ok()?
        }
    };
    matches!(target.scheme(), "http" | "https").then(|| target.into())
}
