//! DuckDuckGo's page for browsers without scripts.
//!
//! It is a page for people without a stable interface: it may change, and it requires a CAPTCHA from suspected
//! robots. Both are reported as errors, never as empty results. An application that searches a lot should implement
//! its own [`SearchProvider`].

use futures::future::BoxFuture;
use url::Url;

use super::{SearchError, SearchHit, SearchProvider};
use crate::blocking::blocking;
use crate::html_tokens::{HtmlToken, StartTag, read};
use crate::web::{FetchError, FetchOptions, Fetcher, RawAnswer, parse};

const ENGINE: &str = "DuckDuckGo";
const HOST: &str = "html.duckduckgo.com";

/// Texts of the CAPTCHA page.
const CHALLENGE: [&str; 4] = ["anomaly-modal", "anomaly.js", "challenge-form", "bots use DuckDuckGo"];

/// DuckDuckGo, without an API key.
#[derive(Debug, Clone)]
pub struct DuckDuckGo {
    page: Url,
    region: Option<String>,
    fetcher: Fetcher,
}

impl DuckDuckGo {
    /// Uses DuckDuckGo's own page.
    ///
    /// # Errors
    ///
    /// A [`FetchError`] when TLS cannot be set up.
    pub fn new() -> Result<Self, FetchError> {
        let fetcher = Fetcher::new(FetchOptions::builder().hosts([HOST]).build())?;
        Self::at(&format!("https://{HOST}/html/"), fetcher)
    }

    /// Uses the page at another URL, for instance a proxy; the fetcher must list its host.
    ///
    /// # Errors
    ///
    /// [`FetchError::Url`] when the URL is invalid.
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
            let RawAnswer { status, bytes, .. } = self.fetcher.get(url, false).await?;
            let page = String::from_utf8_lossy(&bytes).into_owned();
            // The CAPTCHA page has a success status that result pages do not have.
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

/// Extracts the hits of a page.
fn hits(page: &str, limit: usize) -> Result<Vec<SearchHit>, SearchError> {
    let layout = |reason| SearchError::Layout { engine: ENGINE, reason };
    let mut results = Results { limit, ..Results::default() };
    read(page, |piece| results.add(&piece));
    results.finish();
    match results {
        Results { seen: false, nothing: true, .. } => Ok(Vec::new()),
        Results { seen: false, .. } => Err(layout("it contains neither results nor a message that there are none")),
        Results { hits, .. } if hits.is_empty() => Err(layout("no result has a title with a link")),
        Results { hits, .. } => Ok(hits),
    }
}

/// The results of a page; each one ends where the next one begins.
#[derive(Default)]
struct Results {
    limit: usize,
    hits: Vec<SearchHit>,
    /// Whether there was a result other than an advertisement.
    seen: bool,
    /// Whether the page reports no results.
    nothing: bool,
    /// The current result.
    open: Option<OpenResult>,
}

#[derive(Default)]
struct OpenResult {
    title: Option<ElementText>,
    url: Option<String>,
    snippet: Option<ElementText>,
}

/// The text of an element, up to its matching end tag.
struct ElementText {
    element: String,
    open: usize,
    text: String,
}

impl Results {
    fn add(&mut self, piece: &HtmlToken<'_>) {
        if let HtmlToken::Start(tag) = piece {
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
        if let HtmlToken::Start(tag) = piece {
            if tag.name == "a" && tag.has_class("result__a") && open.title.is_none() {
                open.title = Some(ElementText::of(tag));
                open.url = tag.href.as_deref().and_then(target);
            }
            if tag.has_class("result__snippet") && open.snippet.is_none() {
                open.snippet = Some(ElementText::of(tag));
            }
        }
    }

    /// Completes the current result.
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

impl ElementText {
    fn of(tag: &StartTag) -> Self {
        Self { element: tag.name.clone(), open: 1, text: String::new() }
    }

    fn add(&mut self, piece: &HtmlToken<'_>) {
        match piece {
            _ if self.open == 0 => {}
            HtmlToken::Start(tag) if tag.name == self.element => self.open += 1,
            HtmlToken::End(name) if **name == self.element => self.open -= 1,
            HtmlToken::Text(text) => self.text.push_str(text),
            HtmlToken::Start(_) | HtmlToken::End(_) => {}
        }
    }

    fn text(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Returns the target of a link: most links go through a redirect of the engine.
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
