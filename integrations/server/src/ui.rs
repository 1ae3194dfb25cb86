//! The inspector page: its files, embedded in the crate, and the routes that serve them.
//!
//! The page is plain ES modules without a build step. A view loads its modules when it is first shown. All files stand under one hash of their content, so that browsers
//! keep them; the document itself is checked again each time. The page knows only the public API.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};
use tower_http::compression::CompressionLayer;

use crate::app::App;
use crate::auth::client_address;
use crate::problem::{Problem, ProblemType};

/// What the page may load and run: its own files and nothing else. Text never becomes markup or script, which Trusted Types
/// enforce.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
     trusted-types 'none'",
);
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// The maximum bytes and segments of the address of a view. The longest id of a run has 540 bytes in an address.
const MAX_PATH: usize = 4096;
const MAX_SEGMENTS: usize = 16;
const CHECK: HeaderValue = HeaderValue::from_static("no-cache");

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        /// The files beside the document, with their paths.
        const FILES: &[(&str, &[u8])] = &[$(($path, include_bytes!(concat!("../ui/", $path)))),*];
    };
}

files![
    "app.js",
    "icon-waits.svg",
    "icon.svg",
    "lib/api.js",
    "lib/cause.js",
    "lib/dom.js",
    "lib/format.js",
    "lib/hidden.js",
    "lib/icons.js",
    "lib/keys.js",
    "lib/page.js",
    "lib/settle.js",
    "lib/windowed_list.js",
    "parts/attempts.js",
    "parts/batch.js",
    "parts/batches.js",
    "parts/change.js",
    "parts/chart.js",
    "parts/chips.js",
    "parts/common.js",
    "parts/decide.js",
    "parts/decided_today.js",
    "parts/deciding.js",
    "parts/drafts.js",
    "parts/effects.js",
    "parts/hit.js",
    "parts/ids.js",
    "parts/json.js",
    "parts/master.js",
    "parts/markdown.js",
    "parts/messages.js",
    "parts/minimap.js",
    "parts/model.js",
    "parts/next_model.js",
    "parts/node_list.js",
    "parts/pane.js",
    "parts/patch.js",
    "parts/picks.js",
    "parts/query.js",
    "parts/request.js",
    "parts/run_head.js",
    "parts/schedule_times.js",
    "parts/schema_form.js",
    "parts/signin.js",
    "parts/suggest.js",
    "parts/thread.js",
    "parts/transcript.js",
    "parts/trial.js",
    "parts/waterfall.js",
    "style/base.css",
    "style/build.css",
    "style/inter-LICENSE.txt",
    "style/inter.woff2",
    "style/overview.css",
    "style/run.css",
    "style/shell.css",
    "style/views.css",
    "views/actions.js",
    "views/brains.js",
    "views/bulk.js",
    "views/conversations.js",
    "views/diff.js",
    "views/events.js",
    "views/fork.js",
    "views/inbox.js",
    "views/overview.js",
    "views/palette.js",
    "views/playground.js",
    "views/requests.js",
    "views/run.js",
    "views/runs.js",
    "views/schedules.js",
    "views/search.js",
    "views/state.js",
    "views/transcript.js",
    "views/waterfall.js",
    "views/webhooks.js",
];

const DOCUMENT: &str = include_str!("../ui/index.html");

/// The hash of all files, which is a part of their addresses.
static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new_with_prefix(DOCUMENT);
    for (path, bytes) in FILES {
        hash.update(path);
        hash.update(bytes);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
});

/// Creates the routes of the page.
pub(crate) fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .route("/", get(to_page))
        .route("/ui", get(document))
        .route("/ui/", get(document))
        .route("/ui/assets/{hash}/{*path}", get(file))
        .route("/ui/{*path}", get(document))
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(Arc::clone(app), limited))
}

/// Refuses addresses that no view has, since the answer repeats `../` for each of their segments, and too many requests of an address:
/// the page needs no token.
async fn limited(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path.len() > MAX_PATH || path.matches('/').count() > MAX_SEGMENTS {
        return Problem::new(ProblemType::NotFound).into_response();
    }
    let (parts, body) = request.into_parts();
    match app.limits.page(client_address(&app.settings.trusted_proxies, &parts)) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(problem) => problem.into_response(),
    }
}

/// Redirects to the page, below the path of the router.
async fn to_page(State(app): State<Arc<App>>, request: Request) -> Response {
    let prefix = app.prefix(request.uri(), request.extensions());
    (StatusCode::SEE_OTHER, [(LOCATION, format!("{prefix}/ui"))]).into_response()
}

async fn document(request: Request) -> Response {
    let tag = format!("\"{}\"", *HASH);
    let known = request.headers().get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    // Relative to the address of the document, since the router may be nested below any path.
    let up = "../".repeat(request.uri().path().matches('/').count().saturating_sub(1));
    let body = if known { String::new() } else { DOCUMENT.replace("{assets}", &format!("{up}ui/assets/{}", *HASH)) };
    let status = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(CACHE_CONTROL, CHECK);
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    (status, headers, body).into_response()
}

async fn file(Path((hash, path)): Path<(String, String)>) -> Response {
    let found = FILES.iter().find(|(name, _)| *name == path).filter(|_| hash == *HASH);
    let Some((_, bytes)) = found else { return Problem::new(ProblemType::NotFound).into_response() };
    let kind = match path.rsplit_once('.') {
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "woff2")) => "font/woff2",
        Some((_, "txt")) => "text/plain; charset=utf-8",
        _ => "image/svg+xml",
    };
    let headers =
        [(CONTENT_TYPE, HeaderValue::from_static(kind)), (CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, FOREVER)];
    (headers, Body::from(*bytes)).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::*;

    fn paths(folder: &Path, below: &str, into: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                paths(&entry.path(), &format!("{name}/"), into);
            } else {
                into.insert(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let mut found = BTreeSet::new();
        paths(&Path::new(env!("CARGO_MANIFEST_DIR")).join("ui"), "", &mut found);
        found.remove("index.html");

        let embedded = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(found, embedded);
    }

    #[test]
    fn each_file_stays_short() {
        for (path, bytes) in FILES.iter().filter(|(path, _)| !path.ends_with(".woff2")) {
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            assert!(lines < 400, "{path} has {lines} lines");
        }
    }

    /// The maximum size of what a view needs before it shows, as a browser loads it: each file compressed by itself. See
    /// `docs/decisions/0054-each-view-loads-less-than-120-kb-compressed.md`.
    const MAX_VIEW_BYTES: u64 = 120_000;

    /// Returns the size of a file as the server sends it. A font is compressed already.
    fn sent(path: &str, bytes: &[u8]) -> u64 {
        if path.ends_with(".woff2") {
            return bytes.len() as u64;
        }
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut gzip, bytes).unwrap();
        gzip.finish().unwrap().len() as u64
    }

    /// Adds a module and what it imports before it runs. Views, dialogs and forms are imported later, by `import(…)`.
    fn add_module<'a>(path: &str, modules: &mut BTreeMap<&'a str, &'a str>) {
        let (path, bytes) = FILES.iter().find(|(name, _)| *name == path).unwrap_or_else(|| panic!("no file {path}"));
        let text = std::str::from_utf8(bytes).unwrap();
        if modules.insert(path, text).is_some() {
            return;
        }
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for import in text.split(" from '").skip(1).filter_map(|rest| rest.split_once('\'')) {
            let path = match import.0.strip_prefix("../") {
                Some(path) => path.to_owned(),
                None => format!("{folder}/{}", import.0.trim_start_matches("./")).trim_start_matches('/').to_owned(),
            };
            add_module(&path, modules);
        }
    }

    #[test]
    fn each_view_loads_less_than_120_kb_compressed() {
        let tabs = ["transcript", "waterfall", "events", "state", "requests"].map(|tab| vec!["run", tab]);
        let pages = [
            "overview",
            "runs",
            "inbox",
            "conversations",
            "brains",
            "schedules",
            "playground",
            "webhooks",
            "diff",
            "fork",
        ]
        .map(|page| vec![page]);
        for view in tabs.into_iter().chain(pages) {
            let mut modules = BTreeMap::new();
            add_module("app.js", &mut modules);
            for name in &view {
                add_module(&format!("views/{name}.js"), &mut modules);
            }
            let other = FILES.iter().filter(|(path, _)| !path.ends_with(".js") && !path.ends_with(".txt"));
            let files: Vec<_> = other
                .copied()
                .chain(modules.iter().map(|(path, text)| (*path, text.as_bytes())))
                .chain([("index.html", DOCUMENT.as_bytes())])
                .collect();
            let raw: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
            let bytes: u64 = files.iter().map(|(path, bytes)| sent(path, bytes)).sum();
            println!("{}: {raw} bytes, {bytes} compressed", view.join(" "));
            assert!(bytes < MAX_VIEW_BYTES, "{view:?} loads {bytes} bytes");
            assert!(bytes > MAX_VIEW_BYTES / 3, "{view:?} loads only {bytes} bytes: are its imports found?");
        }
    }

    #[test]
    fn text_never_becomes_markup_or_code() {
        for (path, bytes) in FILES.iter().filter(|(path, _)| path.ends_with(".js")) {
            let text = std::str::from_utf8(bytes).unwrap();
            for sink in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc"]
            {
                assert!(!text.contains(sink), "{path} uses {sink}");
            }
            let foreign = text.replace("http://www.w3.org/", "");
            assert!(!foreign.contains("http://") && !foreign.contains("https://"), "{path} names another origin");
        }
    }

    #[test]
    fn the_page_marks_invisible_and_control_characters() {
        let (_, bytes) = FILES.iter().find(|(path, _)| *path == "lib/hidden.js").unwrap();
        let text = std::str::from_utf8(bytes).unwrap();
        let list = text.split_once("const INVISIBLE =").unwrap().1.split_once(';').unwrap().0;
        let codes = list.replace("'\n  + '", "").replace(['\'', ' ', '{', '}'], "");
        let mut ranges = Vec::new();
        for part in codes.split("\\\\u").skip(1) {
            let (code, opens) = part.strip_suffix('-').map_or((part, false), |code| (code, true));
            ranges.push((u32::from_str_radix(code, 16).unwrap(), opens));
        }
        let mut shown = BTreeSet::new();
        let mut from = None;
        for (code, opens) in ranges {
            shown.extend(from.unwrap_or(code)..=code);
            from = opens.then_some(code);
        }

        let engine = (0..=u32::from(char::MAX)).filter_map(char::from_u32);
        // Control characters would be drawn as nothing as well; the engine rejects or escapes them elsewhere.
        let hidden =
            |c: &char| positronic_core::record::is_invisible(*c) || (c.is_control() && !matches!(c, '\t' | '\n'));
        let engine: BTreeSet<_> = engine.filter(hidden).map(u32::from).collect();
        let differ: Vec<_> = shown.symmetric_difference(&engine).collect();
        assert!(differ.is_empty(), "{differ:x?}");
    }
}
