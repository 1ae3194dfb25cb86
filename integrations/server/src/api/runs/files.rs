//! `/runs/{run}/files`: the files of a run.

use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use positronic_core::projection::RunFile;
use positronic_core::record::FileLocation;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::state::immutable;
use crate::api::run_item::value;
use crate::cursor::List;
use crate::long_answer;
use crate::problem::{Problem, ProblemType};
use crate::redact::AsIs;
use crate::routes::{RequestContext, Route, json};
use crate::time::Time;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/runs/{run}/files", "List the files of a run", list).returns::<List<FileItem>>(200),
        Route::get("/api/v1/runs/{run}/files/{sha256}", "Download a file of a run", download)
            .returns_text(200, "*/*")
            .problems(&[ProblemType::NotFound, ProblemType::TooManyStreams]),
    ]
}

/// A file of a run.
#[derive(Serialize, JsonSchema)]
struct FileItem {
    name: String,
    media_type: String,
    /// In bytes; 0 if unknown.
    size: u64,
    /// The name under which it can be downloaded here; absent if its bytes are elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// The URL of a file that is elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The call, the answer, or the loop with the message.
    path: String,
    /// `tool` with its name, `model` or `message`.
    origin: Value,
    at: Time,
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let files = cx.app.client.files(&cx.run()?.run).await?;
    json(&List::whole(files.iter().map(item).collect()))
}

fn item(file: &RunFile) -> FileItem {
    let RunFile { path, origin, at, file } = file;
    let (sha256, url) = match file.location() {
        FileLocation::Stored(hash) => (Some(hash.to_owned()), None),
        FileLocation::Url(url) => (None, Some(url.to_owned())),
        _ => (None, None),
    };
    FileItem {
        name: file.name.clone(),
        media_type: file.media_type.clone(),
        size: file.size,
        sha256,
        url,
        path: path.to_string(),
        origin: value(origin),
        at: (*at).into(),
    }
}

/// Answers with the bytes of a file of this run. A browser saves them and runs nothing in them.
async fn download(cx: RequestContext) -> Result<Response, Problem> {
    let (client, hash) = (&cx.app.client, cx.param("sha256")?);
    let files = client.files(&cx.run()?.run).await?;
    let file = files.iter().map(|file| &file.file).find(|file| file.blob() == Some(hash));
    let file = file.ok_or(ProblemType::NotFound)?;
    let bytes = client.blob(hash).await?.ok_or(ProblemType::NotFound)?;
    let size = bytes.len();
    let chunks = futures::stream::iter([Ok(Bytes::from(bytes))]);
    let mut response = long_answer::body(&cx, chunks)?.into_response();
    response.headers_mut().insert(CONTENT_LENGTH, size.into());
    let headers = response.headers_mut();
    let media_type = HeaderValue::try_from(&file.media_type);
    headers.insert(CONTENT_TYPE, media_type.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    if let Ok(disposition) = HeaderValue::try_from(disposition(&file.name)) {
        headers.insert(CONTENT_DISPOSITION, disposition);
    }
    immutable(&mut response);
    response.extensions_mut().insert(AsIs);
    Ok(response)
}

/// Returns the header that names a download (RFC 6266).
fn disposition(name: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::from("attachment; filename*=UTF-8''");
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_') {
            text.push(char::from(byte));
        } else {
            _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_downloads_are_encoded() {
        assert_eq!(disposition("bees 1.jpg"), "attachment; filename*=UTF-8''bees%201.jpg");
        assert_eq!(disposition("a\"\r\nX: ü/.."), "attachment; filename*=UTF-8''a%22%0D%0AX%3A%20%C3%BC%2F..");
    }
}
