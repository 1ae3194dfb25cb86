//! A stack of tower as the sender of requests.

use std::fmt;

use async_openai::error::{OpenAIError, WrappedError};
use async_openai::middleware::HttpRequestFactory;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::record::{ModelError, ModelErrorKind};
use positronic_model_http::{HttpSender, SendError, http_error, reqwest};
use tower::{Service, ServiceExt as _};

/// Sends requests through a service of tower.
pub(crate) struct Stack<S>(pub(crate) S);

impl<S> HttpSender for Stack<S>
where
    S: Service<HttpRequestFactory, Response = reqwest::Response> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<OpenAIError> + Send + Sync + 'static,
{
    fn send(&self, request: reqwest::Request) -> BoxFuture<'_, Result<reqwest::Response, SendError>> {
        let service = self.0.clone();
        // The bodies of models are text, so each copy has the whole body.
        let factory = HttpRequestFactory::new(move || {
            let copy = request.try_clone();
            async move { copy.ok_or_else(|| OpenAIError::InvalidArgument("the body is a stream".to_owned())) }
        });
        async move { service.oneshot(factory).await.map_err(|error| failure(error.into())) }.boxed()
    }
}

impl<S> fmt::Debug for Stack<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stack")
    }
}

/// Reads the failure of a stack.
fn failure(error: OpenAIError) -> SendError {
    let model_error = |kind, sentence: String| SendError::Model(ModelError::new(kind, sentence));
    match error {
        OpenAIError::Reqwest(error) => SendError::Http(error),
        // A retry layer has read the answer. It is classified as if it had come through.
        OpenAIError::ApiError(answer) => {
            let status = answer.status_code.as_u16();
            let body = serde_json::to_string(&WrappedError { error: answer.api_error }).unwrap_or_default();
            SendError::Model(http_error(status, &body, None, None))
        }
        // The retry layer parses only the bodies of 429, and reports those that are not JSON without the status.
        OpenAIError::JSONDeserialize(_, body) => SendError::Model(http_error(429, &body, None, None)),
        OpenAIError::Boxed(error) => boxed_failure(error),
        OpenAIError::InvalidArgument(sentence) => model_error(ModelErrorKind::BadRequest, sentence),
        other => model_error(ModelErrorKind::Connection, format!("the HTTP stack failed: {other}")),
    }
}

/// Reads the failure of a layer whose type is erased.
fn boxed_failure(error: tower::BoxError) -> SendError {
    let error = match error.downcast::<ModelError>() {
        Ok(error) => return SendError::Model(*error),
        Err(other) => other,
    };
    let error = match error.downcast::<OpenAIError>() {
        Ok(error) => return failure(*error),
        Err(other) => other,
    };
    let error = match error.downcast::<reqwest::Error>() {
        Ok(error) => return SendError::Http(*error),
        Err(other) => other,
    };
    let timed_out = error.is::<tower::timeout::error::Elapsed>();
    let kind = if timed_out { ModelErrorKind::Timeout } else { ModelErrorKind::Connection };
    SendError::Model(ModelError::new(kind, format!("the HTTP stack failed: {error}")))
}
