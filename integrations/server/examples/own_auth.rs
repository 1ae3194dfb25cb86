//! An axum service with its own authentication, which nests the API of its runs under `/agents`.
//!
//! ```sh
//! cargo run -p positronic-server --example own_auth
//! curl -H 'X-User: ann' http://127.0.0.1:4750/agents/api/v1/session
//! ```

use std::io;

use axum::Router;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use futures::future::BoxFuture;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_server::{Authenticate, Caller, Options, Problem, Scope, router};

/// The user that the service's own middleware has found.
#[derive(Clone)]
struct User(String);

/// The service's middleware. A real one checks a session or a signed token: any client can send this header.
async fn find_user(mut request: Request, next: Next) -> Response {
    let user = request.headers().get("x-user").and_then(|user| user.to_str().ok()).map(|user| User(user.to_owned()));
    if let Some(user) = user {
        request.extensions_mut().insert(user);
    }
    next.run(request).await
}

/// Tells the API who calls, and what that user may do.
struct Users;

impl Authenticate for Users {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Option<Caller>, Problem>> {
        let user = request.extensions.get::<User>().cloned();
        Box::pin(async move {
            Ok(user.map(|User(name)| match name.as_str() {
                "boss" => Caller::user(name, [Scope::Read, Scope::Run, Scope::Decide, Scope::Operate]),
                _ => Caller::user(name, [Scope::Read, Scope::Run]),
            }))
        })
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet the user in one line.").input("Hello!"));
    let model = ScriptedModel::from_fn(|_| Reply::text("Good morning."));
    let runner = Runner::new(model).brain(greeter);
    let _service = runner.serve();

    let agents = router(runner.client(), Options::builder().brains(runner.clone()).authenticate(Users).build());
    let app = Router::new()
        .route("/", get(async || "The shop's own page.\n"))
        .nest("/agents", agents)
        .layer(from_fn(find_user));

    let served = axum::serve(tokio::net::TcpListener::bind("127.0.0.1:4750").await?, app).await;
    runner.release().await;
    served
}
