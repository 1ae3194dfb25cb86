//! Strings, variables and errors.

use positronic_core::record::{ModelError, ModelErrorKind};
use positronic_providers::{ModelOptions, Provider, Providers};

/// Returns the providers of these variables.
pub(crate) fn providers(variables: &[(&str, &str)]) -> Providers {
    let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Providers::from_variables(value)
}

const ALL_KEYS: [(&str, &str); 4] = [
    ("OPENAI_API_KEY", "sk-1"),
    ("ANTHROPIC_API_KEY", "sk-ant-2"),
    ("GOOGLE_API_KEY", "AIza-3"),
    ("OPENROUTER_API_KEY", "sk-or-4"),
];

#[test]
fn model_has_the_name_of_its_provider_in_events() {
    let providers = providers(&ALL_KEYS);
    for (written, name) in [
        ("anthropic/claude-haiku-5-5", "anthropic/claude-haiku-5-5"),
        ("gemini/gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("openai/gpt-5", "openai/gpt-5"),
        ("openai-responses/gpt-5", "openai/gpt-5"),
        ("gpt-5", "openai/gpt-5"),
        ("ollama/qwen3:8b", "ollama/qwen3:8b"),
        ("openrouter/anthropic/claude-x", "openrouter/anthropic/claude-x"),
    ] {
        assert_eq!(providers.model(written).unwrap().name(), name);
    }
}

#[test]
fn missing_key_names_the_variable_and_what_was_perhaps_meant() {
    let refused = |variables: &[(&str, &str)], model: &str| providers(variables).model(model).unwrap_err().to_string();

    assert_eq!(
        refused(&[], "gemini/gemini-2.5-pro"),
        "cannot use the model `gemini/gemini-2.5-pro`: GEMINI_API_KEY or GOOGLE_API_KEY is not set; set GEMINI_API_KEY"
    );
    assert_eq!(
        refused(&[("ANTHROPIC_API_KEY", "k")], "claude-haiku-5-5"),
        "cannot use the model `claude-haiku-5-5`: OPENAI_API_KEY is not set; set OPENAI_API_KEY; for the model of anthropic \
         write `anthropic/claude-haiku-5-5`"
    );
    assert_eq!(
        refused(&[("OPENAI_BASE_URL", "https://openrouter.ai/api/v1")], "anthropic/claude-x"),
        "cannot use the model `anthropic/claude-x`: ANTHROPIC_API_KEY is not set; set ANTHROPIC_API_KEY; for the model \
         `anthropic/claude-x` of OPENAI_BASE_URL write `openai/anthropic/claude-x`"
    );
    assert!(refused(&[("ANTHROPIC_API_KEY", " ")], "anthropic/x").contains("ANTHROPIC_API_KEY is not set"));
}

#[test]
fn base_url_makes_the_key_optional() {
    for (variable, url, model) in [
        ("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1", "Qwen/Qwen3-8B"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080", "anthropic/claude-x"),
        ("GEMINI_BASE_URL", "http://127.0.0.1:8080", "gemini/gemini-x"),
        ("OPENROUTER_BASE_URL", "http://127.0.0.1:8080/v1", "openrouter/a/b"),
    ] {
        assert!(providers(&[(variable, url)]).model(model).is_ok(), "{variable}");
    }
}

#[test]
fn invalid_value_is_refused_by_the_name_of_its_variable() {
    let refused = |variables: &[(&str, &str)], model: &str, options: &ModelOptions| {
        let error = providers(variables).model_with(model, options).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
        error
    };
    let plain = ModelOptions::default();
    for (variables, model, expected) in [
        (
            &[("OPENAI_BASE_URL", "http://h/v1/chat/completions/")][..],
            "x",
            "cannot use OPENAI_BASE_URL: it ends with /chat/completions, which each request appends; set it to the URL up to \
             and including the version: http://h/v1",
        ),
        (
            &[("ANTHROPIC_BASE_URL", "http://h/v1/messages")],
            "anthropic/x",
            "cannot use ANTHROPIC_BASE_URL: it ends with /messages, which each request appends; set it to the URL up to and \
             including the version: http://h/v1",
        ),
        (
            &[("GOOGLE_GEMINI_BASE_URL", "ftp://ann:hunter2@h"), ("GEMINI_API_KEY", "k")],
            "gemini/x",
            "cannot use GOOGLE_GEMINI_BASE_URL: invalid base URL `ftp://h/v1beta`; write it as https://host/v1",
        ),
        (
            &[("OPENROUTER_API_KEY", "hunter2\n")],
            "openrouter/a/b",
            "cannot use OPENROUTER_API_KEY: the API key or the organization contains a character that is invalid in a header, \
             such as a newline; correct its value",
        ),
    ] {
        assert_eq!(refused(variables, model, &plain), expected);
    }
    let ollama = &[("OLLAMA_HOST", "127.0.0.1")];
    let proxy = ModelOptions::builder().proxy("ftp://ann:hunter2@host").build();
    assert!(
        refused(ollama, "ollama/x", &proxy).starts_with("cannot use the proxy: invalid proxy URL; write it as http://")
    );
    let header = |name: &str| vec![(name.to_owned(), "hunter2".to_owned())];
    let framing = ModelOptions::builder().headers(header("Content-Length")).build();
    assert!(
        refused(ollama, "ollama/x", &framing).starts_with("cannot use a header: the header `content-length` frames")
    );
}

#[test]
fn list_shows_what_is_configured_without_keys() {
    let providers = providers(&[
        ("OPENAI_BASE_URL", "https://ann:hunter2@groq.example/openai/v1?key=k"),
        ("GEMINI_API_KEY", "hunter2"),
        ("GOOGLE_API_KEY", "hunter2"),
        ("OLLAMA_HOST", "0.0.0.0"),
    ]);

    let shown = providers.list().into_iter().map(|row| {
        let model = row.default_model.unwrap_or_default();
        format!("{} {:?} {} {:?} {model}\n", row.provider, row.key_variable, row.base_url, row.url_variable)
    });
    insta::assert_snapshot!(shown.collect::<String>(), @r#"
    openai None https://groq.example/openai/v1 Some("OPENAI_BASE_URL") 
    gemini Some("GEMINI_API_KEY") https://generativelanguage.googleapis.com/v1beta None gemini/gemini-3.8-flash
    ollama None http://127.0.0.1:11434/v1 Some("OLLAMA_HOST") 
    "#);
    assert!(!format!("{providers:?}").contains("hunter2"));
    assert_eq!(providers.secrets(), ["hunter2", "hunter2"]);
}

#[test]
fn default_model_is_that_of_the_only_configured_provider() {
    let default = |variables: &[(&str, &str)]| match providers(variables).default_model() {
        Ok(model) => model.unwrap_or_else(|| "none".to_owned()),
        Err(error) => error.to_string(),
    };
    let (openai, url) = (("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://h/v1"));
    for (variables, expected) in [
        (&[][..], "none"),
        (&[("OLLAMA_HOST", "h")], "none"),
        (&[("OPENAI_MODEL", "gpt-5")], "none"),
        (&[openai], "openai/gpt-5-mini"),
        (&[("ANTHROPIC_API_KEY", "k"), ("OLLAMA_HOST", "h")], "anthropic/claude-haiku-5-5"),
        (&[("GOOGLE_API_KEY", "k")], "gemini/gemini-3.8-flash"),
        (&[openai, ("OPENAI_MODEL", "gpt-5")], "openai/gpt-5"),
        (&[openai, ("OPENAI_MODEL", "openai-responses/gpt-5"), ("GEMINI_API_KEY", "k")], "openai-responses/gpt-5"),
        (&[url, ("OPENAI_MODEL", "openai/gpt-oss-120b")], "openai/openai/gpt-oss-120b"),
        (&[url], "cannot choose a model: OPENAI_BASE_URL is set without a model; set OPENAI_MODEL, or name the model"),
        (
            &[("OPENROUTER_API_KEY", "k")],
            "cannot choose a model: OPENROUTER_API_KEY is set without a model; name the model, such as \
             openrouter/openai/gpt-5-mini",
        ),
        (
            &ALL_KEYS,
            "cannot choose a model: several providers are configured (OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_API_KEY, \
             OPENROUTER_API_KEY); name the model, such as anthropic/claude-haiku-5-5",
        ),
    ] {
        assert_eq!(default(variables), expected);
    }
    for provider in Provider::ALL {
        if let Some(model) = provider.default_model() {
            let prices = positronic_core::prices::PriceTable::bundled().prices;
            assert!(prices.contains_key(model), "the default model {model} has no price");
        }
    }
}

#[test]
fn advice_names_the_variable_of_the_models_provider() {
    let said = |variables: &[(&str, &str)], model: &str, kind, status: Option<u16>, message: &str| {
        let error = ModelError { status, ..ModelError::new(kind, message) };
        providers(variables).advice(model, &error).unwrap_or_default()
    };
    let (auth, missing, lost) = (ModelErrorKind::Auth, ModelErrorKind::NotFound, ModelErrorKind::Connection);

    assert_eq!(
        said(&[("GOOGLE_API_KEY", "k")], "gemini/x", auth, Some(403), "no"),
        "check GOOGLE_API_KEY: it must be a key of this endpoint with access to the model"
    );
    let proxy = ("ANTHROPIC_BASE_URL", "http://h");
    assert_eq!(said(&[proxy], "anthropic/x", auth, Some(401), "no"), "set ANTHROPIC_API_KEY to a key of this endpoint");
    assert_eq!(said(&[proxy], "anthropic/x", lost, None, "refused"), "check ANTHROPIC_BASE_URL");
    assert_eq!(
        said(&[], "ollama/x", lost, None, "refused"),
        "start Ollama, or set OLLAMA_HOST to the address of its server"
    );
    assert_eq!(
        said(&[], "gemini/x", lost, None, "refused"),
        "set GEMINI_BASE_URL to use another endpoint than https://generativelanguage.googleapis.com/v1beta"
    );
    let groq = ("OPENAI_BASE_URL", "https://api.groq.com/openai/v1");
    assert_eq!(
        said(&[groq], "openai/gpt-oss-120b", missing, Some(404), "The model `gpt-oss-120b` does not exist"),
        "use the name of one of its models; the model `openai/gpt-oss-120b` of OPENAI_BASE_URL is \
         `openai/openai/gpt-oss-120b`"
    );
    assert_eq!(said(&[groq], "gpt-oss", missing, Some(404), "no such model"), "use the name of one of its models");
    assert_eq!(said(&[groq], "gpt-oss", ModelErrorKind::Server, Some(500), "no"), "");
}
