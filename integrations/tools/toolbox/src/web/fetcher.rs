//! A GET request with all its checks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use positronic_net::{AddressGuard, HostResolver, NotPublic, PrivateAddresses, SystemResolver};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response};
use serde::Serialize;
use typed_builder::TypedBuilder;
use url::Url;

use super::error::{FetchError, REDIRECTS};
use super::hosts::{HostPattern, Unlisted};
use super::page_text::readable;
use crate::blocking::blocking;

/// Options of a fetcher.
#[derive(Clone, TypedBuilder)]
#[non_exhaustive]
#[derive_where(Debug)]
pub struct FetchOptions {
    /// The allowed hosts: `docs.rs`, `*.example.org` for all subdomains, `127.0.0.1:8080` for a non-default port;
    /// none by default.
    #[builder(default, setter(transform = |hosts: impl IntoIterator<Item = impl Into<String>>| {
        hosts.into_iter().map(Into::into).collect()
    }))]
    pub hosts: Vec<String>,
    /// What to do about other hosts.
    #[builder(default)]
    pub unlisted: Unlisted,
    /// Whether connections to non-public addresses are allowed.
    #[builder(default)]
    pub private: PrivateAddresses,
    /// The timeout of a request, including redirects; 30 seconds by default.
    #[builder(default = Duration::from_secs(30))]
    pub time: Duration,
    /// The maximum size of an answer, in bytes; 1 MiB by default, more than four times the HTML of a median page.
    #[builder(default = 1 << 20)]
    pub max_bytes: usize,
    /// The maximum size of the text for the model, in bytes; 64 KiB by default, as for a file.
    #[builder(default = 64 << 10)]
    pub max_text: usize,
    /// The form of a page.
    #[builder(default)]
    pub html: HtmlAs,
    /// The user agent.
    #[builder(default = format!("Mozilla/5.0 (compatible; Positronic/{})", env!("CARGO_PKG_VERSION")), setter(into))]
    pub user_agent: String,
    /// The DNS resolver; the operating system's by default.
    #[builder(default = Arc::new(SystemResolver), setter(transform = |resolver: impl HostResolver| {
        Arc::new(resolver) as Arc<dyn HostResolver>
    }))]
    #[derive_where(skip)]
    pub resolver: Arc<dyn HostResolver>,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// The form of a page for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HtmlAs {
    /// Its text, with a line for every block.
    #[default]
    Text,
    /// Its source.
    Source,
}

/// A fetched page or file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fetched {
    /// The URL after redirects.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// The media type from the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// The text; `None` for binary content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Further notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A raw answer.
pub(crate) struct RawAnswer {
    pub(crate) url: Url,
    pub(crate) status: u16,
    media_type: String,
    pub(crate) bytes: Vec<u8>,
    whole: bool,
}

/// Fetches pages and files of listed hosts. Clones share the fetcher.
#[derive(Clone)]
pub struct Fetcher {
    inner: Arc<FetcherParts>,
}

struct FetcherParts {
    options: FetchOptions,
    patterns: Vec<HostPattern>,
    guard: AddressGuard,
    client: Client,
}

impl Fetcher {
    /// Creates a fetcher.
    ///
    /// # Errors
    ///
    /// [`FetchError::Pattern`] for an invalid host in the list, [`FetchError::Client`] when TLS cannot be set up.
    pub fn new(options: FetchOptions) -> Result<Self, FetchError> {
        let patterns = options.hosts.iter().map(|host| HostPattern::parse(host)).collect::<Result<_, _>>();
        let patterns = patterns.map_err(FetchError::Pattern)?;
        let guard = AddressGuard::new(Arc::clone(&options.resolver), options.private);
        let client = guard.client().user_agent(&options.user_agent).build();
        let client = client.map_err(|error| FetchError::Client(said(&error)))?;
        Ok(Self { inner: Arc::new(FetcherParts { options, patterns, guard, client }) })
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &FetchOptions {
        &self.inner.options
    }

    /// Lists the hosts for a sentence.
    pub(super) fn hosts(&self) -> String {
        let hosts: Vec<_> = self.inner.options.hosts.iter().map(|host| format!("`{host}`")).collect();
        match (hosts.is_empty(), self.inner.options.unlisted) {
            (true, Unlisted::Refuse) => "none".to_owned(),
            (true, Unlisted::Ask) => "each after a person has allowed it".to_owned(),
            (false, Unlisted::Refuse) => hosts.join(", "),
            (false, Unlisted::Ask) => format!("{}, others after a person has allowed them", hosts.join(", ")),
        }
    }

    fn is_listed(&self, url: &Url) -> bool {
        self.inner.patterns.iter().any(|pattern| pattern.fits(url))
    }

    /// Returns the reason for an approval of a URL, or `None` if none is needed.
    pub(super) fn asks(&self, url: &str) -> Option<String> {
        // An invalid URL fails when it is fetched.
        let url = parse(url).ok()?;
        let asks = self.inner.options.unlisted == Unlisted::Ask && !self.is_listed(&url);
        asks.then(|| format!("the host `{}` is not listed", authority(&url)))
    }

    /// Fetches a page or a file of a listed host.
    ///
    /// # Errors
    ///
    /// A [`FetchError`]. An answer with a status such as 404 is not an error.
    pub async fn fetch(&self, url: &str) -> Result<Fetched, FetchError> {
        Ok(self.shown(self.get(parse(url)?, false).await?).await)
    }

    /// Fetches a URL that was approved if necessary.
    pub(super) async fn fetch_approved(&self, url: &str) -> positronic_core::Result<Fetched> {
        let approved = self.inner.options.unlisted == Unlisted::Ask;
        let answer = async { Ok(self.shown(self.get(parse(url)?, approved).await?).await) }.await;
        answer.map_err(FetchError::into_tool_error)
    }

    /// Gets an answer, following redirects.
    pub(crate) async fn get(&self, url: Url, approved: bool) -> Result<RawAnswer, FetchError> {
        let time = self.inner.options.time;
        let host = authority(&url);
        match tokio::time::timeout(time, self.follow(url, approved)).await {
            Ok(answer) => answer,
            Err(_) => Err(FetchError::Time { host, time }),
        }
    }

    async fn follow(&self, first: Url, approved: bool) -> Result<RawAnswer, FetchError> {
        let mut url = first.clone();
        for hop in 0..=REDIRECTS {
            if !(self.is_listed(&url) || approved && hop == 0) {
                return Err(FetchError::Host { host: authority(&url), hosts: self.hosts() });
            }
            let response = self.ask(&url).await?;
            let next = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
            let Some(next) = next else { return self.read(url, response).await };
            let next = String::from_utf8_lossy(next.as_bytes()).into_owned();
            let joined = url.join(&next).map_err(|error| FetchError::Url { url: next, reason: error.to_string() })?;
            url = checked_scheme(joined)?;
        }
        Err(FetchError::Redirects { url: first.to_string() })
    }

    async fn ask(&self, url: &Url) -> Result<Response, FetchError> {
        self.inner.guard.check(url).map_err(|error| FetchError::Private(error.to_string()))?;
        self.inner.client.get(url.clone()).send().await.map_err(|error| {
            let host = authority(url);
            match NotPublic::cause_of(&error) {
                Some(refused) => FetchError::Private(refused.to_string()),
                None => FetchError::Unreachable { host, reason: said(&error) },
            }
        })
    }

    async fn read(&self, url: Url, mut response: Response) -> Result<RawAnswer, FetchError> {
        let limit = self.inner.options.max_bytes;
        let status = response.status().as_u16();
        let media_type =
            response.headers().get(CONTENT_TYPE).map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
        let mut bytes = Vec::new();
        let mut whole = true;
        let broken = |error: reqwest::Error| FetchError::Broken { host: authority(&url), reason: said(&error) };
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            let room = limit - bytes.len();
            bytes.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if chunk.len() > room {
                whole = false;
                break;
            }
        }
        Ok(RawAnswer { url, status, media_type: media_type.unwrap_or_default(), bytes, whole })
    }

    async fn shown(&self, answer: RawAnswer) -> Fetched {
        let FetchOptions { max_bytes, max_text, html, .. } = self.inner.options;
        let RawAnswer { url, status, media_type, bytes, whole } = answer;
        let mut notes = Vec::new();
        if !whole {
            notes.push(format!("the answer was cut after {max_bytes} bytes"));
        }
        let mut text = match is_text(&media_type, &bytes) {
            true => Some(String::from_utf8_lossy(&bytes).into_owned()),
            false => {
                notes.push(format!("it is not text but {} bytes of something else, which are not shown", bytes.len()));
                None
            }
        };
        if html == HtmlAs::Text && media_type.to_ascii_lowercase().contains("html") {
            text = match text {
                Some(source) => Some(blocking(move || readable(&source)).await),
                None => None,
            };
        }
        if let Some(text) = text.as_mut().filter(|text| text.len() > max_text) {
            notes.push(format!("the text was cut after {max_text} of {} bytes", text.len()));
            text.truncate(text.floor_char_boundary(max_text));
        }
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        Fetched { url: url.into(), status, media_type, text, note }
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.options.fmt(f)
    }
}

pub(crate) fn parse(url: &str) -> Result<Url, FetchError> {
    match Url::parse(url.trim()) {
        Ok(url) => checked_scheme(url),
        Err(error) => Err(FetchError::Url { url: url.escape_debug().to_string(), reason: error.to_string() }),
    }
}

/// Accepts only HTTP URLs without user and password.
fn checked_scheme(mut url: Url) -> Result<Url, FetchError> {
    let refused = |url: &Url, reason: &str| FetchError::Url { url: url.to_string(), reason: reason.to_owned() };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused(&url, "only `http` and `https` can be fetched"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(&url, "it contains a user name or a password"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Returns the host, with a non-default port.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns whether content is text, by its media type and its bytes.
fn is_text(media_type: &str, bytes: &[u8]) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let named = essence.is_empty()
        || essence.starts_with("text/")
        || ["json", "xml", "javascript", "yaml", "toml", "x-sh", "x-www-form-urlencoded", "sql"]
            .iter()
            .any(|kind| essence.ends_with(kind));
    named && !bytes.contains(&0)
}

/// Formats the innermost cause, which is the most understandable one.
fn said(error: &reqwest::Error) -> String {
    let mut said: &dyn std::error::Error = error;
    while let Some(cause) = said.source() {
        said = cause;
    }
    said.to_string()
}
