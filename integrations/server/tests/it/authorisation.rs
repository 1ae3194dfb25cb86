//! Who may call which route, for every route of the document.

use axum::http::StatusCode;
use positronic_server::{Caller, Options, Scope, openapi};
use serde_json::{Value, json};

use crate::support::Shop;

/// A route of the document.
struct Listed {
    method: String,
    path: String,
    is_public: bool,
    scopes: Option<Vec<Scope>>,
    is_of_run: bool,
}

fn listed() -> Vec<Listed> {
    let document = openapi();
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let scopes = &operation["x-scopes"];
            all.push(Listed {
                method: method.to_uppercase(),
                path: path.clone(),
                is_public: operation["security"].as_array().unwrap().is_empty(),
                scopes: (!scopes.is_null()).then(|| serde_json::from_value(scopes.clone()).unwrap()),
                is_of_run: operation["x-ownership"] == "run",
            });
        }
    }
    all
}

fn filled(path: &str, run: &str) -> String {
    let parts = path.split('/').map(|part| match part {
        "{run}" => run,
        "{title}" => "Refund",
        "{seq}" => "0",
        part if part.starts_with('{') => "x",
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_route_needs_a_caller_with_one_of_its_scopes() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let powerless = shop.token(None, &[]).await;
    let (run, _) = shop.waiting_run(&ann, 7).await;
    let routes = listed();
    assert!(routes.len() > 30, "{}", routes.len());

    for Listed { method, path, is_public, scopes, .. } in routes.iter().filter(|route| !route.is_public) {
        let at = filled(path, run.as_str());
        let body = (method != "GET").then(|| json!({}));

        let stranger = shop.call("", method, &at, body.clone()).await;
        let wrong = shop.call("pos_000000000000_wrong", method, &at, body.clone()).await;
        assert_eq!(stranger.problem(), "unauthenticated", "{method} {path} {is_public}");
        assert_eq!(wrong.problem(), "unauthenticated", "{method} {path}");

        let Some(scopes) = scopes else { continue };
        let refused = shop.call(&powerless, method, &at, body.clone()).await;
        assert_eq!(refused.problem(), "scope-missing", "{method} {path}");
        assert_eq!(refused.json()["required"], json!(scopes), "{method} {path}");
        let others: Vec<_> =
            Scope::ALL.into_iter().filter(|scope| !scopes.contains(scope) && *scope != Scope::Admin).collect();
        let too_small = shop.token(None, &others).await;
        assert_eq!(shop.call(&too_small, method, &at, body).await.problem(), "scope-missing", "{method} {path}");
    }
}

#[tokio::test]
async fn run_of_another_user_does_not_exist_in_every_route() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let ben = shop.token(Some("ben"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let (run, _) = shop.waiting_run(&ann, 7).await;
    let mut checked = 0;

    for Listed { method, path, scopes, .. } in listed().iter().filter(|route| route.is_of_run) {
        // A caller with `operate` sees all runs.
        if !scopes.iter().flatten().any(|scope| matches!(scope, Scope::Read | Scope::Run | Scope::Decide)) {
            continue;
        }
        checked += 1;
        let body = (method != "GET").then(|| json!({}));

        let foreign = shop.call(&ben, method, &filled(path, run.as_str()), body.clone()).await;
        let none = shop.call(&ben, method, &filled(path, "none"), body).await;

        assert_eq!(foreign.problem(), "unknown-run", "{method} {path}");
        let without_id = |answer: &crate::support::Answer| {
            let mut document = answer.json();
            document["instance"].take();
            document.to_string().replace(run.as_str(), "none")
        };
        assert_eq!(without_id(&foreign), without_id(&none), "{method} {path}");
    }
    assert!(checked >= 10, "{checked}");
}

#[tokio::test]
async fn lists_show_a_user_only_its_own() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let ben = shop.token(Some("ben"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let (run, id) = shop.waiting_run(&ann, 7).await;
    let said = json!({ "brain": "Refund", "options": { "number": 1 }, "text": "Hello." });
    let chat = shop.post(&ann, "/api/v1/conversations/chat-1/messages", said.clone()).await;
    assert_eq!(chat.status, StatusCode::CREATED, "{chat:?}");

    for list in ["runs", "pending", "conversations", "runs?needs=decision", "runs?q=Refund"] {
        let own = shop.get(&ann, &format!("/api/v1/{list}")).await.json();
        let foreign = shop.get(&ben, &format!("/api/v1/{list}")).await.json();
        assert_ne!(own["items"], json!([]), "{list}");
        assert_eq!(foreign["items"], json!([]), "{list}");
    }
    let counts = shop.get(&ben, "/api/v1/runs/counts").await.json();
    assert_eq!(counts["waiting"], 0, "{counts}");
    let sums = shop.get(&ben, "/api/v1/runs/sums").await.json();
    assert_eq!(sums["runs"], 0, "{sums}");
    assert_eq!(shop.get(&ben, "/api/v1/runs?user=ann").await.problem(), "not-allowed");
    assert_eq!(shop.get(&ben, &format!("/api/v1/diff?a={run}&b={run}")).await.problem(), "unknown-run");
    assert_eq!(shop.get(&ben, "/api/v1/conversations/chat-1").await.problem(), "not-found");
    assert_eq!(shop.post(&ben, "/api/v1/conversations/chat-1/messages", said).await.problem(), "not-found");
    let decided = shop.post(&ben, "/api/v1/decisions", json!([{ "run": run, "id": id, "approve": true }])).await.json();
    assert_eq!(decided["items"][0]["status"], 404, "{decided}");
    let started = json!({ "brain": "Refund", "options": { "number": 1 }, "user": "ann" });
    assert_eq!(shop.post(&ben, "/api/v1/runs", started).await.problem(), "not-allowed");
}

#[tokio::test]
async fn operator_sees_the_runs_of_all_users() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let (run, _) = shop.waiting_run(&ann, 7).await;
    let boss = shop.token(Some("boss"), &[Scope::Read, Scope::Operate]).await;

    assert_eq!(shop.get(&boss, &format!("/api/v1/runs/{run}")).await.json()["user"], "ann");
    let service = shop.token(None, &[Scope::Read]).await;
    assert_eq!(shop.get(&service, &format!("/api/v1/runs/{run}")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn expired_and_revoked_tokens_are_refused() {
    use positronic_core::record::Timestamp;
    use positronic_server::Token;

    let shop = Shop::new();
    let expired = Token::builder().subject("old").scopes([Scope::Read]).created(Timestamp(0));
    let (_, expired) = Token::create(&shop.client, expired.expires(Some(Timestamp(1))).build()).await.unwrap();
    let valid = Token::builder().subject("new").scopes([Scope::Read]).created(Timestamp(0)).build();
    let (token, valid) = Token::create(&shop.client, valid).await.unwrap();

    assert_eq!(shop.get(&expired, "/api/v1/runs").await.problem(), "unauthenticated");
    assert_eq!(shop.get(&valid, "/api/v1/runs").await.status, StatusCode::OK);
    let other = format!("{}x", valid.strip_suffix(valid.chars().last().unwrap()).unwrap());
    assert_eq!(shop.get(&other, "/api/v1/runs").await.problem(), "unauthenticated");

    assert!(Token::revoke(&shop.client, &token.id).await.unwrap());
    assert!(!Token::revoke(&shop.client, &token.id).await.unwrap());

    assert_eq!(shop.get(&valid, "/api/v1/runs").await.problem(), "unauthenticated");
}

#[tokio::test]
async fn store_has_no_secret_of_a_token() {
    use positronic_core::store::EntryFilter;

    let shop = Shop::new();
    let token = shop.token(Some("ann"), &[Scope::Read]).await;
    let secret = token.splitn(3, '_').nth(2).unwrap();

    let stored = shop.client.store().entries(&EntryFilter::builder().kind("token").build()).await.unwrap();

    assert_eq!(stored.len(), 1);
    assert!(!stored[0].value.to_string().contains(secret));
    assert!(token.starts_with(&format!("pos_{}_", stored[0].key)));
}

#[tokio::test]
async fn service_uses_its_own_authentication() {
    struct Header;

    impl positronic_server::Authenticate for Header {
        fn authenticate<'a>(
            &'a self,
            request: &'a axum::http::request::Parts,
        ) -> futures::future::BoxFuture<'a, Result<Option<Caller>, positronic_server::Problem>> {
            let user = request.headers.get("x-user").map(|user| user.to_str().unwrap().to_owned());
            Box::pin(async { Ok(user.map(|user| Caller::user(user, [Scope::Read, Scope::Run]))) })
        }
    }

    let shop = Shop::open(|runner| Options::builder().brains(runner).authenticate(Header).build());
    let as_user = |user: &str, method: &str, path: &str, body: Option<Value>| {
        let mut request = crate::support::request("", method, path, body);
        request.headers_mut().insert("x-user", user.parse().unwrap());
        request
    };
    let body = json!({ "brain": "Refund", "options": { "number": 3 } });

    let started = shop.send(as_user("ann", "POST", "/api/v1/runs", Some(body))).await;

    assert_eq!(started.json()["user"], "ann", "{started:?}");
    let path = format!("/api/v1/runs/{}", started.json()["id"].as_str().unwrap());
    assert_eq!(shop.send(as_user("ann", "GET", &path, None)).await.status, StatusCode::OK);
    assert_eq!(shop.send(as_user("ben", "GET", &path, None)).await.problem(), "unknown-run");
    let token = shop.token(None, &Scope::ALL).await;
    assert_eq!(shop.get(&token, &path).await.problem(), "unauthenticated", "tokens of the store do not count");
    let code = shop.post("", "/api/v1/session", json!({ "code": "x" })).await;
    assert_eq!(code.problem(), "not-found");
}
