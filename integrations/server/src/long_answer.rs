//! Long answers: each takes one of the streams that a caller may have open, and ends on shutdown and when the caller's right
//! expires or is revoked.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use futures::stream::{Stream, StreamExt as _, unfold};
use positronic_core::store::StoreError;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::routes::RequestContext;

/// How often the caller of an open stream is authenticated again.
const CHECK: Duration = Duration::from_secs(15);
/// How long a stream may take to end after the shutdown has begun.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Answers with a long body of another media type. If the caller's right ends before the body does, the connection breaks off,
/// so that the client does not take a part for the whole.
pub(crate) fn body(
    cx: &RequestContext,
    chunks: impl Stream<Item = Result<Bytes, StoreError>> + Send + 'static,
) -> Result<Body, Problem> {
    let state = (Box::pin(over(cx)?), Box::pin(chunks), cx.reporter.clone(), false);
    Ok(Body::from_stream(unfold(state, |(mut over, mut chunks, reporter, has_failed)| async move {
        if has_failed {
            return None;
        }
        let next = tokio::select! {
            () = &mut over => Some(Err("the right to read has ended")),
            next = chunks.next() => next.map(|chunk| chunk.map_err(|error| {
                reporter.document(&error.into());
                "the store has failed"
            })),
        };
        let next = next?.map_err(std::io::Error::other);
        let has_failed = next.is_err();
        Some((next, (over, chunks, reporter, has_failed)))
    })))
}

/// Counts a long answer, and waits until it must end.
pub(crate) fn over(cx: &RequestContext) -> Result<impl Future<Output = ()> + Send + 'static + use<>, Problem> {
    let caller = cx.caller()?;
    let permit = cx.app.limits.stream(caller)?;
    let valid = caller.expiry().map(|expiry| expiry.since(cx.app.now()));
    let shutdown = cx.app.settings.shutdown.clone();
    let revoked = revoked(Arc::clone(&cx.app), cx.parts.clone(), caller.clone());
    Ok(async move {
        let expired = async {
            match valid {
                Some(valid) => tokio::time::sleep(valid).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = expired => {}
            () = revoked => {}
            () = shutdown.begun() => {}
        }
        drop(permit);
    })
}

/// Counts a long answer as [`over`] does, and waits until it must break off. On shutdown that is a moment later, in which the answer can end
/// in the words of its protocol.
pub(crate) fn cut(cx: &RequestContext) -> Result<impl Future<Output = ()> + Send + 'static + use<>, Problem> {
    let (over, shutdown) = (over(cx)?, cx.app.settings.shutdown.clone());
    Ok(async move {
        over.await;
        if shutdown.has_begun() {
            tokio::time::sleep(LAST_WORDS).await;
        }
    })
}

/// Breaks a stream off, so that the client does not take a part for the whole.
pub(crate) fn until_cut<T: Send + 'static>(
    cut: impl Future<Output = ()> + Send + 'static,
    stream: impl Stream<Item = io::Result<T>> + Send + 'static,
) -> impl Stream<Item = io::Result<T>> + Send + 'static {
    unfold(Some((Box::pin(cut), Box::pin(stream))), |state| async move {
        let (mut cut, mut stream) = state?;
        tokio::select! {
            next = stream.next() => next.map(|next| (next, Some((cut, stream)))),
            () = &mut cut => Some((Err(io::Error::other("the answer must end")), None)),
        }
    })
}

/// Waits until the request would no longer have the same caller with the same rights: its token was revoked, or its session
/// ended.
async fn revoked(app: Arc<App>, parts: Parts, caller: Caller) {
    loop {
        tokio::time::sleep(CHECK).await;
        // A store that fails now revokes nothing.
        if let Ok(found) = app.authenticate.authenticate(&parts).await
            && found.as_ref() != Some(&caller)
        {
            return;
        }
    }
}
