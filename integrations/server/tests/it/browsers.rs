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
    assert_eq!(own["scopes"], json!(["read", "run", "decide", "operate", "admin"]));

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
