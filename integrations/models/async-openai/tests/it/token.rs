//! Tokens that a command prints.
#![cfg(unix)]

use async_openai::config::OpenAIConfig;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use positronic_async_openai::{Connection, Token};
use positronic_core::record::ModelErrorKind;
use positronic_model_testing::wire_forms::{Reply, chat};
use positronic_model_testing::{Provider as Server, rules};

use crate::{ask, options};

/// Returns a JSON Web Token with the end of its validity, in seconds since 1970.
fn token(expiry: u64) -> String {
    let part = |json: String| URL_SAFE_NO_PAD.encode(json);
    format!("{}.{}.sign", part("{\"alg\":\"none\"}".to_owned()), part(format!("{{\"exp\":{expiry}}}")))
}

/// Asks a model several times, all at once. Returns the credentials that were sent, and how often the command ran.
async fn sent(output: &str, times: usize) -> (Vec<String>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let command = format!("echo run >> {}; echo '{output}'", runs.display());
    let reply = Reply { text: "Hello.".to_owned(), calls: Vec::new() };
    let server = Server::start(rules::chat::check, vec![chat(&reply, 0); times]).await;
    let base = server.url();
    let connection = Connection::with_tokens(Token::command(command), move |token| {
        OpenAIConfig::new().with_api_base(&base).with_api_key(token)
    });
    let model = connection.chat(options()).unwrap();
    for answer in futures::future::join_all((0..times).map(|_| ask(&model))).await {
        answer.unwrap();
    }
    let requests = server.requests().await;
    let credentials = requests.iter().map(|sent| sent.headers["authorization"].to_str().unwrap().to_owned());
    (credentials.collect(), std::fs::read_to_string(runs).unwrap().lines().count())
}

#[tokio::test]
async fn command_runs_again_only_before_its_token_expires() {
    let valid = token(u64::from(u32::MAX));
    assert_eq!(sent(&valid, 3).await, (vec![format!("Bearer {valid}"); 3], 1));
    let ending = token(1);
    assert_eq!(sent(&ending, 3).await, (vec![format!("Bearer {ending}"); 3], 3));
    assert_eq!(sent("opaque", 2).await, (vec!["Bearer opaque".to_owned(); 2], 1));
    let document = format!("{{\n \"accessToken\": \"{valid}\", \"expires_on\": 1}}");
    assert_eq!(sent(&document, 1).await, (vec![format!("Bearer {valid}")], 1));
}

#[tokio::test]
async fn failed_command_is_reported_without_itself_and_its_output() {
    for (command, cause) in [
        ("echo hunter2; echo 'Please run az login' >&2; exit 3", "exit status: 3 Please run az login"),
        ("true", "its output is not a token"),
        ("echo hunter2 hunter3", "its output is not a token"),
        ("echo '{\"tokn\": \"hunter2\"}'", "its output is not a token"),
    ] {
        let config = |token| OpenAIConfig::new().with_api_base("http://127.0.0.1:1").with_api_key(token);
        let model = Connection::with_tokens(Token::command(command), config).chat(options()).unwrap();

        let error = ask(&model).await.unwrap_err();

        assert_eq!(error.kind, ModelErrorKind::Auth);
        let expected = format!("the command that prints the token failed: {cause}; run it in a shell");
        assert_eq!(error.message, expected);
    }
}
