//! Azure OpenAI.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_openai::config::{AzureConfig, Config as _};
use positronic_async_openai::{Azure, Connection, Token};
use positronic_core::model::Model as _;
use positronic_core::record::{ModelErrorKind, Settings};
use positronic_model_testing::ResponseTemplate;
use positronic_model_testing::azure::{Azure as Resource, DEPLOYMENT, KEY, TOKEN};
use positronic_openai::OpenAiChat;
use serde_json::json;

use crate::{ask, options, request};

#[test]
fn url_depends_on_the_version_and_the_api() {
    let url = |endpoint: &str, version: Option<&str>, path: &str| {
        let azure = Azure::new(endpoint, "gpt 5/x");
        version.map_or(azure.clone(), |version| azure.with_api_version(version)).url(path)
    };
    let (chat, responses) = ("/chat/completions", "/responses");
    for endpoint in ["https://h", " https://h/ ", "https://h/openai", "https://h/openai/v1/"] {
        assert_eq!(url(endpoint, None, chat), "https://h/openai/v1/chat/completions", "{endpoint}");
    }
    assert_eq!(url("https://h", None, responses), "https://h/openai/v1/responses");
    assert_eq!(url("https://h", Some("preview"), responses), "https://h/openai/v1/responses?api-version=preview");
    let dated = "https://h/openai/deployments/gpt%205%2Fx/chat/completions?api-version=2024-10-21";
    assert_eq!(url("https://h", Some("2024-10-21"), chat), dated);
    assert_eq!(url("https://h", Some("2024-10-21"), responses), "https://h/openai/v1/responses");
    assert_eq!(url("https://gateway/team/v1", None, chat), "https://gateway/team/v1/openai/v1/chat/completions");
}

#[tokio::test]
async fn requests_have_the_bodies_of_openai_and_reach_each_api() {
    let resource = Resource::start().await;
    let plain = Azure::new(resource.url(), DEPLOYMENT).with_api_key(KEY);
    let mut of_openai = options();
    of_openai.base_url = resource.url();
    let body = OpenAiChat::new(of_openai).unwrap().wire(&request(Settings::default()));

    for azure in [plain.clone(), plain.clone().with_api_version("2024-10-21"), plain.with_api_version("preview")] {
        let connection = Connection::new(azure);
        let response = ask(&connection.chat(options()).unwrap()).await.unwrap();
        assert_eq!((response.text().as_str(), response.metadata.usage.output), ("Hello.", 10));
        assert_eq!(ask(&connection.responses(options()).unwrap()).await.unwrap().text(), "Hello.");
    }

    let requests = resource.requests().await;
    for sent in &requests {
        assert_eq!(sent.headers["api-key"], KEY);
        assert!(!sent.headers.contains_key("authorization"));
    }
    assert_eq!(requests.iter().filter(|sent| sent.body == body.as_bytes()).count(), 3);
}

#[tokio::test]
async fn token_is_asked_for_before_each_request() {
    let resource = Resource::start().await;
    let azure = Azure::new(resource.url(), DEPLOYMENT);
    let asked = AtomicUsize::new(0);
    let token = Token::callback(move || {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        async move { Ok(format!("{TOKEN}{number}")) }
    });
    let model = Connection::with_tokens(token, move |token| azure.clone().with_token(token)).chat(options()).unwrap();

    for _ in 0..2 {
        ask(&model).await.unwrap();
    }

    let requests = resource.requests().await;
    let sent = requests.iter().map(|sent| sent.headers["authorization"].to_str().unwrap());
    assert_eq!(sent.collect::<Vec<_>>(), ["Bearer entra-0", "Bearer entra-1"]);
}

#[tokio::test]
async fn refusals_have_their_kind_and_advice() {
    let resource = Resource::start().await;
    let host = resource.url();
    let azure = Azure::new(resource.url(), DEPLOYMENT);
    let mut shown = Vec::new();
    for (name, azure, model) in [
        ("no key", azure.clone(), DEPLOYMENT),
        ("wrong key", azure.clone().with_api_key("hunter2hunter2"), DEPLOYMENT),
        ("expired token", azure.clone().with_token("hunter2hunter2"), DEPLOYMENT),
        ("unknown deployment", azure.clone().with_api_key(KEY), "shelf"),
        ("unknown version", azure.clone().with_api_key(KEY).with_api_version("2020-01-01"), DEPLOYMENT),
    ] {
        let mut options = options();
        options.model = model.to_owned();
        let error = ask(&Connection::new(azure).chat(options).unwrap()).await.unwrap_err();
        shown.push(format!("{name}: {:?} {}\n", error.kind, error.message.replace(&host, "http://host")));
    }
    insta::assert_snapshot!(shown.concat(), @r"
    no key: Auth Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource. (http://host/openai/v1/chat/completions; no API key was sent)
    wrong key: Auth Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.
    expired token: Auth Unauthorized. Access token is missing, invalid, audience is incorrect (https://cognitiveservices.azure.com), or have expired.
    unknown deployment: NotFound The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again. (http://host/openai/v1/chat/completions; check the name of the deployment, the API version, and that the endpoint is the address of its resource, such as https://NAME.openai.azure.com)
    unknown version: NotFound Resource not found (http://host/openai/deployments/desk/chat/completions; check the name of the deployment, the API version, and that the endpoint is the address of its resource, such as https://NAME.openai.azure.com)
    ");
}

#[tokio::test]
async fn failures_are_classified() {
    let resource = Resource::start().await;
    let model = Connection::new(Azure::new(resource.url(), DEPLOYMENT).with_api_key(KEY)).chat(options()).unwrap();
    let busy = "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded token rate limit \
                of your current OpenAI S0 pricing tier. Please retry after 7 seconds. Please go here: https://aka.ms/oai/quotaincrease \
                if you would like to further increase the default rate limit.";
    let filtered = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify \
                    your prompt and retry.";
    let long =
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.";
    for (status, code, message, kind) in [
        (429, "429", busy, ModelErrorKind::RateLimited),
        (400, "content_filter", filtered, ModelErrorKind::Filtered),
        (400, "context_length_exceeded", long, ModelErrorKind::ContextTooLong),
        (
            403,
            "AuthenticationTypeDisabled",
            "Key based authentication is disabled for this resource.",
            ModelErrorKind::Auth,
        ),
        (500, "InternalServerError", "Backend returned unexpected response.", ModelErrorKind::Server),
    ] {
        let error =
            json!({"error": {"code": code, "message": message, "status": status, "innererror": {"code": "Inner"}}});
        let failure =
            ResponseTemplate::new(status).insert_header("retry-after", "7").insert_header("apim-request-id", "r1");
        resource.fail(failure.set_body_json(error));

        let error = ask(&model).await.unwrap_err();

        assert_eq!((error.kind, error.provider_code.as_deref(), error.status), (kind, Some(code), Some(status)));
        assert_eq!((error.retry_after.map(|wait| wait.as_secs()), error.request_id.as_deref()), (Some(7), Some("r1")));
    }
}

#[tokio::test]
async fn azure_config_of_async_openai_reaches_chat_and_is_refused_for_responses() {
    let resource = Resource::start().await;
    let config = AzureConfig::new()
        .with_api_base(resource.url())
        .with_api_key(KEY)
        .with_deployment_id(DEPLOYMENT)
        .with_api_version("2024-10-21");
    let connection = Connection::new(config);

    assert_eq!(ask(&connection.chat(options()).unwrap()).await.unwrap().text(), "Hello.");
    let error = connection.responses(options()).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::BadRequest);
    assert!(error.message.contains("use `positronic_async_openai::Azure`"), "{error}");
}

#[tokio::test]
async fn async_openai_s_client_can_use_the_configuration() {
    let resource = Resource::start().await;
    let azure = Azure::new(resource.url(), DEPLOYMENT).with_api_key(KEY).with_api_version("2024-10-21");
    let client = async_openai::Client::with_config(azure);

    assert_eq!(client.config().headers()["api-key"], KEY);
    assert_eq!(ask(&Connection::of_client(&client).chat(options()).unwrap()).await.unwrap().text(), "Hello.");
}
