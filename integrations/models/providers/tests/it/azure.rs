//! Deployments of Azure OpenAI by one string.

use std::sync::Arc;

use positronic_core::model::Model;
use positronic_core::prelude::*;
use positronic_core::record::{ModelError, ModelErrorKind};
use positronic_model_testing::azure::{Azure as Resource, KEY};
use positronic_providers::Token;

use crate::strings::providers;

/// Runs a loop with a model.
async fn greet(model: Arc<dyn Model>) {
    let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet."));
    Runner::new(model).start(&greeter, ()).await.unwrap().result().await.unwrap();
}

#[tokio::test]
async fn string_reaches_a_deployment_with_the_usual_variables() {
    let resource = Resource::start().await;
    let url = resource.url();
    let endpoint = ("AZURE_OPENAI_ENDPOINT", url.as_str());
    let (key, version) = (("AZURE_OPENAI_API_KEY", KEY), ("OPENAI_API_VERSION", "2024-10-21"));
    let (token, command) = (("AZURE_OPENAI_AD_TOKEN", "entra-1"), ("AZURE_OPENAI_TOKEN_COMMAND", "echo entra-2"));
    let own_version = ("AZURE_OPENAI_API_VERSION", "preview");
    for (variables, model, sent, credential) in [
        (&[endpoint, key][..], "azure/desk", "/openai/v1/chat/completions", KEY),
        (
            &[endpoint, key, version],
            "azure/desk",
            "/openai/deployments/desk/chat/completions?api-version=2024-10-21",
            KEY,
        ),
        (&[endpoint, token, version], "azure-responses/desk", "/openai/v1/responses", "Bearer entra-1"),
        (
            &[endpoint, command, version, own_version],
            "azure-responses/desk",
            "/openai/v1/responses?api-version=preview",
            "Bearer entra-2",
        ),
    ] {
        let model = providers(variables).model(model).unwrap();
        assert_eq!(model.name(), "azure/desk");
        greet(model).await;
        let requests = resource.requests().await;
        let last = requests.last().unwrap();
        assert_eq!(last.url.as_str().strip_prefix("http://localhost"), Some(sent));
        let credentials = ["api-key", "authorization"].map(|name| last.headers.get(name));
        assert_eq!(credentials.into_iter().flatten().collect::<Vec<_>>(), [credential]);
    }
}

#[tokio::test]
async fn callback_gives_the_token() {
    let resource = Resource::start().await;
    let url = resource.url();
    let token = Token::callback(|| async { Ok("entra-3".to_owned()) });

    let providers = providers(&[("AZURE_OPENAI_ENDPOINT", &url), ("AZURE_OPENAI_API_KEY", KEY)]).azure_token(token);
    greet(providers.model("azure/desk").unwrap()).await;

    assert_eq!(resource.requests().await[0].headers["authorization"], "Bearer entra-3");
}

#[test]
fn missing_and_wrong_variables_are_named() {
    let refused = |variables: &[(&str, &str)]| providers(variables).model("azure/desk").unwrap_err().to_string();
    let endpoint = |url| [("AZURE_OPENAI_ENDPOINT", url), ("AZURE_OPENAI_API_KEY", "k")];

    assert_eq!(
        refused(&[]),
        "cannot use the model `azure/desk`: AZURE_OPENAI_API_KEY or AZURE_OPENAI_AD_TOKEN or AZURE_OPENAI_TOKEN_COMMAND is not set; \
         set AZURE_OPENAI_API_KEY"
    );
    assert_eq!(
        refused(&[("AZURE_OPENAI_API_KEY", "k")]),
        "cannot use the model `azure/desk`: AZURE_OPENAI_ENDPOINT is not set; set AZURE_OPENAI_ENDPOINT, such as \
         https://NAME.openai.azure.com"
    );
    assert_eq!(
        refused(&endpoint(
            "https://h.openai.azure.com/openai/deployments/desk/chat/completions?api-version=2024-10-21"
        )),
        "cannot use AZURE_OPENAI_ENDPOINT: it contains the path of an API; set it to the address of the resource: \
         https://h.openai.azure.com"
    );
    assert_eq!(
        refused(&endpoint("h.openai.azure.com")),
        "cannot use AZURE_OPENAI_ENDPOINT: invalid base URL `h.openai.azure.com`; write it as https://host/v1"
    );
    for variable in ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"] {
        let error = refused(&[("AZURE_OPENAI_ENDPOINT", "https://h"), (variable, "hunter2\n")]);
        assert!(
            error.starts_with(&format!("cannot use {variable}: the API key")) && !error.contains("hunter2"),
            "{error}"
        );
    }
}

#[test]
fn advice_names_the_source_of_the_credential() {
    let error = ModelError { status: Some(401), ..ModelError::new(ModelErrorKind::Auth, "no") };
    let advice = |variable| {
        let variables = [("AZURE_OPENAI_ENDPOINT", "https://h"), (variable, "k")];
        providers(&variables).advice("azure/desk", &error).unwrap()
    };
    let key = "check AZURE_OPENAI_API_KEY: it must be a key of this endpoint with access to the model";
    assert_eq!(advice("AZURE_OPENAI_API_KEY"), key);
    for variable in ["AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_TOKEN_COMMAND"] {
        let token = "the token must be for https://cognitiveservices.azure.com, of an identity that has the role Cognitive Services \
                     OpenAI User";
        assert_eq!(advice(variable), format!("check {variable}: {token}"));
    }
}
