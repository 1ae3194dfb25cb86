//! Configurations of async-openai and of users.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_openai::Client;
use async_openai::config::{Config, OpenAIConfig};
use positronic_async_openai::{Azure, Connection};
use positronic_core::record::ModelErrorKind;
use positronic_model_http::reqwest::header::HeaderMap;
use positronic_model_testing::wire_forms::{Reply, chat};
use positronic_model_testing::{Provider as Server, rules};
use secrecy::SecretString;

use crate::{ask, options};

async fn server(answers: usize) -> Server {
    let reply = Reply { text: "Hello.".to_owned(), calls: Vec::new() };
    Server::start(rules::chat::check, (0..answers).map(|number| chat(&reply, number)).collect()).await
}

fn config(server: &Server) -> OpenAIConfig {
    OpenAIConfig::new().with_api_base(format!("{}/v1", server.url())).with_api_key("sk-test-1")
}

/// A configuration with another token for each request.
#[derive(Debug, Clone)]
struct Rotating {
    base: String,
    key: SecretString,
    asked: Arc<AtomicUsize>,
}

impl Config for Rotating {
    fn headers(&self) -> HeaderMap {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        HeaderMap::from_iter([("x-token".parse().unwrap(), format!("token-{number}").parse().unwrap())])
    }

    fn url(&self, path: &str) -> String {
        format!("{}/tenant{path}", self.base)
    }

    fn query(&self) -> Vec<(&str, &str)> {
        vec![("team", "a b")]
    }

    fn api_base(&self) -> &str {
        &self.base
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}

#[tokio::test]
async fn configuration_is_asked_before_each_request() {
    let server = server(2).await;
    let config = Rotating { base: server.url(), key: String::new().into(), asked: Arc::default() };
    let model = Connection::new(config).chat(options()).unwrap();

    for _ in 0..2 {
        ask(&model).await.unwrap();
    }

    let requests = server.requests().await;
    let tokens: Vec<_> = requests.iter().map(|sent| sent.headers["x-token"].to_str().unwrap()).collect();
    assert_eq!(tokens.len(), 2);
    assert_ne!(tokens[0], tokens[1]);
    assert_eq!(requests[0].url.path(), "/tenant/chat/completions");
    assert_eq!(requests[0].url.query(), Some("team=a+b"));
}

#[tokio::test]
async fn client_gives_its_address_and_headers_and_options_override_them() {
    let server = server(1).await;
    let config = config(&server).with_org_id("org-1").with_header("x-team", "a").unwrap();
    let mut options = options();
    options.headers = vec![("X-Team".to_owned(), "b".to_owned())];
    options.api_key = "not-sent".to_owned();
    let model = Connection::of_client(&Client::with_config(config)).chat(options).unwrap();

    let response = ask(&model).await.unwrap();

    let sent = &server.requests().await[0];
    assert_eq!(sent.headers["authorization"], "Bearer sk-test-1");
    assert_eq!(sent.headers["openai-organization"], "org-1");
    assert_eq!(sent.headers.get_all("x-team").iter().collect::<Vec<_>>(), ["b"]);
    assert_eq!(response.metadata.server.as_deref(), server.url().strip_prefix("http://"));
}

#[tokio::test]
async fn slash_at_the_end_of_the_base_url_is_ignored() {
    let server = server(1).await;
    let config = config(&server).with_api_base(format!("{}/v1/", server.url()));

    ask(&Connection::new(config).chat(options()).unwrap()).await.unwrap();

    assert_eq!(server.requests().await[0].url.path(), "/v1/chat/completions");
}

#[tokio::test]
async fn empty_key_is_not_sent() {
    let server = server(1).await;

    ask(&Connection::new(config(&server).with_api_key("")).chat(options()).unwrap()).await.unwrap();

    assert!(!server.requests().await[0].headers.contains_key("authorization"));
}

#[test]
fn invalid_value_of_a_header_is_an_error() {
    let config = OpenAIConfig::new().with_api_base("http://127.0.0.1:9/v1").with_api_key("k");
    for config in [config.clone().with_api_key("hunter2\n"), config.with_org_id("hunter2\n")] {
        let error = Connection::new(config).chat(options()).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Auth);
        assert!(!error.message.contains("hunter2"), "{error}");
    }
    for (url, shown) in [("host/v1", "host/v1"), ("ftp://ann:hunter2@h/v1", "ftp://h/v1")] {
        let config = OpenAIConfig::new().with_api_base(url).with_api_key("k");
        let error = Connection::new(config).chat(options()).unwrap_err();
        assert!(error.message.starts_with(&format!("invalid base URL `{shown}")), "{error}");
    }
}

#[test]
fn debug_shows_no_credentials() {
    let config = OpenAIConfig::new().with_api_base("https://ann:hunter2@h/v1?key=hunter2").with_api_key("hunter2");
    let connection = Connection::new(config);
    assert_eq!(format!("{connection:?}"), "Connection { source: https://h/v1, sender: None }");
    assert!(!format!("{:?}", Azure::new("https://h", "d").with_api_key("hunter2")).contains("hunter2"));
}

/// The test runs again in a process that has the variable.
#[test]
fn key_of_the_environment_is_sent_only_by_async_openai_s_own_configurations() {
    let key = "sk-of-the-environment";
    if std::env::var_os("OPENAI_API_KEY").is_some_and(|value| value == key) {
        assert_eq!(OpenAIConfig::new().headers()["authorization"], format!("Bearer {key}"));
        assert!(Azure::new("https://h", "d").headers().is_empty());
        return;
    }
    let test = "configs::key_of_the_environment_is_sent_only_by_async_openai_s_own_configurations";
    let mut process = Command::new(std::env::current_exe().unwrap());
    let output = process.args(["--exact", test]).env("OPENAI_API_KEY", key).output().unwrap();
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("1 passed"), "{output}");
}
