//! `http_fetch`: pages and files of listed hosts, but not of the author's internal network.
//!
//! Every connection goes to an address that [`AddressGuard`](positronic_net::AddressGuard) allows. A redirect is a new request,
//! with all checks.

mod error;
mod fetcher;
mod hosts;
mod page_text;

use positronic_core::dsl::{Options, Services, State, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

pub use error::FetchError;
pub use fetcher::{FetchOptions, Fetched, Fetcher, HtmlAs};
pub(super) use fetcher::{RawAnswer, parse};
pub use hosts::Unlisted;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HttpFetch {
    /// The whole address, beginning with `https://` or `http://`.
    url: String,
}

/// Creates the tool that fetches pages and files.
///
/// Its result contains the URL after redirects, the status, the media type and the text; for binary content, only the size.
///
/// ```
/// use positronic_core::prelude::*;
/// use positronic_toolbox::{self as toolbox, FetchOptions, Fetcher};
///
/// # fn main() -> positronic_core::Result<()> {
/// let fetcher = Fetcher::new(FetchOptions::builder().hosts(["docs.rs", "*.example.org"]).build())?;
/// let reader = brain("Reader").r#loop("Read", move |cx| cx.system("Read.").tools([toolbox::http_fetch(&fetcher)]));
/// # let _ = reader;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn http_fetch<O: Options, S: State, V: Services>(fetcher: &Fetcher) -> Tool<O, S, V> {
    let (asked, fetcher) = (fetcher.clone(), fetcher.clone());
    Tool::new("http_fetch", |t| {
        t.title("Fetch a page")
            .description(format!("Fetches a page or a text file with GET. Hosts: {}.", fetcher.hosts()))
            .read_only()
            .timeout(fetcher.options().time + std::time::Duration::from_secs(5))
            .approval(move |fetch: &HttpFetch, _| asked.asks(&fetch.url))
            .execute(move |HttpFetch { url }, _| {
                let fetcher = fetcher.clone();
                // The call only runs after a required approval of the host.
                async move { fetcher.fetch_approved(&url).await }
            })
    })
}
