//! Problem documents (RFC 9457): the answer to every request that is refused or fails.

use std::sync::Arc;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use positronic_core::runner::{ForkError, SignalError};
use positronic_core::store::StoreError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::auth::Scope;

macro_rules! problem_types {
    ($($name:ident $slug:literal $status:literal $title:literal $text:literal;)*) => {
        /// The type of a problem. Its page is `/problems/{slug}`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ProblemType {
            $(#[doc = $title] $name,)*
        }

        impl ProblemType {
            /// All types, by status.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name in the URL of the type.
            #[must_use]
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$name => $slug,)* }
            }

            /// Returns the HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// Returns the title, the same for every problem of the type.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// Returns what the problem means and what a client can do.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

problem_types! {
    InvalidQuery "invalid-query" 400 "The query is invalid." "A parameter of the URL's query is unknown, appears twice or has an invalid value. The API does not ignore unknown parameters, because a misspelt filter would silently match more.";
    InvalidPath "invalid-path" 400 "A part of the path is invalid." "A part of the URL's path cannot be decoded, such as a number of an event with letters in it.";
    InvalidHeader "invalid-header" 400 "A header is invalid." "`detail` names the header and says which values it accepts.";
    BadCursor "bad-cursor" 400 "The cursor does not belong to this list." "A cursor continues the list that returned it, with the same filter. Begin again without a cursor.";
    InvalidJson "invalid-json" 400 "The body is not valid JSON." "The body cannot be parsed as JSON, or has a number that 64 bits would round; `errors` lists the number's place as a JSON pointer.";
    Unauthenticated "unauthenticated" 401 "Authentication is required." "Send a token in the header `Authorization: Bearer …`, or log the browser in with the URL that `serve` prints. `token create` creates a token.";
    BadSignature "bad-signature" 401 "The webhook is unknown or its signature is wrong." "A request to a webhook is authenticated by its sender's signature over the raw body. It is refused if there is no webhook of this name, if no signature matches under one of its keys, or if it was signed more than five minutes ago. The log of the server has the reason.";
    ScopeMissing "scope-missing" 403 "The caller lacks a scope." "The token or the session does not have the scope that this route needs. `required` lists the scopes of which one is enough.";
    ReadOnly "read-only" 403 "The server is read-only." "This server only shows runs.";
    NotAllowed "not-allowed" 403 "The caller may not do this." "The caller has the scope, but not the right for this object.";
    NotAnApprover "not-an-approver" 403 "The caller may not decide this item." "The caller has the scope, but a rule of this server excludes the caller; `detail` says which.";
    CrossSite "cross-site" 403 "The request comes from another site." "A browser may send requests that change something only from the page of this server itself.";
    NotFound "not-found" 404 "There is no such resource." "The URL has no resource, or the caller may not see it.";
    UnknownRun "unknown-run" 404 "There is no such run." "The store has no run with this id, or it belongs to another user.";
    UnknownBrain "unknown-brain" 404 "There is no such brain." "This server has no brain with this title. `GET /api/v1/brains` lists them.";
    UnknownCall "unknown-call" 404 "There is no such pending item." "The run never had a pending item with this id. `GET /api/v1/pending` lists the items.";
    UnknownSchedule "unknown-schedule" 404 "There is no such schedule." "The store has no schedule with this id, or it belongs to another user. `GET /api/v1/schedules` lists them.";
    BeyondHead "beyond-head" 404 "The log has no such event." "The number is larger than that of the log's last event, or the event is of another kind.";
    UnknownWebhook "unknown-webhook" 404 "There is no such webhook or delivery." "The store has no outgoing webhook with this id, or no such delivery of it. `GET /api/v1/webhooks` lists them.";
    MethodNotAllowed "method-not-allowed" 405 "The method is not allowed here." "The resource exists, but not with this method; the header `Allow` lists its methods.";
    NotAcceptable "not-acceptable" 406 "The resource has no form that the client accepts." "The header `Accept` excludes all media types of the resource, which `available` lists.";
    AlreadyDecided "already-decided" 409 "The call is already decided." "Another decision was recorded first. `decision` tells what was decided, by whom and when.";
    RunClosed "run-closed" 409 "The run has ended." "A run that has ended accepts no signals. Fork it to continue from an earlier event.";
    NotFailed "not-failed" 409 "The run cannot be retried." "Only a run that has failed or was parked can be retried, and not one that failed at a limit, which a retry would reach again.";
    NotWaiting "not-waiting" 409 "The run does not wait for this." "The signal does not fit the current state of the run.";
    CodeDiffers "code-differs" 409 "The code differs from that of the run." "The brain's code has changed since the run began, so that the run or its fork could not continue, or this server does not have it. `differences` lists what is different.";
    Conflict "conflict" 409 "The resource has changed." "Another request changed the resource at the same time. Read it again and retry.";
    Expired "expired" 410 "The request has expired." "The time for a decision is over, and the call has its result.";
    PreconditionFailed "precondition-failed" 412 "The resource has changed." "The header `If-Match` names another version than the current one. Read the resource again.";
    TooLarge "too-large" 413 "The body is too large." "The body exceeds a maximum: `max_bytes` gives that of the route, `max_values` that of the values in its JSON.";
    UnsupportedMediaType "unsupported-media-type" 415 "The body has an unsupported media type." "Send JSON with `Content-Type: application/json`.";
    WrongHost "wrong-host" 421 "The host name is not one of this server." "The header `Host` names a host under which this server is not known. `serve --public-url` adds one. The check keeps other sites from reaching a local server by DNS rebinding.";
    InvalidBody "invalid-body" 422 "The body does not match its schema." "`errors` lists each invalid place as a JSON pointer.";
    OptionsInvalid "options-invalid" 422 "The options do not fit the brain." "`errors` lists each invalid place as a JSON pointer.";
    ScheduleInvalid "schedule-invalid" 422 "The times of the schedule are invalid." "`errors` lists the invalid place as a JSON pointer; for a cron expression, `position` is the byte at which its invalid field begins.";
    ArgumentsInvalid "arguments-invalid" 422 "The arguments or the payload are invalid." "The edited arguments, or the reply, do not match their schema; `errors` lists each invalid place as a JSON pointer.";
    Unprocessable "unprocessable" 422 "The request cannot be processed." "The request is well-formed and contradicts the object; `detail` tells why.";
    PayloadInvalid "payload-invalid" 422 "The payload of the webhook is invalid." "The request is genuine, but its payload cannot be decoded, lacks the identifier or the id of the delivery, or does not fit what the run waits for or what it would start.";
    KeyReused "key-reused" 422 "The idempotency key was used for another request." "A key identifies one request. Retry with the same body, or use another key.";
    RateLimited "rate-limited" 429 "The caller sends too many requests." "Wait for as long as the header `Retry-After` says.";
    TooManyStreams "too-many-streams" 429 "The caller has too many open streams." "Close a stream before you open another one.";
    Internal "internal" 500 "The server failed." "This is a bug in the server or in the code of a brain. The log of the server has the cause, with the id of the request that the header `X-Request-Id` gives.";
    StoreFailed "store-failed" 503 "The store is not available." "The store of the runs failed. The request may be retried. The log of the server has the cause, with the id of the request that the header `X-Request-Id` gives.";
    Stopping "stopping" 503 "The server is stopping." "The run continues on another server, or when this one is started again. Attach to it again, or repeat the request with the same idempotency key.";
    TimedOut "timed-out" 504 "The request took too long." "The request was abandoned. With an idempotency key it may be retried.";
}

/// A place in a body that is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct FieldError {
    /// The place, as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
}

impl FieldError {
    /// Creates an error of a place.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }

    fn text(&self) -> String {
        let Self { pointer, detail } = self;
        if pointer.is_empty() { detail.clone() } else { format!("{pointer}: {detail}") }
    }
}

/// A problem document.
#[derive(Debug, Clone)]
pub struct Problem {
    kind: ProblemType,
    detail: Option<String>,
    errors: Vec<FieldError>,
    fields: Map<String, Value>,
    retry_after: Option<u64>,
}

impl Problem {
    /// Creates a problem of a type.
    #[must_use]
    pub fn new(kind: ProblemType) -> Self {
        Self { kind, detail: None, errors: Vec::new(), fields: Map::new(), retry_after: None }
    }

    /// Sets `detail`: what is wrong with this request.
    #[must_use]
    pub fn detail(mut self, detail: impl std::fmt::Display) -> Self {
        self.detail = Some(detail.to_string());
        self
    }

    /// Lists the invalid places of the body.
    #[must_use]
    pub fn errors(mut self, errors: Vec<FieldError>) -> Self {
        self.errors = errors;
        self
    }

    /// Adds a field of this type of problem.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Serialize) -> Self {
        // Values of this crate can be encoded.
        self.fields.insert(name.to_owned(), serde_json::to_value(value).unwrap_or_default());
        self
    }

    /// Sets `Retry-After`, in seconds.
    #[must_use]
    pub const fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Returns the type.
    #[must_use]
    pub const fn kind(&self) -> ProblemType {
        self.kind
    }

    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> Value {
        self.document_at("", None)
    }

    /// Returns the problem in words, for a protocol whose errors are texts: what is wrong with this request, or what the type means, and
    /// a line for each invalid place.
    #[must_use]
    pub fn message(&self) -> String {
        let detail = self.detail.as_deref().filter(|_| !self.is_failure());
        let first = match detail {
            Some(detail) => detail.to_owned(),
            None if self.errors.is_empty() => format!("{} {}", self.kind.title(), self.kind.text()),
            None => self.kind.title().to_owned(),
        };
        let places: Vec<_> = self.errors.iter().map(FieldError::text).collect();
        // The detail may be that of a place.
        let is_place = places.contains(&first) || self.errors.iter().any(|error| error.detail == first);
        let first = Some(first).filter(|_| !is_place);
        first.into_iter().chain(places).collect::<Vec<_>>().join("\n")
    }

    /// Leaves out the beginning of the places, for a protocol whose requests have at their root what is there.
    #[must_use]
    pub fn places_within(mut self, place: &str) -> Self {
        for error in &mut self.errors {
            if let Some(rest) = error.pointer.strip_prefix(place) {
                error.pointer = rest.to_owned();
            }
        }
        self
    }

    /// Creates the problem of a caller that names the conversation of another user.
    pub(crate) fn no_conversation(id: &str) -> Self {
        let detail = format!("there is no conversation `{id}` that this caller may see; a new one needs another id");
        Self::new(ProblemType::NotFound).detail(detail)
    }

    /// Creates the problem of a caller that has none of the scopes of which it needs one.
    pub(crate) fn scope_missing(needed: &[Scope]) -> Self {
        let names: Vec<_> = needed.iter().map(|scope| format!("`{scope}`")).collect();
        let detail = format!(
            "the token or the session lacks the scope {}; `token create --scope` sets those of a token",
            names.join(" or ")
        );
        Self::new(ProblemType::ScopeMissing).detail(detail).field("required", needed)
    }

    /// Returns whether the server is to blame: what happened is for its log and not for the client.
    pub(crate) const fn is_failure(&self) -> bool {
        self.kind.status() >= 500
    }

    /// Returns the document of a request with this id, to a router with this path in front of its own. It does not tell the
    /// details of a failure, which may name files, addresses or data of others.
    pub(crate) fn document_at(&self, prefix: &str, request: Option<&str>) -> Value {
        let kind = self.kind;
        let mut document = json!({
            "type": format!("{prefix}/problems/{}", kind.slug()),
            "title": kind.title(),
            "status": kind.status(),
        });
        if let Some(fields) = document.as_object_mut() {
            let detail = self.detail.iter().filter(|_| !self.is_failure());
            fields.extend(detail.map(|detail| ("detail".to_owned(), detail.as_str().into())));
            if !self.errors.is_empty() {
                fields.insert("errors".to_owned(), json!(self.errors));
            }
            fields.extend(self.retry_after.map(|seconds| ("retry_after".to_owned(), seconds.into())));
            fields.extend(request.map(|request| ("instance".to_owned(), format!("urn:request:{request}").into())));
            fields.extend(self.fields.clone());
        }
        document
    }
}

/// Writes the problem documents of a request: with its id, under which the log of the server has the details of a failure.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    /// The path in front of that of the router.
    pub(crate) prefix: Arc<str>,
    pub(crate) request: Arc<str>,
}

impl Reporter {
    /// Returns the document of a problem, and logs a failure.
    pub(crate) fn document(&self, problem: &Problem) -> Value {
        if problem.is_failure() {
            let (request, kind, cause) = (&*self.request, problem.kind.slug(), problem.detail.as_deref());
            tracing::error!(request, kind, cause, "a request failed");
        }
        problem.document_at(&self.prefix, Some(&self.request))
    }
}

impl From<ProblemType> for Problem {
    fn from(kind: ProblemType) -> Self {
        Self::new(kind)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, self.document().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.kind == ProblemType::Unauthenticated {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // The outermost layer knows the request.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::NoSuchRun { .. } => ProblemType::UnknownRun,
            StoreError::Failed { .. } | StoreError::Unknown { .. } | StoreError::Unusable { .. } => {
                ProblemType::StoreFailed
            }
            StoreError::TooLarge { .. } => ProblemType::TooLarge,
            StoreError::Conflict { .. } | StoreError::EntryChanged { .. } => ProblemType::Conflict,
            _ => ProblemType::Internal,
        };
        match error {
            // The keys of entries are not for clients.
            StoreError::Conflict { .. } | StoreError::EntryChanged { .. } => Self::new(kind),
            error => Self::new(kind).detail(error),
        }
    }
}

impl From<SignalError> for Problem {
    fn from(error: SignalError) -> Self {
        use positronic_core::machine::Refusal;
        let kind = match error {
            SignalError::Store(error) => return error.into(),
            SignalError::Refused(ref refusal) => match refusal {
                Refusal::Ended => ProblemType::RunClosed,
                Refusal::Decided { .. } => ProblemType::AlreadyDecided,
                Refusal::Expired { .. } => ProblemType::Expired,
                Refusal::Misfit { .. }
                | Refusal::EmptyMessage
                | Refusal::TooLittle { .. }
                | Refusal::ReservedId { .. } => ProblemType::ArgumentsInvalid,
                Refusal::NotEditable { .. } | Refusal::CallerTools(_) => ProblemType::Unprocessable,
                Refusal::Impossible(_) => ProblemType::Internal,
                _ => ProblemType::NotWaiting,
            },
            _ => ProblemType::Internal,
        };
        Self::new(kind).detail(error)
    }
}

impl From<ForkError> for Problem {
    fn from(error: ForkError) -> Self {
        let kind = match error {
            ForkError::Store(error) => return error.into(),
            ForkError::NoSuchEvent { .. } => ProblemType::BeyondHead,
            ForkError::Options(_) => ProblemType::OptionsInvalid,
            ForkError::NotOpen { .. } | ForkError::Model(_) => ProblemType::Unprocessable,
            _ => ProblemType::CodeDiffers,
        };
        Self::new(kind).detail(error)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn slugs_are_unique_and_types_are_ordered_by_status() {
        let slugs: HashSet<_> = ProblemType::ALL.iter().map(|kind| kind.slug()).collect();

        assert_eq!(slugs.len(), ProblemType::ALL.len());
        assert!(ProblemType::ALL.is_sorted_by_key(|kind| kind.status()));
    }

    #[test]
    fn message_says_what_is_wrong_or_what_the_type_means_and_hides_the_details_of_a_failure() {
        let message = |problem: Problem| problem.message();

        let place = vec![FieldError::new("/options/amount", "expected a number")];
        let invalid = Problem::new(ProblemType::InvalidBody).errors(place);
        assert_eq!(message(invalid), "The body does not match its schema.\n/options/amount: expected a number");
        let missing = Problem::scope_missing(&[Scope::Run, Scope::Operate]);
        assert_eq!(
            message(missing),
            "the token or the session lacks the scope `run` or `operate`; `token create --scope` sets those of a token"
        );
        assert!(message(ProblemType::Unauthenticated.into()).contains("`token create` creates a token"));
        let failure = Problem::new(ProblemType::StoreFailed).detail("/var/lib/runs.db is locked");
        assert!(!message(failure).contains("/var/lib"));
    }

    #[test]
    fn document_has_the_fields_of_the_rfc_and_of_its_type() {
        let problem = Problem::new(ProblemType::InvalidBody)
            .detail("one place is invalid")
            .errors(vec![FieldError::new("/options/amount", "expected a number")])
            .field("brain", "Support")
            .retry_after(3);

        insta::assert_json_snapshot!(problem.document());
    }
}
