//! Token: a credential that is renewed.

use std::fmt;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::record::{ModelError, ModelErrorKind};
use serde_json::Value;
use tokio::process::Command;
use tokio::sync::Mutex;

/// How long a command may take.
const LIMIT: Duration = Duration::from_mins(1);

/// How long a token is used if it does not say when it expires, and how long before its end it is renewed, in seconds.
const MARGIN: u64 = 300;

/// A token that is renewed, such as one of Entra ID.
#[derive(Clone)]
pub struct Token(Arc<dyn Fn() -> BoxFuture<'static, Result<String, ModelError>> + Send + Sync>);

impl Token {
    /// Gets the token from a callback, which is called before each request and stores the token as long as it is valid.
    ///
    /// Its error fails the request: the kind decides about retries.
    #[must_use]
    pub fn callback<F>(token: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, ModelError>> + Send + 'static,
    {
        Self(Arc::new(move || token().boxed()))
    }

    /// Gets the token from the output of a command of the shell: the token, or JSON with `accessToken`, as `az account
    /// get-access-token` prints it.
    ///
    /// The command runs again five minutes before the token expires; a token that does not say when it does is used for five
    /// minutes. A failure of the command is an error of the kind [`Auth`](ModelErrorKind::Auth), without the command, which may
    /// contain a secret; a command that does not end within a minute is a [`Timeout`](ModelErrorKind::Timeout), which is retried.
    #[must_use]
    pub fn command(command: impl Into<String>) -> Self {
        let source = Arc::new(TokenCommand { command: command.into(), stored: Mutex::default() });
        Self(Arc::new(move || {
            let source = Arc::clone(&source);
            async move { source.get().await }.boxed()
        }))
    }

    pub(crate) fn get(&self) -> BoxFuture<'static, Result<String, ModelError>> {
        (self.0)()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// A command that prints a token, and the token with the time of its renewal in seconds since 1970.
struct TokenCommand {
    command: String,
    stored: Mutex<Option<(String, u64)>>,
}

impl TokenCommand {
    /// Returns the token. Requests at the same time wait for one run of the command.
    async fn get(&self) -> Result<String, ModelError> {
        let mut stored = self.stored.lock().await;
        if let Some((token, _)) = stored.as_ref().filter(|(_, renewal)| now() < *renewal) {
            return Ok(token.clone());
        }
        let token = self.run().await?;
        let renewal = expiry(&token).map_or_else(|| now() + MARGIN, |expiry| expiry.saturating_sub(MARGIN));
        *stored = Some((token.clone(), renewal));
        Ok(token)
    }

    async fn run(&self) -> Result<String, ModelError> {
        // The command is left out, since it may contain a secret and the error is stored in the log.
        let error = |kind, cause: &str| {
            let sentence = format!("the command that prints the token failed: {cause}; run it in a shell");
            ModelError::new(kind, sentence)
        };
        let failed = |cause: &str| error(ModelErrorKind::Auth, cause);
        let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        let mut command = Command::new(shell);
        command.args([flag, &self.command]).stdin(Stdio::null()).kill_on_drop(true);
        let output = match tokio::time::timeout(LIMIT, command.output()).await {
            Ok(output) => output.map_err(|error| failed(&error.to_string()))?,
            Err(_) => return Err(error(ModelErrorKind::Timeout, &format!("it did not end within {LIMIT:?}"))),
        };
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            let line = words.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            return Err(failed(format!("{} {}", output.status, positronic_model_http::shorten(line)).trim()));
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        let document: Option<Value> = serde_json::from_str(printed.trim()).ok().filter(Value::is_object);
        let token = match &document {
            Some(document) => document.get("accessToken").and_then(Value::as_str).unwrap_or_default(),
            None => printed.trim(),
        };
        if token.is_empty() || token.contains(char::is_whitespace) {
            return Err(failed("its output is not a token"));
        }
        Ok(token.to_owned())
    }
}

/// Returns when a JSON Web Token expires, in seconds since 1970.
fn expiry(token: &str) -> Option<u64> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    serde_json::from_slice::<Value>(&claims).ok()?.get("exp")?.as_u64()
}

#[expect(clippy::disallowed_methods, reason = "a token names the end of its validity by the wall clock")]
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
