//! The model endpoint of the environment and the flags, with advice for its failures.

use std::sync::Arc;

use clap::ValueEnum as _;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::model::cassette::SHORTEST_SECRET;
use positronic_core::model::openai::{OpenAiChat, OpenAiConfig, OpenAiResponses};
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{ActionFormat, ModelError, ModelErrorKind, ModelRequest, ModelResponse};

use crate::app::{Failure, Settings};
use crate::cli::{ActionFormatArg, ModelArgs};

/// Default model of OpenAI's own endpoint.
const DEFAULT_MODEL: &str = "gpt-5-mini";

/// Prefix of model names that use the Responses API.
const RESPONSES: &str = "openai-responses/";

/// Words in the names of secret headers.
const SECRET_HEADERS: [&str; 6] = ["auth", "cookie", "key", "password", "secret", "token"];

/// Creates the adapter of the configured endpoint.
pub(crate) fn endpoint(wanted: &ModelArgs, settings: &Settings) -> Result<Arc<dyn Model>, Failure> {
    let name = wanted.model.as_deref().or(settings.model.as_deref());
    let name = match (name, &settings.base_url) {
        (Some(name), _) => name,
        (None, None) => DEFAULT_MODEL,
        (None, Some(_)) => {
            let message = "cannot use the model: OPENAI_BASE_URL is set without a model; set --model or OPENAI_MODEL";
            return Err(Failure::model(message));
        }
    };
    let (name, responses) = match name.strip_prefix(RESPONSES) {
        Some(name) => (name, true),
        None => (name.strip_prefix("openai/").filter(|_| settings.base_url.is_none()).unwrap_or(name), false),
    };
    if name.trim().is_empty() {
        let from = if wanted.model.is_some() { "--model" } else { "OPENAI_MODEL" };
        return Err(Failure::usage(format!("{from} contains no model name")).hint(format!(
            "write its name, such as {DEFAULT_MODEL}, or {RESPONSES}{DEFAULT_MODEL} for the Responses API"
        )));
    }
    if let Some(url) = &settings.base_url {
        up_to_the_version(url)?;
    }
    let action_format = match (wanted.action_format, &settings.action_format) {
        (Some(form), _) => form.into(),
        (None, Some(written)) => ActionFormatArg::from_str(written, true)
            .map_err(|_| {
                let expected = "expected schema, grammar or plain";
                Failure::usage(format!("invalid POSITRONIC_ACTION_FORMAT `{written}`: {expected}"))
                    .hint("set it to one of them, or unset it")
            })?
            .into(),
        (None, None) => ActionFormat::default(),
    };
    let key = settings.api_key.clone().unwrap_or_default();
    let flags = &wanted.endpoint;
    let headers = flags.headers.iter().map(|text| header(text)).collect::<Result<Vec<_>, _>>()?;
    let config = OpenAiConfig::builder().api_key(key).model(name).action_format(action_format).headers(headers);
    let mut config = match &settings.base_url {
        Some(url) => config.base_url(url.clone()).build(),
        None => config.build(),
    };
    config.max_output_tokens = flags.max_output_tokens;
    config.reasoning_effort.clone_from(&flags.reasoning);
    config.proxy.clone_from(&flags.proxy);
    let refuse = |error: ModelError| unusable(&config, &error);
    let model: Arc<dyn Model> = if responses {
        Arc::new(OpenAiResponses::new(config.clone()).map_err(refuse)?)
    } else {
        Arc::new(OpenAiChat::new(config.clone()).map_err(refuse)?)
    };
    let given = Given {
        address: settings.base_url.is_some(),
        key: settings.api_key.is_some(),
        proxy: wanted.endpoint.proxy.is_some(),
    };
    Ok(Arc::new(Advised::new(model, move |error| advice(error, given))))
}

/// Names the flag or variable whose value the adapter refused: the first one whose removal makes the rest valid.
fn unusable(config: &OpenAiConfig, error: &ModelError) -> Failure {
    type Remove = fn(&mut OpenAiConfig);
    let removals: [(&str, Remove); 3] = [
        ("--proxy", |config| config.proxy = None),
        ("--header", |config| config.headers.clear()),
        ("OPENAI_API_KEY", |config| config.api_key.clear()),
    ];
    let mut rest = config.clone();
    let found = removals.into_iter().find(|(_, remove)| {
        remove(&mut rest);
        OpenAiChat::new(rest.clone()).is_ok()
    });
    let from = found.map_or("OPENAI_BASE_URL", |(from, _)| from);
    let (problem, remedy) = error.message.split_once("; ").unwrap_or((&error.message, "correct its value"));
    Failure::usage(format!("cannot use {from}: {problem}")).hint(remedy)
}

/// Refuses a base URL that already ends with the path of a request.
fn up_to_the_version(url: &str) -> Result<(), Failure> {
    let bare = url.trim().trim_end_matches('/');
    let end = ["/chat/completions", "/responses"].into_iter().find_map(|end| Some((bare.strip_suffix(end)?, end)));
    end.map_or(Ok(()), |(base, end)| {
        Err(Failure::usage(format!("OPENAI_BASE_URL ends with {end}, which each request appends"))
            .hint(format!("set it to the URL up to and including the version: {base}")))
    })
}

/// Parses a header, `Name: value`. The error does not quote it, since it may contain a key.
fn header(text: &str) -> Result<(String, String), Failure> {
    let refuse =
        || Failure::usage("--header takes a name, a colon and a value").hint("such as --header 'X-Title: Help Desk'");
    let (name, value) = text.split_once(':').ok_or_else(refuse)?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Returns the secrets to redact in a recording: the key, the values of secret headers, and the passwords in URLs.
pub(crate) fn secrets(wanted: &ModelArgs, settings: &Settings) -> Vec<String> {
    let headers = wanted.endpoint.headers.iter().filter_map(|text| header(text).ok());
    let of_headers = headers.filter_map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let is_secret = SECRET_HEADERS.iter().any(|word| name.contains(word));
        // The word before a space is a scheme, such as `Bearer`.
        is_secret.then(|| value.rsplit(' ').next().unwrap_or_default().to_owned())
    });
    let addresses = [&settings.base_url, &wanted.endpoint.proxy].into_iter().flatten();
    let passwords = addresses.filter_map(|address| {
        let (user, _) = address.split_once("://")?.1.split_once('@')?;
        Some(user.split_once(':')?.1.to_owned())
    });
    let all = settings.api_key.iter().cloned().chain(of_headers).chain(passwords);
    all.filter(|secret| !secret.is_empty()).collect()
}

/// Warns of a secret that is too short to be redacted.
pub(crate) fn short_secret_warning(secrets: &[String]) -> Option<String> {
    let is_short = secrets.iter().any(|secret| secret.len() < SHORTEST_SECRET);
    is_short
        .then(|| format!("a key or password shorter than {SHORTEST_SECRET} characters is not redacted in a cassette"))
}

/// Settings that can cause a failure.
#[derive(Debug, Clone, Copy)]
struct Given {
    address: bool,
    key: bool,
    proxy: bool,
}

/// Returns the variable or flag to check after a failure of the endpoint.
fn advice(error: &ModelError, given: Given) -> Option<String> {
    let address = if given.address {
        "check OPENAI_BASE_URL"
    } else {
        "set OPENAI_BASE_URL to use another endpoint than OpenAI's"
    };
    Some(match (error.kind, error.status) {
        (ModelErrorKind::Auth, _) if !given.key => "set OPENAI_API_KEY to a key of this endpoint".to_owned(),
        (ModelErrorKind::Auth, _) => {
            "check OPENAI_API_KEY: it must be a key of this endpoint with access to the model".to_owned()
        }
        (ModelErrorKind::NotFound, Some(_)) if error.message.to_ascii_lowercase().contains("model") => {
            "set --model or OPENAI_MODEL to a model of the endpoint".to_owned()
        }
        (ModelErrorKind::Connection, None) if given.proxy => format!("check --proxy, and {address}"),
        (ModelErrorKind::NotFound, _) | (ModelErrorKind::Connection, None) => address.to_owned(),
        _ => return None,
    })
}

/// Returns the remedy of a failure, if known.
type Advice = Box<dyn Fn(&ModelError) -> Option<String> + Send + Sync>;

/// A model whose failures include advice about flags and variables.
pub(crate) struct Advised {
    model: Arc<dyn Model>,
    advice: Advice,
}

impl Advised {
    pub(crate) fn new(
        model: Arc<dyn Model>,
        advice: impl Fn(&ModelError) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { model, advice: Box::new(advice) }
    }
}

impl Model for Advised {
    fn name(&self) -> String {
        self.model.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let answer = self.model.call(request, deltas);
        let advise = |error: ModelError| match (self.advice)(&error) {
            Some(advice) => ModelError { message: format!("{}; {advice}", error.message), ..error },
            None => error,
        };
        answer.map(move |outcome| outcome.map_err(advise)).boxed()
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(&*self.model)
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.model.wire(request)
    }
}

#[cfg(test)]
mod tests {
    use positronic_core::model::NoDeltas;
    use positronic_core::record::{Path, Transcript};

    use super::*;
    use crate::cli::EndpointArgs;

    #[test]
    fn endpoint_without_a_model_or_with_a_path_suffix_is_a_settings_error() {
        let refused = |model: Option<&str>, set: Option<&str>, url: &str| {
            let (model, set) = (model.map(str::to_owned), set.map(str::to_owned));
            let settings = Settings { base_url: Some(url.to_owned()), model: set, ..Settings::default() };
            let failure = endpoint(&ModelArgs { model, ..ModelArgs::default() }, &settings).err().unwrap();
            assert_eq!(failure.exit, crate::cli::Exit::Usage);
            failure.prose()
        };
        let local = "http://127.0.0.1:4030/v1";

        for name in ["openai-responses/", "", " "] {
            assert_eq!(
                refused(Some(name), Some("smollm2"), local),
                "error: --model contains no model name\n  \
                 write its name, such as gpt-5-mini, or openai-responses/gpt-5-mini for the Responses API\n"
            );
        }
        assert!(
            refused(None, Some("openai-responses/"), local).starts_with("error: OPENAI_MODEL contains no model name\n")
        );
        for end in ["/chat/completions", "/responses"] {
            assert_eq!(
                refused(None, Some("smollm2"), &format!("{local}{end}/")),
                format!(
                    "error: OPENAI_BASE_URL ends with {end}, which each request appends\n  \
                     set it to the URL up to and including the version: {local}\n"
                )
            );
        }
        let settings = Settings { base_url: Some(format!("{local}/")), ..Settings::default() };
        let model = ModelArgs { model: Some("smollm2".to_owned()), ..ModelArgs::default() };
        assert!(endpoint(&model, &settings).is_ok());
    }

    fn wanted(flags: EndpointArgs) -> ModelArgs {
        ModelArgs { model: Some("smollm2".to_owned()), endpoint: flags, ..ModelArgs::default() }
    }

    fn request() -> ModelRequest {
        ModelRequest {
            path: Path::root().stage("Ask").iteration(0),
            attempt: 0,
            system: "".into(),
            context: [].into(),
            tools: Arc::default(),
            messages: Transcript::default(),
            settings: Arc::default(),
        }
    }

    #[test]
    fn flags_set_max_tokens_and_reasoning_of_each_request() {
        let settings = Settings { base_url: Some("http://127.0.0.1:4030/v1".to_owned()), ..Settings::default() };
        let flags =
            EndpointArgs { max_output_tokens: Some(500), reasoning: Some("low".to_owned()), ..EndpointArgs::default() };

        let body = endpoint(&wanted(flags.clone()), &settings).unwrap().wire(&request());
        assert!(body.contains("\"max_completion_tokens\":500,\"reasoning_effort\":\"low\""), "{body}");
        let responses = ModelArgs { model: Some("openai-responses/o4".to_owned()), ..wanted(flags) };
        let body = endpoint(&responses, &settings).unwrap().wire(&request());
        assert!(body.contains("\"max_output_tokens\":500,\"reasoning\":{\"effort\":\"low\"}"), "{body}");
        let fewer = positronic_core::record::Settings::builder().max_output_tokens(20).build();
        let body =
            endpoint(&responses, &settings).unwrap().wire(&ModelRequest { settings: Arc::new(fewer), ..request() });
        assert!(body.contains("\"max_output_tokens\":20,"), "{body}");
    }

    #[test]
    fn invalid_header_or_proxy_is_refused_without_its_secret() {
        let settings = Settings { base_url: Some("http://127.0.0.1:4030/v1".to_owned()), ..Settings::default() };
        let refused = |flags: EndpointArgs| {
            let prose = endpoint(&wanted(flags), &settings).err().unwrap().prose();
            assert!(!prose.contains("hunter2"), "{prose}");
            prose
        };
        let with = |header: &str| EndpointArgs { headers: vec![header.to_owned()], ..EndpointArgs::default() };

        assert!(refused(with("hunter2")).starts_with("error: --header takes a name, a colon and a value\n"));
        assert!(refused(with("X Title: hunter2")).starts_with("error: cannot use --header: the header `X Title` has"));
        assert!(refused(with("Content-Length: 3")).ends_with("\n  leave it out\n"));
        let proxy = Some("ftp://ann:hunter2@host".to_owned());
        assert_eq!(
            refused(EndpointArgs { proxy, ..EndpointArgs::default() }),
            "error: cannot use --proxy: invalid proxy URL\n  \
             write it as http://host:port or socks5://host:port\n"
        );
    }

    #[test]
    fn invalid_variable_is_named() {
        let refused = |key: &str, url: &str| {
            let (key, url) = (Some(key.to_owned()), Some(url.to_owned()));
            let settings = Settings { api_key: key, base_url: url, ..Settings::default() };
            let flags = EndpointArgs { headers: vec!["X-Title: Desk".to_owned()], ..EndpointArgs::default() };
            let failure = endpoint(&wanted(flags), &settings).err().unwrap();
            assert_eq!(failure.exit, crate::cli::Exit::Usage);
            failure.prose()
        };

        assert_eq!(
            refused("sk-1", "host"),
            "error: cannot use OPENAI_BASE_URL: invalid base URL `host`\n  write it as https://host/v1\n"
        );
        assert!(refused("sk\n1", "http://host/v1").starts_with("error: cannot use OPENAI_API_KEY: "));
    }

    #[test]
    fn recording_secrets_are_the_key_header_values_and_url_credentials() {
        let settings = Settings {
            api_key: Some("sk-1".to_owned()),
            base_url: Some("https://ann:pass1@host/v1".to_owned()),
            ..Settings::default()
        };
        let flags = EndpointArgs {
            headers: ["X-Title: Help Desk", "Authorization: Bearer tok2", "x-api-key: key3"].map(str::to_owned).into(),
            proxy: Some("http://bob:pass4@proxy:8080".to_owned()),
            ..EndpointArgs::default()
        };

        assert_eq!(secrets(&wanted(flags), &settings), ["sk-1", "tok2", "key3", "pass1", "pass4"]);
    }

    #[tokio::test]
    async fn failure_names_the_variable_or_flag_to_check() {
        let said = |kind, status: Option<u16>, message: &str, own_address: bool, key| {
            let error = ModelError { status, ..ModelError::new(kind, message) };
            advice(&error, Given { address: !own_address, key, proxy: false }).unwrap_or_default()
        };
        for (advice, words) in [
            (said(ModelErrorKind::Auth, Some(401), "no", true, true), "check OPENAI_API_KEY"),
            (said(ModelErrorKind::Auth, Some(403), "no", false, false), "set OPENAI_API_KEY"),
            (said(ModelErrorKind::NotFound, Some(404), "no such model", true, true), "--model or OPENAI_MODEL"),
            (said(ModelErrorKind::NotFound, Some(404), "Not Found", false, true), "check OPENAI_BASE_URL"),
            (said(ModelErrorKind::Connection, None, "refused", true, true), "set OPENAI_BASE_URL"),
        ] {
            assert!(advice.contains(words), "{advice}");
        }
        assert_eq!(said(ModelErrorKind::Server, Some(500), "no", true, true), "");

        let settings = Settings { base_url: Some("http://127.0.0.1:1/v1".to_owned()), ..Settings::default() };
        let model = endpoint(&wanted(EndpointArgs::default()), &settings).unwrap();
        let error = model.call(&request(), &NoDeltas).await.unwrap_err();
        assert!(error.message.starts_with("cannot reach http://127.0.0.1:1/v1/chat/completions: "), "{error}");
        assert!(error.message.ends_with("; check OPENAI_BASE_URL"), "{error}");
        let flags = EndpointArgs { proxy: Some("http://ann:pass@127.0.0.1:1".to_owned()), ..EndpointArgs::default() };
        let error = endpoint(&wanted(flags), &settings).unwrap().call(&request(), &NoDeltas).await.unwrap_err();
        assert!(error.message.contains(" through the proxy http://127.0.0.1:1: "), "{error}");
        assert!(error.message.contains("; check --proxy, and check OPENAI_BASE_URL"), "{error}");
    }
}
