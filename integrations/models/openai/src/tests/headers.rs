//! Request headers.

use super::http::{HELLO, ask, config};
use super::server::{Answer, Server};
use crate::{OpenAiChat, OpenAiConfig};

fn head(change: impl FnOnce(OpenAiConfig) -> OpenAiConfig) -> String {
    let server = Server::start(vec![Answer::sse(HELLO)]);
    ask(&OpenAiChat::new(change(config(&server))).unwrap()).unwrap();
    server.requests()[0].head.clone()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn request_has_user_agent_key_and_configured_headers() {
    let own = vec![pair("X-Title", "Desk"), pair("Api-Key", "k2")];
    let sent = head(|config| OpenAiConfig { headers: own, organization: Some("org".to_owned()), ..config });

    for line in [
        concat!("user-agent: positronic/", env!("CARGO_PKG_VERSION")),
        "authorization: bearer sk-test",
        "content-type: application/json",
        "openai-organization: org",
        "x-title: desk",
        "api-key: k2",
    ] {
        assert!(sent.lines().any(|sent| sent == line), "{line} is missing in\n{sent}");
    }
    assert!(sent.starts_with("post /v1/chat/completions http/1.1"), "{sent}");
}

#[test]
fn configured_header_overrides_the_adapters() {
    let own = vec![pair("Authorization", "Basic abc"), pair("user-agent", "desk/1")];
    let sent = head(|config| OpenAiConfig { headers: own, ..config });

    assert_eq!(sent.matches("authorization:").count(), 1, "{sent}");
    assert!(sent.contains("authorization: basic abc\r\n") && sent.contains("user-agent: desk/1\r\n"), "{sent}");
    assert!(!head(|config| OpenAiConfig { api_key: String::new(), ..config }).contains("authorization"));
}

#[test]
fn invalid_header_is_rejected_without_showing_its_value() {
    for (name, value) in [("X Title", "secret"), ("x-title", "secret\nx: y"), ("", "secret")] {
        let config = OpenAiConfig::builder().model("m").headers(vec![pair(name, value)]).build();
        let error = OpenAiChat::new(config).unwrap_err();
        assert!(error.message.starts_with(&format!("the header `{name}` ")), "{error}");
        assert!(!error.message.contains("secret"), "{error}");
    }
}
