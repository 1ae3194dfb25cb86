//! Requests over real connections, and addresses that are refused.

use std::net::{IpAddr, SocketAddr};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::post;
use positronic_net::HostResolver;

use super::*;

/// A receiver on this machine. Its routes redirect, answer with an error, or accept.
async fn listen() -> (SocketAddr, Arc<Mutex<Vec<(HeaderMap, Bytes)>>>) {
    let arrived: Arc<Mutex<Vec<(HeaderMap, Bytes)>>> = Arc::default();
    let seen = Arc::clone(&arrived);
    let app = Router::new()
        .route("/moved", post(|| async { Redirect::temporary("/accept") }))
        .route("/busy", post(|| async { (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "7")]).into_response() }))
        .route(
            "/accept",
            post(|headers: HeaderMap, body: Bytes| async move {
                seen.lock().push((headers, body));
                StatusCode::NO_CONTENT
            }),
        );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, arrived)
}

fn request(url: &str) -> OutgoingRequest {
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", "evt_1".parse().unwrap());
    OutgoingRequest { url: url.parse().unwrap(), headers, body: Bytes::from_static(b"{}") }
}

async fn send(transport: &HttpTransport, url: &str) -> Result<OutgoingResponse, TransportError> {
    WebhookTransport::send(transport, &request(url)).await
}

#[tokio::test]
async fn request_arrives_and_redirects_are_not_followed() {
    let (address, arrived) = listen().await;
    let transport = HttpTransport::new(PrivateAddresses::Allow).unwrap();

    let accepted = send(&transport, &format!("http://{address}/accept")).await.unwrap();
    let moved = send(&transport, &format!("http://{address}/moved")).await.unwrap();
    let busy = send(&transport, &format!("http://{address}/busy")).await.unwrap();

    assert_eq!((accepted.status, moved.status), (204, 307));
    assert_eq!(busy, OutgoingResponse { status: 503, retry_after: Some("7".to_owned()) });
    let arrived = arrived.lock();
    assert_eq!(arrived.len(), 1, "the redirect was not followed");
    assert_eq!((arrived[0].0["webhook-id"].to_str().unwrap(), &arrived[0].1[..]), ("evt_1", b"{}".as_slice()));
}

/// Every notation of an address in an internal network.
const INTERNAL: &[&str] = &[
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0x7f.1",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "2852039166",
    "[::1]",
    "[::]",
    "[::ffff:10.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::127.0.0.1]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[fe80::1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "①②⑦.0.0.1",
];

#[tokio::test]
async fn internal_addresses_are_refused_in_every_notation() {
    let transport = HttpTransport::new(PrivateAddresses::Refuse).unwrap();
    for host in INTERNAL {
        let url = format!("https://{host}/");
        assert!(matches!(send(&transport, &url).await, Err(TransportError::NotPublic(_))), "{host}");
        assert!(matches!(parse_url(&url, PrivateAddresses::Refuse), Err(TransportError::NotPublic(_))), "{host}");
        assert!(parse_url(&url, PrivateAddresses::Allow).is_ok(), "{host}");
    }
}

/// Resolves every name to the next of some addresses.
struct Rebinding(Mutex<Vec<&'static str>>);

impl HostResolver for Rebinding {
    fn resolve<'a>(&'a self, _host: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        let next = self.0.lock().pop().map(|address| address.parse().unwrap());
        Box::pin(async move { Ok(next.into_iter().collect()) })
    }
}

#[tokio::test]
async fn names_of_internal_addresses_are_refused_after_resolution() {
    let (address, arrived) = listen().await;
    for internal in ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fc00::1"] {
        let resolver = Arc::new(Rebinding(Mutex::new(vec![internal])));
        let transport = HttpTransport::with_resolver(resolver, PrivateAddresses::Refuse).unwrap();
        let sent = send(&transport, &format!("http://hooks.example.com:{}/accept", address.port())).await;
        assert!(matches!(sent, Err(TransportError::NotPublic(_))), "{internal}: {sent:?}");
    }
    assert!(arrived.lock().is_empty());
}

/// The name resolves to the receiver at first, and to another address at every later question.
#[tokio::test]
async fn connection_goes_to_the_checked_address() {
    let (address, arrived) = listen().await;
    let resolver = Arc::new(Rebinding(Mutex::new(vec!["203.0.113.1", "127.0.0.1"])));
    let transport = HttpTransport::with_resolver(Arc::clone(&resolver) as _, PrivateAddresses::Allow).unwrap();

    let sent = send(&transport, &format!("http://hooks.example.com:{}/accept", address.port())).await.unwrap();

    assert_eq!((sent.status, arrived.lock().len()), (204, 1));
    assert_eq!(resolver.0.lock().len(), 1, "the name was resolved once");
}

#[test]
fn urls_of_endpoints_are_encrypted_and_without_passwords() {
    let refused = |url: &str| parse_url(url, PrivateAddresses::Refuse).unwrap_err().to_string();
    assert_eq!(refused("http://example.com/"), "invalid URL: `http` is not encrypted; use `https`");
    assert_eq!(refused("ftp://example.com/"), "invalid URL: it must begin with `https://`");
    assert_eq!(refused("file:///etc/passwd"), "invalid URL: it must begin with `https://`");
    assert_eq!(refused("https://ann:secret@example.com/"), "invalid URL: it contains a user name or a password");
    assert!(refused("https://").starts_with("invalid URL: "));
    assert!(parse_url("https://example.com/hooks?a=1", PrivateAddresses::Refuse).is_ok());
    assert!(parse_url("http://example.com/", PrivateAddresses::Allow).is_ok());
}
