//! One route: what it needs, what it answers and which function handles it.

use std::fmt;
use std::sync::Arc;

use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use futures::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::request_context::RequestContext;
use crate::app::App;
use crate::auth::Scope;
use crate::problem::{Problem, ProblemType};

/// Creates a JSON schema.
pub(crate) type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// Handles a request that has passed all checks of its route.
pub(crate) type Handler = Arc<dyn Fn(RequestContext) -> BoxFuture<'static, Result<Response, Problem>> + Send + Sync>;

/// The parts of a path with their names.
pub(crate) type Params = [(String, String)];

/// Refuses a request before its body is read.
pub(crate) type BeforeBody = fn(&App, &Params, &Parts) -> Result<(), Problem>;

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteAccess {
    /// Any client, without authentication.
    Public,
    /// Any authenticated caller.
    Authenticated,
    /// A caller with one of these scopes.
    Scopes(&'static [Scope]),
}

/// Whose object the path of a route names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// None, or the handler shows a caller only its own objects.
    None,
    /// The run `{run}`: that of another user does not exist for the caller.
    Run,
}

/// The body of a request.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    None,
    /// JSON that matches a schema.
    Json(SchemaFn),
    /// Bytes of any media type.
    Raw,
}

/// A possible answer.
#[derive(Clone, Copy)]
pub(crate) struct RouteAnswer {
    pub(crate) status: u16,
    pub(crate) media_type: Option<&'static str>,
    pub(crate) schema: Option<SchemaFn>,
}

/// The form of a protocol for problems.
#[derive(Clone, Copy)]
pub(crate) struct ProblemForm {
    pub(crate) media_type: &'static str,
    pub(crate) body: fn(&Problem) -> String,
}

/// A route of the table.
#[derive(Clone)]
pub struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: RouteAccess,
    pub(crate) ownership: Ownership,
    pub(crate) query: Option<SchemaFn>,
    pub(crate) body: Body,
    /// The maximum bytes of the body, if it is not that of the options.
    pub(crate) max_body_bytes: Option<usize>,
    pub(crate) answers: Vec<RouteAnswer>,
    pub(crate) problems: Vec<ProblemType>,
    /// The form of its problems, if they are not problem documents.
    pub(crate) problem_form: Option<ProblemForm>,
    /// What is checked before the body is read, beside what the other fields say.
    pub(crate) before_body: BeforeBody,
    /// Whether the route takes an `Idempotency-Key`.
    pub(crate) idempotent: bool,
    /// Whether its answers may be large.
    pub(crate) large_answers: bool,
    /// Whether its requests are not counted.
    pub(crate) unlimited: bool,
    /// Whether its answers may begin at any time.
    pub(crate) waits: bool,
    pub(crate) handler: Handler,
}

impl Route {
    /// Creates a route. Without further calls, it needs the scope `read`.
    pub(crate) fn new<F>(
        method: Method,
        path: &'static str,
        summary: &'static str,
        handler: impl Fn(RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        Self {
            method,
            path,
            summary,
            access: RouteAccess::Scopes(&[Scope::Read]),
            ownership: if path.contains("/{run}") { Ownership::Run } else { Ownership::None },
            query: None,
            body: Body::None,
            max_body_bytes: None,
            answers: Vec::new(),
            problems: Vec::new(),
            problem_form: None,
            before_body: |_, _, _| Ok(()),
            idempotent: false,
            large_answers: false,
            unlimited: false,
            waits: false,
            handler: Arc::new(move |call| Box::pin(handler(call))),
        }
    }

    /// Creates a route with the method GET. Without further calls, it needs the scope `read`. A path with `{run}` exists only for the
    /// callers that see that run.
    pub fn get<F>(
        path: &'static str,
        summary: &'static str,
        handler: impl Fn(RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        Self::new(Method::GET, path, summary, handler)
    }

    /// Creates a route with the method POST, as [`Route::get`] does.
    pub fn post<F>(
        path: &'static str,
        summary: &'static str,
        handler: impl Fn(RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        Self::new(Method::POST, path, summary, handler)
    }

    /// Creates a route with the method DELETE, as [`Route::get`] does.
    pub fn delete<F>(
        path: &'static str,
        summary: &'static str,
        handler: impl Fn(RequestContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        Self::new(Method::DELETE, path, summary, handler)
    }

    /// Sets who may call it.
    pub(crate) fn access(self, access: RouteAccess) -> Self {
        Self { access, ..self }
    }

    /// Sets the scopes of which a caller needs one.
    #[must_use]
    pub fn scopes(self, scopes: &'static [Scope]) -> Self {
        self.access(RouteAccess::Scopes(scopes))
    }

    /// Sets the parameters of its query.
    #[must_use]
    pub fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(|generator| T::json_schema(generator)), ..self }
    }

    /// Sets the JSON that it takes.
    #[must_use]
    pub fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Body::Json(|generator| generator.subschema_for::<T>()), ..self }
    }

    /// Lets it take bytes.
    pub(crate) fn takes_bytes(self) -> Self {
        Self { body: Body::Raw, ..self }
    }

    /// Sets the maximum bytes of the body.
    #[must_use]
    pub fn max_body(self, bytes: usize) -> Self {
        Self { max_body_bytes: Some(bytes), ..self }
    }

    /// Sets what is checked before the body is read.
    pub(crate) fn before_body(self, before_body: BeforeBody) -> Self {
        Self { before_body, ..self }
    }

    /// Lets it take an `Idempotency-Key`.
    pub(crate) fn idempotent(self) -> Self {
        Self { idempotent: true, ..self }
    }

    /// Limits how many of its answers one caller gets at once: each may need much memory.
    pub(crate) fn large_answers(self) -> Self {
        Self { large_answers: true, ..self }
    }

    /// Lets its answers begin at any time, for a protocol whose clients wait for a whole answer. The handler waits with
    /// [`RequestContext::wait`].
    #[must_use]
    pub fn waits(self) -> Self {
        Self { waits: true, ..self }
    }

    /// Does not count its requests: strangers that use up the limit of an address must not make the server look dead.
    pub(crate) fn unlimited(self) -> Self {
        Self { unlimited: true, ..self }
    }

    /// Adds an answer with JSON.
    #[must_use]
    pub fn returns<T: JsonSchema>(self, status: u16) -> Self {
        self.returns_as::<T>(status, "application/json")
    }

    /// Adds an answer with JSON of a media type of its own, such as `application/a2a+json`. A client that accepts several media types
    /// of the route equally gets the first one.
    #[must_use]
    pub fn returns_as<T: JsonSchema>(mut self, status: u16, media_type: &'static str) -> Self {
        let schema: SchemaFn = |generator| generator.subschema_for::<T>();
        self.answers.push(RouteAnswer { status, media_type: Some(media_type), schema: Some(schema) });
        self
    }

    /// Adds an answer of another media type.
    pub(crate) fn returns_text(mut self, status: u16, media_type: &'static str) -> Self {
        self.answers.push(RouteAnswer { status, media_type: Some(media_type), schema: None });
        self
    }

    /// Adds an answer without a body.
    #[must_use]
    pub fn returns_nothing(mut self, status: u16) -> Self {
        self.answers.push(RouteAnswer { status, media_type: None, schema: None });
        self
    }

    /// Adds a stream of server-sent events.
    #[must_use]
    pub fn streams(self) -> Self {
        self.returns_text(200, "text/event-stream")
    }

    /// Sets the problems of its handler. Those of the checks before it follow from the route.
    #[must_use]
    pub fn problems(self, problems: &[ProblemType]) -> Self {
        Self { problems: problems.to_vec(), ..self }
    }

    /// Writes its problems in the form of another protocol, also those of the checks before its handler. The status and the headers, such
    /// as `Retry-After`, stay.
    ///
    /// ```
    /// use positronic_server::extension::Route;
    ///
    /// let route = Route::get("/api/v1/hello", "Greet the caller", async |cx| cx.answer(200, &"hello"));
    /// let route = route.problems_as("text/plain; charset=utf-8", |problem| problem.message());
    /// # let _ = route;
    /// ```
    #[must_use]
    pub fn problems_as(self, media_type: &'static str, body: fn(&Problem) -> String) -> Self {
        Self { problem_form: Some(ProblemForm { media_type, body }), ..self }
    }

    /// Returns whether a request changes something.
    pub(crate) fn is_unsafe(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Returns the media types between which a client chooses. A webhook's sender does not choose.
    pub(crate) fn media_types(&self) -> Vec<&'static str> {
        let answers = self.answers.iter().filter(|_| !matches!(self.body, Body::Raw));
        let mut media_types: Vec<_> = answers.filter_map(|answer| answer.media_type).collect();
        media_types.dedup();
        media_types
    }

    /// Returns all problems of the route: of the checks that it needs, and of its handler.
    pub(crate) fn all_problems(&self) -> Vec<ProblemType> {
        use ProblemType as P;
        let mut all = vec![P::WrongHost, P::RateLimited, P::Internal, P::StoreFailed, P::Stopping, P::TimedOut];
        if !self.media_types().is_empty() {
            all.push(P::NotAcceptable);
        }
        if self.access != RouteAccess::Public {
            all.push(P::Unauthenticated);
        }
        if matches!(self.access, RouteAccess::Scopes(_)) {
            all.push(P::ScopeMissing);
        }
        if self.is_unsafe() {
            all.extend([P::CrossSite, P::ReadOnly]);
        }
        if self.ownership == Ownership::Run {
            all.push(P::UnknownRun);
        }
        if self.query.is_some() {
            all.push(P::InvalidQuery);
        }
        match self.body {
            Body::None => {}
            Body::Raw => all.push(P::TooLarge),
            Body::Json(_) => all.extend([P::TooLarge, P::UnsupportedMediaType, P::InvalidJson, P::InvalidBody]),
        }
        if self.idempotent {
            all.push(P::KeyReused);
        }
        all.extend(&self.problems);
        all.sort_by_key(|kind| (kind.status(), kind.slug()));
        all.dedup();
        all
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}
