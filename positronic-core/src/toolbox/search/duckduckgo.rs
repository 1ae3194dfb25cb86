//! DuckDuckGo's page for browsers without scripts.
//!
//! It is a page for people, and no interface with a promise: it may change, and it asks for a proof where it takes a request for a
//! robot's. Both are errors that say so, never "nothing was found". An application that searches a lot gives a
//! [`SearchProvider`] of its own.

use futures::future::BoxFuture;
use scraper::{ElementRef, Html, Selector};
use url::Url;

use super::{SearchError, SearchHit, SearchProvider};
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
            let page = String::from_utf8_lossy(&bytes);
            // The page that asks for a proof comes with a status of success that no results have.
            if status == 202 || status == 403 || status == 429 || CHALLENGE.iter().any(|mark| page.contains(mark)) {
                return Err(SearchError::Blocked { engine: ENGINE, status });
            }
            if status != 200 {
                return Err(SearchError::Status { engine: ENGINE, status });
            }
            hits(&page, limit)
        })
    }
}

/// Reads the hits of a page.
fn hits(page: &str, limit: usize) -> Result<Vec<SearchHit>, SearchError> {
    let layout = |reason| SearchError::Layout { engine: ENGINE, reason };
    let select = |selector| Selector::parse(selector).map_err(|_| layout("its selectors cannot be read"));
    let (results, link) = (select(".result:not(.result--ad):not(.result--no-result)")?, select("a.result__a")?);
    let (snippet, nothing) = (select(".result__snippet")?, select(".result--no-result, .no-results")?);
    let page = Html::parse_document(page);
    let results: Vec<_> = page.select(&results).collect();
    if results.is_empty() {
        let nothing = page.select(&nothing).next().is_some();
        return if nothing {
            Ok(Vec::new())
        } else {
            Err(layout("there are neither results nor a word that there are none"))
        };
    }
    let found: Vec<_> = results
        .iter()
        .filter_map(|result| {
            let link = result.select(&link).next()?;
            let url = target(link.attr("href")?)?;
            let snippet = result.select(&snippet).next().map(text).unwrap_or_default();
            Some(SearchHit { title: text(link), url, snippet })
        })
        .take(limit)
        .collect();
    if found.is_empty() { Err(layout("no result has a title with an address")) } else { Ok(found) }
}

fn text(element: ElementRef<'_>) -> String {
    element.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
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
