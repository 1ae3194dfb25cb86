//! Browsers: logging in, other sites, other hosts.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use positronic_core::record::Timestamp;
use positronic_core::runner::{Clock as _, SystemClock};
use positronic_server::{Login, Options, Scope, router};
use serde_json::json;
use tower::ServiceExt as _;

use crate::support::{Shop, request};

fn with_cookie(cookie: &str, method: &str, path: &str) -> Request<Body> {
    let mut request = request("", method, path, None);
    request.headers_mut().insert("cookie", format!("theme=dark; {cookie}").parse().unwrap());
    request
}

/// Logs a browser in and returns the cookie.
async fn log_in(shop: &Shop, login: &Login) -> String {
    let code = login.code(SystemClock.now()).unwrap();
    let answer = shop.post("", "/api/v1/session", json!({ "code": code })).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let cookie = answer.header("set-cookie");
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn nested_router_links_below_its_path() {
    let shop = Shop::new();
    let service = axum::Router::new().nest("/agents", shop.router.clone());
    let send = async |path: &str| {
        let answer = service.clone().oneshot(request("", "GET", path, None)).await.unwrap();
        let location = answer.headers().get("location").cloned();
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (location, serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default())
    };

    assert_eq!(send("/agents").await.0.unwrap(), "/agents/ui");
    assert_eq!(send("/agents/api/v1/runs").await.1["type"], "/agents/problems/unauthenticated");
    assert_eq!(send("/agents/openapi.json").await.1["servers"], json!([{ "url": "/agents" }]));
    assert_eq!(shop.get("", "/openapi.json").await.json().get("servers"), None);
}

#[tokio::test]
async fn one_use_code_logs_one_browser_in_until_it_logs_out() {
    let login = Login::of("ann");
    let shop = Shop::open(|runner| Options::builder().brains(runner).login(login.clone()).build());
    let code = login.code(SystemClock.now()).unwrap();
    let first = shop.post("", "/api/v1/session", json!({ "code": code })).await;
    let second = shop.post("", "/api/v1/session", json!({ "code": code })).await;
    let cookie = first.header("set-cookie").split(';').next().unwrap().to_owned();

    assert_eq!(first.json()["subject"], "ann");
    assert_eq!(second.problem(), "unauthenticated");
    let own = shop.send(with_cookie(&cookie, "GET", "/api/v1/session")).await.json();
    assert_eq!(own["scopes"], json!(["read", "run", "decide", "playground", "operate", "admin"]));

    assert_eq!(shop.send(with_cookie(&cookie, "DELETE", "/api/v1/session")).await.status, StatusCode::NO_CONTENT);

    assert_eq!(shop.send(with_cookie(&cookie, "GET", "/api/v1/session")).await.problem(), "unauthenticated");
}

#[tokio::test]
async fn expired_code_is_refused() {
    let login = Login::default();
    let shop = Shop::open(|_| Options::builder().login(login.clone()).build());
    let code = login.code(Timestamp(0)).unwrap();

    assert_eq!(shop.post("", "/api/v1/session", json!({ "code": code })).await.problem(), "unauthenticated");
}

#[tokio::test]
async fn session_outlives_the_process() {
    let login = Login::default();
    let shop = Shop::open(|_| Options::builder().login(login.clone()).build());
    let cookie = log_in(&shop, &login).await;

    let restarted = router(shop.client.clone(), Options::builder().build());

    let answer = restarted.oneshot(with_cookie(&cookie, "GET", "/api/v1/runs")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn command_line_is_for_callers_who_may_do_all_of_it() {
    let shop = Shop::open(|_| Options::builder().program("desk --store runs.db").build());
    let program = async |scopes: &[Scope]| {
        let token = shop.token(None, scopes).await;
        shop.get(&token, "/api/v1/session").await.json()["program"].clone()
    };

    assert_eq!(program(&[Scope::Admin]).await, "desk --store runs.db");
    assert_eq!(program(&[Scope::Read, Scope::Operate]).await, json!(null), "it may name a folder of the server");
}

#[tokio::test]
async fn session_of_a_token_has_its_rights_and_ends_with_it() {
    use positronic_server::Token;

    let shop = Shop::new();
    let token = shop.token(Some("ann"), &[Scope::Read]).await;
    let answer = shop.post("", "/api/v1/session", json!({ "token": token })).await;
    let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
    assert_eq!(answer.json(), json!({ "subject": "ann", "user": "ann", "scopes": ["read"], "read_only": false }));

    Token::revoke(&shop.client, token.split('_').nth(1).unwrap()).await.unwrap();

    assert_eq!(shop.send(with_cookie(&cookie, "GET", "/api/v1/runs")).await.problem(), "unauthenticated");
}

#[tokio::test]
async fn cookie_is_secure_behind_tls() {
    let login = Login::default();
    let url = "https://runs.example.org/".parse().unwrap();
    let shop = Shop::open(|_| Options::builder().login(login.clone()).public_url(url).build());
    let code = login.code(SystemClock.now()).unwrap();

    let answer = shop.post("", "/api/v1/session", json!({ "code": code })).await;

    let cookie = answer.header("set-cookie");
    assert!(cookie.starts_with("__Host-positronic=") && cookie.ends_with("; Secure"), "{cookie}");
}

#[tokio::test]
async fn browser_requests_of_other_sites_change_nothing() {
    let shop = Shop::new();
    let token = shop.token(None, &[Scope::Run]).await;
    let start = |header: &'static str, value: &str| {
        let body = json!({ "brain": "Refund", "options": { "number": 7 } });
        let mut request = request(&token, "POST", "/api/v1/runs", Some(body));
        request.headers_mut().insert(header, value.parse().unwrap());
        request
    };

    for site in ["cross-site", "same-site"] {
        assert_eq!(shop.send(start("sec-fetch-site", site)).await.problem(), "cross-site");
    }
    for origin in ["https://evil.example", "null", "http://127.0.0.1:8080"] {
        assert_eq!(shop.send(start("origin", origin)).await.problem(), "cross-site");
    }
    assert_eq!(shop.send(start("content-type", "text/plain")).await.problem(), "unsupported-media-type");
    assert_eq!(shop.send(start("origin", "http://127.0.0.1:4747")).await.status, StatusCode::CREATED);
    let runs = shop.client.store().runs(&positronic_core::store::RunFilter::default()).await.unwrap();
    assert_eq!(runs.len(), 1);
}

#[tokio::test]
async fn hostile_host_is_refused_in_every_route() {
    let shop = Shop::new();
    for path in ["/", "/healthz", "/openapi.json", "/api/v1/runs", "/api/v1/session", "/nothing"] {
        let mut request = request("", "GET", path, None);
        request.headers_mut().insert("host", "evil.example:4747".parse().unwrap());
        assert_eq!(shop.send(request).await.problem(), "wrong-host", "{path}");
    }
}

#[tokio::test]
async fn answers_protect_browsers_and_allow_no_other_origin() {
    let shop = Shop::new();
    let token = shop.token(None, &[Scope::Read]).await;
    let mut asked = request(&token, "GET", "/api/v1/runs", None);
    asked.headers_mut().insert("origin", "https://evil.example".parse().unwrap());

    let answer = shop.send(asked).await;

    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
    assert!(answer.header("content-security-policy").starts_with("default-src 'none'"));
    assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control-")), "{answer:?}");
    let preflight = shop.call(&token, "OPTIONS", "/api/v1/runs", None).await;
    assert_eq!(preflight.problem(), "method-not-allowed");
}

#[tokio::test]
async fn sessions_are_listed_ended_and_limited() {
    let login = Login::of("boss");
    let shop = Shop::open(|runner| Options::builder().brains(runner).login(login.clone()).build());
    let of_boss = log_in(&shop, &login).await;
    let token = shop.token(Some("ann"), &[Scope::Read]).await;
    let mut of_ann = Vec::new();
    for _ in 0..22 {
        let answer = shop.post("", "/api/v1/session", json!({ "token": token })).await;
        of_ann.push(answer.header("set-cookie").split(';').next().unwrap().to_owned());
    }

    assert_eq!(shop.send(with_cookie(&of_ann[0], "GET", "/api/v1/runs")).await.problem(), "unauthenticated");
    let own = shop.send(with_cookie(&of_ann[21], "GET", "/api/v1/sessions")).await.json();
    let own = own["items"].as_array().unwrap();
    assert_eq!(own.len(), 20, "the oldest ones have ended");
    assert!(own.iter().all(|session| session["subject"] == "ann" && session["token"].is_string()), "{own:?}");
    let current: Vec<_> = own.iter().filter(|session| session["current"] == true).collect();
    assert_eq!(current.len(), 1);
    let all = shop.send(with_cookie(&of_boss, "GET", "/api/v1/sessions")).await.json();
    assert_eq!(all["items"].as_array().unwrap().len(), 21);
    let boss = all["items"].as_array().unwrap().iter().find(|session| session["subject"] == "boss").unwrap();

    let path = |session: &serde_json::Value| format!("/api/v1/sessions/{}", session["id"].as_str().unwrap());
    assert_eq!(shop.send(with_cookie(&of_ann[21], "DELETE", &path(boss))).await.problem(), "not-found");
    assert_eq!(shop.send(with_cookie(&of_boss, "DELETE", &path(current[0]))).await.status, StatusCode::NO_CONTENT);
    assert_eq!(shop.send(with_cookie(&of_ann[21], "GET", "/api/v1/runs")).await.problem(), "unauthenticated");

    positronic_server::Token::revoke(&shop.client, token.split('_').nth(1).unwrap()).await.unwrap();
    let kinds = positronic_core::store::EntryFilter::builder().kind("session").build();
    assert_eq!(shop.client.store().entries(&kinds).await.unwrap().len(), 1, "the token's sessions are removed");
}

#[tokio::test]
async fn cookie_is_secure_if_a_trusted_proxy_has_tls() {
    let login = Login::default();
    let proxies = vec!["10.0.0.0/8".parse().unwrap()];
    let shop = Shop::open(|_| Options::builder().login(login.clone()).trusted_proxies(proxies).build());
    let from = |address: [u8; 4]| {
        let code = login.code(SystemClock.now()).unwrap();
        let mut request = request("", "POST", "/api/v1/session", Some(json!({ "code": code })));
        request.headers_mut().insert("x-forwarded-proto", "https".parse().unwrap());
        request.extensions_mut().insert(axum::extract::ConnectInfo(std::net::SocketAddr::from((address, 4000))));
        shop.send(request)
    };

    let (proxy, stranger) = (from([10, 0, 0, 1]).await, from([9, 9, 9, 9]).await);

    let secure = |answer: &crate::support::Answer| {
        let cookie = answer.header("set-cookie");
        cookie.starts_with("__Host-positronic=") && cookie.ends_with("; Secure")
    };
    assert!(secure(&proxy) && !secure(&stranger));
}

#[tokio::test]
async fn pages_of_allowed_origins_use_the_api_with_a_token_and_never_with_a_cookie() {
    let login = Login::default();
    let origins = vec!["https://app.example.org".parse().unwrap()];
    let shop =
        Shop::open(|runner| Options::builder().brains(runner).login(login.clone()).cors_origins(origins).build());
    let (token, cookie) = (shop.token(None, &Scope::ALL).await, log_in(&shop, &login).await);
    let from = |mut request: Request<Body>, origin: &str| {
        request.headers_mut().insert("origin", origin.parse().unwrap());
        request.headers_mut().insert("sec-fetch-site", "cross-site".parse().unwrap());
        request
    };
    let order = || Some(json!({ "brain": "Refund", "options": { "number": 7 } }));
    let own = "https://app.example.org";

    let mut asks = from(request("", "OPTIONS", "/api/v1/runs", None), own);
    asks.headers_mut().insert("access-control-request-method", "POST".parse().unwrap());
    let preflight = shop.send(asks).await;
    assert_eq!(preflight.status, StatusCode::NO_CONTENT);
    assert!(preflight.header("access-control-allow-headers").contains("idempotency-key"));
    let started = shop.send(from(request(&token, "POST", "/api/v1/runs", order()), own)).await;
    assert_eq!(started.status, StatusCode::CREATED, "{started:?}");
    for answer in [preflight, started] {
        assert_eq!(answer.header("access-control-allow-origin"), own);
        assert_eq!(answer.header("access-control-allow-credentials"), "");
        assert!(answer.header("vary").contains("origin"));
    }

    let mut with_cookie = request("", "POST", "/api/v1/runs", order());
    with_cookie.headers_mut().insert("cookie", cookie.parse().unwrap());
    assert_eq!(shop.send(from(with_cookie, own)).await.problem(), "cross-site");
    for other in ["https://app.example.org.evil", "http://app.example.org", "null"] {
        let refused = shop.send(from(request(&token, "POST", "/api/v1/runs", order()), other)).await;
        assert_eq!((refused.problem().as_str(), refused.header("access-control-allow-origin")), ("cross-site", ""));
    }
}
