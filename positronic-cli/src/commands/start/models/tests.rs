//! `positronic models`, with servers that play answers.

use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::Tier;
use positronic_model_testing::{Provider, ResponseTemplate};
use serde_json::{Value, json};

use crate::app::{Project, Settings};
use crate::commands::tests::{Outcome, call_with};

fn call(project: &Project, variables: &[(&str, &str)], arguments: &[&str]) -> Outcome {
    let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
    call_with(project, &[&["models"], arguments].concat(), Settings::from_variables(value))
}

fn models(variables: &[(&str, &str)], arguments: &[&str]) -> Outcome {
    call(&Project::new(), variables, arguments)
}

/// Parses lines of JSON.
fn lines(outcome: &Outcome) -> Vec<Value> {
    outcome.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs a test with a server that gives these answers, which runs beside the command's own runtime.
fn with_server<T>(answers: Vec<ResponseTemplate>, test: impl FnOnce(&str) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(Provider::with(|_| Ok(()), answers));
    test(&server.url())
}

fn stream(events: &[Value]) -> ResponseTemplate {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

/// An answer of Anthropic with one block.
fn claude(block: &Value, stop: &str) -> ResponseTemplate {
    let usage = json!({"input_tokens": 1000, "output_tokens": 20});
    stream(&[
        json!({"type": "message_start", "message": {"model": "claude-haiku-5-5", "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}}),
    ])
}

fn calls() -> ResponseTemplate {
    claude(&json!({"type": "tool_use", "id": "toolu_1", "name": "ready", "input": {}}), "tool_use")
}

fn says(text: &str) -> ResponseTemplate {
    claude(&json!({"type": "text", "text": text}), "end_turn")
}

#[test]
fn list_shows_keys_urls_defaults_and_tiers() {
    let variables = [
        ("OPENAI_BASE_URL", "https://ann:hunter2@groq.example/openai/v1?key=hunter2"),
        ("OPENAI_MODEL", "openai/gpt-oss-120b"),
        ("ANTHROPIC_API_KEY", "hunter2"),
        ("POSITRONIC_MODEL", "ollama/qwen3:8b"),
        ("POSITRONIC_HIGH_MODEL", "anthropic/claude-opus-5-5"),
    ];

    let table = models(&variables, &[]);

    insta::assert_snapshot!(table.out, @r"
    PROVIDER   KEY                DEFAULT MODEL               BASE URL                        USED BY
    openai     not set            openai/openai/gpt-oss-120b  https://groq.example/openai/v1
    anthropic  ANTHROPIC_API_KEY  anthropic/claude-haiku-5-5  https://api.anthropic.com/v1    high: claude-opus-5-5
    ollama     not needed                                     http://127.0.0.1:11434/v1       normal: qwen3:8b
    ");
    insta::assert_snapshot!(table.err, @"not configured: gemini (GEMINI_API_KEY), openrouter (OPENROUTER_API_KEY), azure (AZURE_OPENAI_API_KEY)");
    let json = models(&variables, &["--json"]);
    insta::assert_snapshot!(json.out, @r#"
    {"base_url":"https://groq.example/openai/v1","default_model":"openai/openai/gpt-oss-120b","key_variable":null,"provider":"openai","tiers":{},"url_variable":"OPENAI_BASE_URL"}
    {"base_url":"https://api.anthropic.com/v1","default_model":"anthropic/claude-haiku-5-5","key_variable":"ANTHROPIC_API_KEY","provider":"anthropic","tiers":{"high":"claude-opus-5-5"},"url_variable":null}
    {"base_url":"http://127.0.0.1:11434/v1","default_model":null,"key_variable":null,"provider":"ollama","tiers":{"normal":"qwen3:8b"},"url_variable":null}
    "#);
    assert_eq!((table.code, json.code), (0, 0));
    assert!(![&table.out, &table.err, &json.out, &json.err].iter().any(|text| text.contains("hunter2")));
}

#[test]
fn list_says_what_to_set_and_why_a_tier_has_no_model() {
    insta::assert_snapshot!(models(&[], &[]).err, @"no provider is configured: set the key of a provider, such as OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or OPENAI_BASE_URL for another compatible endpoint");
    let two = models(&[("GEMINI_API_KEY", "k"), ("OPENAI_API_KEY", "k")], &[]);
    insta::assert_snapshot!(two.err, @r"
    not configured: anthropic (ANTHROPIC_API_KEY), openrouter (OPENROUTER_API_KEY), azure (AZURE_OPENAI_API_KEY)
    the normal tier has no model: cannot choose a model: several providers are configured (OPENAI_API_KEY, GEMINI_API_KEY); name the model, such as anthropic/claude-haiku-5-5; set it with --model or POSITRONIC_MODEL
    ");
    let misspelt = models(&[("GEMINI_API_KEY", "k"), ("POSITRONIC_MODEL", "gemni/g")], &["--json"]);
    insta::assert_snapshot!(misspelt.err, @"the normal tier has no model: unknown provider `gemni` in the model `gemni/g`; did you mean `gemini/g`?; known providers: anthropic, azure, azure-responses, gemini, openai, openai-responses, ollama, openrouter; set OPENAI_BASE_URL for a model of another OpenAI-compatible endpoint");
    assert_eq!((two.code, misspelt.code), (0, 0));
}

#[test]
fn list_shows_the_projects_own_model() {
    let project = Project::new().model(Tier::Normal, Arc::new(ScriptedModel::new([])));

    let listed = lines(&call(&project, &[], &["--json"]));

    assert_eq!(listed[0]["provider"], "scripted");
    assert_eq!(listed[0]["tiers"], json!({"normal": "scripted"}));
}

#[test]
fn check_asks_for_a_call_and_a_word_and_prints_tokens_and_cost() {
    let answers = || vec![calls(), says("ready")];
    let checked = with_server(answers(), |url| models(&[("ANTHROPIC_BASE_URL", url)], &["check", "--json"]));

    assert_eq!(checked.code, 0, "{}{}", checked.out, checked.err);
    let mut found = lines(&checked);
    assert!(found[0]["milliseconds"].take().is_u64());
    insta::assert_snapshot!(Value::from(found), @r#"[{"cost":{"amount":"0.00022","as_of":"2026-03-21","currency":"USD"},"error":null,"milliseconds":null,"model":"anthropic/claude-haiku-5-5","ok":true,"usage":{"input":2000,"output":40}}]"#);
    let table =
        with_server(answers(), |url| models(&[("ANTHROPIC_BASE_URL", url)], &["check", "anthropic/claude-latest"]));
    let row = table.out.lines().last().unwrap();
    assert!(row.starts_with("anthropic/claude-latest  ok ") && row.ends_with(" 2,040   0.00022 USD"), "{row}");
}

#[test]
fn failed_check_names_its_reason_and_has_its_own_exit_code() {
    let no_key = ResponseTemplate::new(401).set_body_json(
        json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
    );
    for (answer, reason) in [
        (no_key, "haiku-5-5: invalid x-api-key; check ANTHROPIC_API_KEY: it must be a key of this endpoint"),
        (says("ready"), "it answered without the tool call"),
    ] {
        let variables =
            |url: &str| [("ANTHROPIC_BASE_URL", url.to_owned()), ("ANTHROPIC_API_KEY", "sk-ant-1".to_owned())];
        let checked = with_server(vec![answer], |url| {
            let variables = variables(url);
            let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
            models(&variables, &["check"])
        });

        assert_eq!(checked.code, 5, "{}", checked.err);
        assert!(checked.out.contains("anthropic/claude-haiku-5-5  failed"), "{}", checked.out);
        assert!(
            checked.err.starts_with("anthropic/claude-haiku-5-5: ") && checked.err.contains(reason),
            "{}",
            checked.err
        );
    }
    let misspelt = [("POSITRONIC_HIGH_MODEL", "gemni/g"), ("GEMINI_BASE_URL", "http://127.0.0.1:1")];
    let checked = lines(&models(&misspelt, &["check", "--json"]));
    let failed: Vec<_> = checked.iter().map(|model| (&model["model"], &model["ok"])).collect();
    assert_eq!(json!(failed), json!([["gemini/gemini-3.8-flash", false], ["the high tier", false]]));
    let unset = models(&[], &["check", "gemini/gemini-2.5-pro", "--json"]);
    assert_eq!(unset.code, 5);
    insta::assert_snapshot!(unset.out, @r#"{"cost":null,"error":"cannot use the model `gemini/gemini-2.5-pro`: GEMINI_API_KEY or GOOGLE_API_KEY is not set; set GEMINI_API_KEY","milliseconds":0,"model":"gemini/gemini-2.5-pro","ok":false,"usage":{}}"#);
    insta::assert_snapshot!(models(&[], &["check"]).err, @r"
    error: no model is configured
      set the key of a provider, such as OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or OPENAI_BASE_URL for another compatible endpoint
      or name a model: models check MODEL
    ");
}

#[test]
fn check_includes_the_projects_own_models() {
    let replies = [Reply::call("ready", json!({})), Reply::text("ready")];
    let project = Project::new().model(Tier::Normal, Arc::new(ScriptedModel::new(replies)));

    let checked = lines(&call(&project, &[], &["check", "--json"]));

    assert_eq!((&checked[0]["model"], &checked[0]["ok"]), (&json!("scripted/scripted"), &json!(true)));
    assert_eq!(checked[0]["cost"], Value::Null, "an unknown price stays unknown");
}
