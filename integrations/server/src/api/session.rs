//! `/session`: who the caller is, and the login of a browser.

use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::auth::{Caller, ListedSession, LoggedIn, Scope, Sessions};
use crate::cursor::List;
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, RouteAccess, json};
use crate::time::Time;

/// The maximum bytes of the body, which strangers may send.
const MAX_BODY: usize = 4 << 10;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/session", "Read who the caller is", read)
            .access(RouteAccess::Authenticated)
            .returns::<SessionItem>(200),
        Route::post("/api/v1/session", "Exchange a one-use code for a session cookie", begin)
            .access(RouteAccess::Public)
            .takes::<NewSession>()
            .max_body(MAX_BODY)
            .returns::<SessionItem>(200)
            .problems(&[ProblemType::Unauthenticated, ProblemType::NotFound]),
        Route::get(
            "/api/v1/sessions",
            "List the sessions of browsers: those of all for `admin`, else the caller's own",
            list,
        )
        .access(RouteAccess::Authenticated)
        .returns::<List<ListedItem>>(200)
        .problems(&[ProblemType::NotFound]),
        Route::new(Method::DELETE, "/api/v1/sessions/{session}", "End a session of a browser", revoke)
            .access(RouteAccess::Authenticated)
            .returns_nothing(204)
            .problems(&[ProblemType::NotFound]),
        Route::new(Method::DELETE, "/api/v1/session", "End the session of the browser", end)
            .access(RouteAccess::Public)
            .returns_nothing(204)
            .problems(&[ProblemType::NotFound]),
    ]
}

/// The caller of a request.
#[derive(Serialize, JsonSchema)]
struct SessionItem {
    /// The name in the log.
    subject: String,
    scopes: Vec<Scope>,
    /// The user for whom the caller acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// Whether the server refuses every change.
    read_only: bool,
    /// What commands for a terminal begin with, if the server is a program that has some, and the caller may do all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
}

/// A session of a browser.
#[derive(Serialize, JsonSchema)]
struct ListedItem {
    id: String,
    /// The name in the log.
    subject: String,
    /// The user for whom it acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    created: Time,
    expires: Time,
    /// The token with which it was begun; absent for a one-use code.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// Whether it is the session of this request.
    current: bool,
}

/// Either a code that the server has issued, or a token.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct NewSession {
    /// A one-use code, which the command `serve` prints.
    code: Option<String>,
    /// A token, whose rights the session gets.
    token: Option<String>,
}

async fn read(cx: RequestContext) -> Result<Response, Problem> {
    json(&item(cx.caller()?, &cx))
}

async fn begin(cx: RequestContext) -> Result<Response, Problem> {
    let callers = cx.app.callers.as_ref().ok_or_else(no_sessions)?;
    let (now, login) = (cx.app.now(), &cx.app.settings.login);
    let (caller, cookie) = match cx.json()? {
        NewSession { code: Some(code), token: None } if login.redeem(&code, now) => {
            callers.begin(&cx.parts, login.person(), now).await?
        }
        NewSession { code: Some(_), token: None } => {
            return Err(Problem::new(ProblemType::Unauthenticated)
                .detail("the link is unknown, has expired or was used; restart the server for another one, or sign in with a token"));
        }
        NewSession { code: None, token: Some(token) } => callers.begin_with_token(&cx.parts, &token, now).await?,
        NewSession { .. } => {
            return Err(Problem::new(ProblemType::InvalidBody).detail("expected either `code` or `token`"));
        }
    };
    let mut response = json(&item(&caller, &cx))?;
    set_cookie(&mut response, &cookie);
    Ok(response)
}

async fn end(cx: RequestContext) -> Result<Response, Problem> {
    let callers = cx.app.callers.as_ref().ok_or_else(no_sessions)?;
    let cookie = callers.end(&cx.parts).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&mut response, &cookie);
    Ok(response)
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let callers = cx.app.callers.as_ref().ok_or_else(no_sessions)?;
    let current = callers.session(&cx.parts).await?;
    let item = |(known, caller): (ListedSession, Caller)| ListedItem {
        subject: caller.subject().to_owned(),
        user: caller.user_id().map(str::to_owned),
        created: known.session.created.into(),
        expires: known.session.expires.into(),
        current: current.as_ref().is_some_and(|current| current.id == known.id),
        token: match known.session.login {
            LoggedIn::Token { id } => Some(id),
            LoggedIn::Code { .. } => None,
        },
        id: known.id,
    };
    json(&List::whole(seen(&cx).await?.into_iter().map(item).collect()))
}

async fn revoke(cx: RequestContext) -> Result<Response, Problem> {
    let id = cx.param("session")?;
    let found = seen(&cx).await?.into_iter().find(|(known, _)| known.id == id).ok_or(ProblemType::NotFound)?;
    Sessions::new(&cx.app.client).end(&found.0).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Lists the sessions that a caller sees, with their own callers.
async fn seen(cx: &RequestContext) -> Result<Vec<(ListedSession, Caller)>, Problem> {
    let callers = cx.app.callers.as_ref().ok_or_else(no_sessions)?;
    let own = cx.caller()?;
    let mut seen = Vec::new();
    for known in Sessions::new(&cx.app.client).list(cx.app.now()).await? {
        let Some(caller) = callers.caller(&known.session).await? else { continue };
        let is_own = (caller.subject(), caller.user_id()) == (own.subject(), own.user_id());
        if is_own || own.may(Scope::Admin) {
            seen.push((known, caller));
        }
    }
    Ok(seen)
}

fn item(caller: &Caller, cx: &RequestContext) -> SessionItem {
    SessionItem {
        subject: caller.subject().to_owned(),
        scopes: caller.scopes().to_vec(),
        user: caller.user_id().map(str::to_owned),
        read_only: cx.app.settings.read_only,
        program: cx.app.settings.program.clone().filter(|_| caller.may(Scope::Admin)),
    }
}

fn no_sessions() -> Problem {
    Problem::new(ProblemType::NotFound).detail("this server has its own authentication, without sessions")
}

fn set_cookie(response: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
}
