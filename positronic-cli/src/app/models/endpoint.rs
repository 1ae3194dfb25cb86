//! The models of providers that flags and variables name, with advice for their failures.

use std::sync::Arc;

use clap::ValueEnum as _;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::model::cassette::MIN_SECRET;
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{ActionFormat, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use positronic_providers::{ModelOptions, ProviderError, Setting};

use crate::app::files::read_table;
use crate::app::{Failure, Settings};
use crate::cli::{ActionFormatArg, EndpointArgs, ModelArgs};

/// How to configure a model.
pub(crate) const SET_MODEL: &str = "set the key of a provider, such as OPENAI_API_KEY, ANTHROPIC_API_KEY or \
                                    GEMINI_API_KEY, or OPENAI_BASE_URL for another compatible endpoint";

/// How to name a model.
const NAME_MODEL: &str = "set it with --model or POSITRONIC_MODEL";

/// Returns the string of the normal tier's model: of the flag, of `POSITRONIC_MODEL`, or the default of the configured provider.
pub(crate) fn model_name(flag: Option<&str>, settings: &Settings) -> Result<Option<String>, Failure> {
    match flag.or(settings.model.as_deref()) {
        Some(name) => Ok(Some(name.to_owned())),
        None => settings.providers.default_model().map_err(refused),
    }
}

/// Creates the model of a string.
pub(crate) fn provided_model(name: &str, wanted: &ModelArgs, settings: &Settings) -> Result<Arc<dyn Model>, Failure> {
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
    let mut options = options(&wanted.endpoint, settings)?;
    options.action_format = action_format;
    let model = settings.providers.model_with(name, &options).map_err(refused)?;
    let (name, providers) = (name.to_owned(), settings.providers.clone());
    let has_proxy = options.proxy.is_some();
    Ok(Arc::new(Advised::new(model, move |error| {
        let advice = providers.advice(&name, error)?;
        let is_lost = error.kind == ModelErrorKind::Connection && has_proxy;
        Some(if is_lost { format!("check --proxy, and {advice}") } else { advice })
    })))
}

/// The format of a table of capabilities, by example.
const CAPABILITIES: &str =
    "`as_of = \"2026-11-01\"` and, under `[inputs]`, lines such as `\"openai/gpt-5\" = [\"image\", \"pdf\"]`";

/// Converts the flags, and reads the table of capabilities.
fn options(flags: &EndpointArgs, settings: &Settings) -> Result<ModelOptions, Failure> {
    let mut options = ModelOptions::default();
    if let Some(path) = &settings.capabilities {
        options.capabilities = read_table(path, "table of capabilities", CAPABILITIES)?;
    }
    options.max_output_tokens = flags.max_output_tokens;
    options.reasoning.clone_from(&flags.reasoning);
    options.headers = flags.headers.iter().map(|text| header(text)).collect::<Result<_, _>>()?;
    options.proxy.clone_from(&flags.proxy);
    options.text_marks = flags.text_marks;
    Ok(options)
}

/// Converts the error of a string, a variable or a flag.
fn refused(error: ProviderError) -> Failure {
    let (problem, remedies) = (error.problem(), error.remedies());
    match error {
        ProviderError::NoKey { .. } => Failure::model(problem).hints(remedies),
        ProviderError::NoDefaultModel { .. } | ProviderError::SeveralProviders { .. } => {
            Failure::model(problem).hints(remedies).hint(NAME_MODEL)
        }
        ProviderError::Unusable { setting, problem, remedy } => {
            let setting = match setting {
                Setting::Proxy => "--proxy".to_owned(),
                Setting::Headers => "--header".to_owned(),
                other => other.to_string(),
            };
            Failure::usage(format!("cannot use {setting}: {problem}")).hint(remedy)
        }
        _ => Failure::usage(problem).hints(remedies),
    }
}

/// Parses a header, `Name: value`. The error does not quote it, since it may contain a key.
fn header(text: &str) -> Result<(String, String), Failure> {
    let refuse =
        || Failure::usage("--header takes a name, a colon and a value").hint("such as --header 'X-Title: Help Desk'");
    let (name, value) = text.split_once(':').ok_or_else(refuse)?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Returns the secrets to redact in a recording: those of all providers, of headers, and of the proxy's URL.
pub(crate) fn secrets(wanted: &ModelArgs, settings: &Settings) -> Vec<String> {
    // Invalid flags are refused before anything is recorded.
    let of_flags = options(&wanted.endpoint, settings).map(|options| options.secrets()).unwrap_or_default();
    settings.providers.secrets().into_iter().chain(of_flags).collect()
}

/// Warns of a secret that is too short to be redacted.
pub(crate) fn short_secret_warning(secrets: &[String]) -> Option<String> {
    let is_short = secrets.iter().any(|secret| secret.len() < MIN_SECRET);
    is_short.then(|| format!("a key or password shorter than {MIN_SECRET} characters is not redacted in a cassette"))
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
    use crate::cli::Exit;

    const LOCAL: (&str, &str) = ("OPENAI_BASE_URL", "http://127.0.0.1:4030/v1");

    fn settings(variables: &[(&str, &str)]) -> Settings {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
        Settings::from_variables(value)
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

    fn with(flags: EndpointArgs) -> ModelArgs {
        ModelArgs { endpoint: flags, ..ModelArgs::default() }
    }

    #[test]
    fn flag_and_variables_name_the_model_in_this_order() {
        let key = ("OPENAI_API_KEY", "k");
        let (positronic, openai) = (("POSITRONIC_MODEL", "ollama/qwen3:8b"), ("OPENAI_MODEL", "gpt-5"));
        let name =
            |flag, variables: &[(&str, &str)]| model_name(flag, &settings(variables)).unwrap().unwrap_or_default();

        assert_eq!(name(Some("gemini/g"), &[key, positronic, openai]), "gemini/g");
        assert_eq!(name(None, &[key, positronic, openai]), "ollama/qwen3:8b");
        assert_eq!(name(None, &[key, openai]), "openai/gpt-5");
        assert_eq!(name(None, &[key]), "openai/gpt-5-mini");
        assert_eq!(name(None, &[]), "");
        let both = model_name(None, &settings(&[key, ("GEMINI_API_KEY", "k")])).unwrap_err();
        assert_eq!(both.exit, Exit::NoModel);
        assert_eq!(
            both.prose(),
            "error: cannot choose a model: several providers are configured (OPENAI_API_KEY, GEMINI_API_KEY)\n  \
             name the model, such as anthropic/claude-haiku-5-5\n  set it with --model or POSITRONIC_MODEL\n"
        );
    }

    #[test]
    fn problem_is_named_by_its_variable_or_flag_without_its_secret() {
        let refused = |name: &str, variables: &[(&str, &str)], flags: EndpointArgs| {
            let failure = provided_model(name, &with(flags), &settings(variables)).err().unwrap();
            let prose = failure.prose();
            assert!(!prose.contains("hunter2"), "{prose}");
            (failure.exit, prose)
        };
        let none = EndpointArgs::default;
        let header = |header: &str| EndpointArgs { headers: vec![header.to_owned()], ..none() };
        let proxy = EndpointArgs { proxy: Some("ftp://ann:hunter2@host".to_owned()), ..none() };

        for (name, variables, flags, exit, prose) in [
            (
                "gemini/g",
                &[][..],
                none(),
                Exit::NoModel,
                "error: cannot use the model `gemini/g`: GEMINI_API_KEY or GOOGLE",
            ),
            ("openai-responses/", &[LOCAL], none(), Exit::Usage, "error: `openai-responses/` contains no model name\n"),
            (
                "x",
                &[("OPENAI_BASE_URL", "h")],
                none(),
                Exit::Usage,
                "error: cannot use OPENAI_BASE_URL: invalid base URL `h`\n",
            ),
            (
                "smollm2",
                &[LOCAL],
                header("hunter2"),
                Exit::Usage,
                "error: --header takes a name, a colon and a value\n",
            ),
            (
                "smollm2",
                &[LOCAL],
                header("X Title: hunter2"),
                Exit::Usage,
                "error: cannot use --header: the header `X Title` ",
            ),
            (
                "smollm2",
                &[LOCAL],
                proxy,
                Exit::Usage,
                "error: cannot use --proxy: invalid proxy URL\n  write it as http://host:port or socks5://host:port\n",
            ),
        ] {
            let (refused_with, said) = refused(name, variables, flags);
            assert!(said.starts_with(prose), "{said}");
            assert_eq!(refused_with, exit, "{name}");
        }
    }

    #[test]
    fn recording_secrets_are_those_of_all_providers_headers_and_urls() {
        let settings = settings(&[
            ("OPENAI_API_KEY", "sk-1"),
            ("OPENAI_BASE_URL", "https://ann:pass1@host/v1"),
            ("ANTHROPIC_API_KEY", "sk-ant-5"),
            ("GEMINI_API_KEY", "AIza-6"),
            ("OPENROUTER_API_KEY", "sk-or-7"),
        ]);
        let flags = EndpointArgs {
            headers: ["X-Title: Help Desk", "Authorization: Bearer tok2", "x-api-key: key3"].map(str::to_owned).into(),
            proxy: Some("http://bob:pass4@proxy:8080".to_owned()),
            ..EndpointArgs::default()
        };

        let found = secrets(&with(flags), &settings);
        assert_eq!(found, ["sk-1", "pass1", "sk-ant-5", "AIza-6", "sk-or-7", "tok2", "key3", "pass4"]);
    }

    #[tokio::test]
    async fn failure_names_the_variable_or_flag_to_check() {
        let settings = settings(&[("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")]);
        let failed = async |flags: EndpointArgs| {
            let model = provided_model("anthropic/claude-x", &with(flags), &settings).unwrap();
            model.call(&request(), &NoDeltas).await.unwrap_err().message
        };

        let error = failed(EndpointArgs::default()).await;
        assert!(error.starts_with("cannot reach http://127.0.0.1:1/v1/messages: "), "{error}");
        assert!(error.ends_with("; check ANTHROPIC_BASE_URL"), "{error}");
        let proxy = Some("http://ann:pass@127.0.0.1:1".to_owned());
        let error = failed(EndpointArgs { proxy, ..EndpointArgs::default() }).await;
        assert!(error.contains(" through the proxy http://127.0.0.1:1: "), "{error}");
        assert!(error.ends_with("; check --proxy, and check ANTHROPIC_BASE_URL"), "{error}");
    }

    #[tokio::test]
    async fn text_marks_flag_reads_the_calls_in_a_text() {
        use std::io::{Read as _, Write as _};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let said = "<tool_call><function=look><parameter=city>Oslo</parameter></function></tool_call>";
        let answer =
            serde_json::json!({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}).to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                _ = stream.read(&mut [0; 1 << 16]);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
            }
        });
        let settings = settings(&[("OPENAI_BASE_URL", &*url)]);
        let calls = async |flags: EndpointArgs| {
            let model = provided_model("qwen3-coder", &with(flags), &settings).unwrap();
            let answer = model.call(&request(), &NoDeltas).await.unwrap();
            answer.calls.into_iter().map(|call| (call.name, call.arguments)).collect::<Vec<_>>()
        };

        let read = calls(EndpointArgs { text_marks: true, ..EndpointArgs::default() }).await;
        assert_eq!(read, [("look".to_owned(), r#"{"city":"Oslo"}"#.to_owned())]);
        assert!(calls(EndpointArgs::default()).await.is_empty());
    }
}
