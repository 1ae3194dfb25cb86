//! Patterns as guards of a loop: what they find, what passes, and what the log, the model and people get.

use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, Part, Seq, ToolResult};
use positronic_core::testing::Test;
use positronic_plugins::Patterns;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Returns the answer that people get of a text.
async fn answered(patterns: &Patterns, text: &str) -> String {
    let patterns = patterns.clone();
    let desk = brain("Desk")
        .r#loop("Chat", move |cx| cx.system("Help.").input("Hello").guard_answer("No secrets", patterns.answers()));
    let model = ScriptedModel::from_fn({
        let text = text.to_owned();
        move |_| Reply::text(&text)
    });
    let run = Test::new(model).start(desk.build(), ()).await;
    run.result().await.unwrap();
    run.answer().unwrap()
}

/// Asserts that the only match in each text is the part in brackets, and that it is replaced.
async fn finds(patterns: Patterns, name: &str, texts: &[&str]) {
    let patterns = patterns.redact();
    for text in texts {
        let (before, rest) = text.split_once('«').unwrap();
        let (_, after) = rest.split_once('»').unwrap();
        let plain = text.replace(['«', '»'], "");
        assert_eq!(answered(&patterns, &plain).await, format!("{before}[{name}]{after}"), "{text}");
    }
}

async fn passes(patterns: Patterns, texts: &[&str]) {
    let patterns = patterns.redact();
    for text in texts {
        assert_eq!(&answered(&patterns, text).await, text);
    }
}

#[tokio::test(start_paused = true)]
async fn test_numbers_of_the_card_networks_are_found() {
    finds(
        Patterns::new().cards(),
        "card number",
        &[
            "«4111 1111 1111 1111»",
            "Visa «4242424242424242», thank you.",
            "«5555-5555-5555-4444»",
            "«2223003122003222»",
            "«3782 822463 10005»",
            "«6011111111111117»",
            "«30569309025904»",
            "«3530111333300000»",
            "«6200000000000005»",
            "Valid to: «4111 1111 1111 1111» 12 27, code 123",
            "7 «4111 1111 1111 1111»",
            "卡号«4111111111111111»。",
            "«4111\u{a0}1111\u{a0}1111\u{a0}1111»",
            "card_«4111111111111111»",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn numbers_that_only_resemble_cards_pass() {
    passes(
        Patterns::new().cards(),
        &[
            "The last digit is wrong: 4111 1111 1111 1112.",
            "Two digits are swapped: 4242 4242 4242 2442.",
            "In no range of a network: 1111 1111 1111 1117.",
            "Too long: 41111111111111110000000.",
            "A fraction: 0.4111111111111111.",
            "Of a longer word: a4111111111111111.",
            "4111  1111  1111  1111 has two spaces.",
            "An article: 4006381333931.",
            "On 2026-11-27 20:15:39, order 7, call +49 30 901820.",
            "550e8400-e29b-41d4-a716-446655440000",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn examples_of_the_iban_registry_are_found() {
    finds(
        Patterns::new().ibans(),
        "IBAN",
        &[
            "Pay to «DE89 3704 0044 0532 0130 00» TODAY.",
            "«DE89370400440532013000»",
            "«de89 3704 0044 0532 0130 00»",
            "«GB29 NWBK 6016 1331 9268 19»",
            "«FR14 2004 1010 0505 0001 3M02 606»",
            "«NO93 8601 1117 947»",
            "«BE68 5390 0754 7034»",
            "«NL91 ABNA 0417 1643 00»",
            "«CH93 0076 2011 6238 5295 7»",
            "«MT84 MALT 0110 0001 2345 MTLC AST0 01S»",
            "«LC55HEMM000100010012001200023015»",
            "«SC18SSCB11010000000000001497USD»",
            "AT61 «DE89370400440532013000»",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn texts_that_only_resemble_ibans_pass() {
    passes(
        Patterns::new().ibans(),
        &[
            "A digit is wrong: DE89 3704 0044 0532 0130 01.",
            "Too short: DE89 3704 0044 0532 0130.",
            "Too long: DE893704004405320130007.",
            "No country: ZZ89 3704 0044 0532 0130 00.",
            "Of a longer word: XDE89370400440532013000.",
            "Invoice DE12 of 2026, chapter AB34.",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn addresses_are_found_and_versions_and_names_pass() {
    let found = [
        "Write to «ann@example.com».",
        "<«ann.lee+shop@mail.example.co.uk»>",
        "'«o'hara@example.org»'",
        "mailto:«ann@example.com»?subject=Hello",
        "«jürgen@müller.example»",
        "«ann@xn--mller-kva.example»",
    ];
    finds(Patterns::new().emails(), "e-mail address", &found).await;
    let pass = ["@ann", "ann@localhost", "tool@1.2.3", "a @ example.com", "ann@example", "10 pieces @ 3.50"];
    passes(Patterns::new().emails(), &pass).await;
}

#[tokio::test(start_paused = true)]
async fn keys_of_known_forms_are_found_and_names_of_keys_pass() {
    // Written in parts, so that scanners of repositories find no keys here.
    let part = |length: usize| "a1B2c3D4".repeat(length / 8 + 1)[..length].to_owned();
    let keys = [
        // The example of the documentation of AWS.
        ["AKIA", "IOSFODNN7EXAMPLE"].concat(),
        format!("ghp_{}", part(36)),
        format!("github_pat_{}_{}", part(22), part(59)),
        format!("glpat-{}", part(20)),
        format!("AIza{}", part(35)),
        format!("sk-ant-api03-{}AA", part(93)),
        format!("sk-proj-{}T3BlbkFJ{}", part(74), part(74)),
        format!("sk-{}T3BlbkFJ{}", part(20), part(20)),
        format!("sk_live_{}", part(24)),
        format!("xoxb-123456789012-1234567890123-{}", part(24)),
        format!("xapp-1-A0123456789-1234567890123-{}", part(64)),
        format!("-----BEGIN {0}-----\n{1}\n-----END {0}-----", "RSA PRIVATE KEY", part(64)),
        format!("-----BEGIN {}-----\n{}", "PRIVATE KEY", part(64)),
    ];
    let texts: Vec<_> = keys.iter().map(|key| format!("It is «{key}»")).collect();
    finds(Patterns::new().api_keys(), "API key", &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
    passes(
        Patterns::new().api_keys(),
        &[
            "Set OPENAI_API_KEY to a key that begins with sk-proj-.",
            "ghp_short",
            "AKIA is a prefix.",
            "task-force-of-the-ministry-of-internal-affairs",
            "-----BEGIN CERTIFICATE-----",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn own_patterns_stand_beside_the_others_and_the_longer_of_two_matches_is_replaced() {
    let patterns =
        Patterns::new().pattern("order", "ORD-[0-9]+").pattern("old order", "ORD-[0-9]+-OLD").cards().redact();
    let text = "ORD-1, ORD-2-OLD, 4111111111111111";
    assert_eq!(answered(&patterns, text).await, "[order], [old order], [card number]");
}

#[test]
#[should_panic(expected = "the pattern `order` is invalid")]
fn invalid_expression_panics_where_it_is_written() {
    _ = Patterns::new().pattern("order", "ORD-(");
}

#[test]
#[should_panic(expected = "the pattern `order` matches the empty text")]
fn expression_that_matches_every_text_panics_where_it_is_written() {
    _ = Patterns::new().pattern("order", "[0-9]*");
}

#[tokio::test(start_paused = true)]
async fn refused_answer_names_the_pattern_and_not_the_match() {
    let model = Arc::new(ScriptedModel::new([
        Reply::text("It is 4111 1111 1111 1111 of DE89 3704 0044 0532 0130 00."),
        Reply::text("I cannot say."),
    ]));
    let desk = brain("Desk").r#loop("Chat", |cx| {
        let patterns = Patterns::new().cards().ibans();
        cx.system("Help.").input("Which card?").guard_answer("No secrets", patterns.answers())
    });
    let run = Test::new(Arc::clone(&model)).start(desk.build(), ()).await;
    run.result().await.unwrap();
    assert_eq!(run.answer().as_deref(), Some("I cannot say."));
    let log = run.events(Seq(0)).await.unwrap();
    let reason = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopAnswerRefused { message, .. } => Some(message.as_str()),
        _ => None,
    });
    assert_eq!(reason, Some("it contains what is not allowed: `card number`, `IBAN`"));
}

#[tokio::test(start_paused = true)]
async fn reasoning_with_a_match_is_dropped_from_a_redacted_answer() {
    let patterns = Patterns::new().cards().redact();
    let desk = brain("Desk")
        .r#loop("Chat", move |cx| cx.system("Help.").input("Hello").guard_answer("No secrets", patterns.answers()));
    let model = ScriptedModel::new([Reply::text("It ends in 1111.").and_reasoning("It is 4111 1111 1111 1111.")]);
    let run = Test::new(model).start(desk.build(), ()).await;
    run.result().await.unwrap();
    assert_eq!(run.answer().as_deref(), Some("It ends in 1111."));
    let log = run.events(Seq(0)).await.unwrap();
    let parts = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopModelResult { parts, .. } => Some(parts.to_vec()),
        _ => None,
    });
    assert!(parts.unwrap().iter().all(|part| matches!(part, Part::Text { .. })));
}

#[derive(Deserialize, JsonSchema)]
struct Transfer {
    to: String,
}

/// Pays to accounts, and finds customers.
fn bank(patterns: &Patterns, found: Value) -> Brain<(), Vec<String>> {
    let patterns = patterns.clone();
    brain("Bank")
        .state(Vec::new())
        .r#loop("Pay", move |cx| {
            let found = found.clone();
            cx.system("Pay.")
                .input("Pay.")
                .tool("pay", |t| {
                    t.description("Pays").execute(async |Transfer { to }, cx| {
                        cx.update(|paid: &mut Vec<String>| paid.push(to));
                        Ok("paid")
                    })
                })
                .tool("find", move |t| {
                    t.description("Finds a customer").read_only().execute(move |_: NoArgs, _| {
                        let found = found.clone();
                        async move { Ok(found) }
                    })
                })
                .guard_call("No accounts", patterns.calls())
                .guard_result("No secrets", patterns.results())
        })
        .build()
}

async fn results(model: ScriptedModel, brain: Brain<(), Vec<String>>) -> (Vec<String>, Vec<ToolResult>) {
    let run = Test::new(model).start(brain, ()).await;
    let state = run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let results = log.iter().filter_map(|event| match &event.kind {
        EventKind::LoopToolResult { result, .. } => Some(result.clone()),
        _ => None,
    });
    (state, results.collect())
}

#[tokio::test(start_paused = true)]
async fn call_with_a_match_is_refused_even_by_patterns_that_redact() {
    let model = ScriptedModel::new([
        Reply::call("pay", json!({ "to": "DE89 3704 0044 0532 0130 00" })),
        Reply::call("pay", json!({ "to": "ann" })),
        Reply::text("Done."),
    ]);
    let (paid, results) = results(model, bank(&Patterns::new().ibans().redact(), json!(null))).await;
    assert_eq!(paid, ["ann"]);
    let refused = "the guard `No accounts` refused the call: it contains what is not allowed: `IBAN`";
    assert_eq!(results, [ToolResult::error(refused), ToolResult::success("paid")]);
}

#[tokio::test(start_paused = true)]
async fn texts_names_and_numbers_of_a_result_are_redacted_and_the_rest_stays() {
    let found = json!({
        "name": "Ann", "age": 41, "cards": ["4111111111111111", 4111111111111111_u64, 4111111111111112_u64, null],
        "by address": { "ann@example.com": true, "lee@example.com": false, "note": 0.4111111111111111 },
    });
    let patterns = Patterns::new().cards().emails();
    let model = || ScriptedModel::new([Reply::call("find", json!({})), Reply::text("Done.")]);
    let (_, redacted) = results(model(), bank(&patterns.clone().redact(), found.clone())).await;
    assert_eq!(
        redacted,
        [ToolResult::success(json!({
            "name": "Ann", "age": 41, "cards": ["[card number]", "[card number]", 4111111111111112_u64, null],
            "by address": { "[e-mail address]": true, "[e-mail address]+": false, "note": 0.4111111111111111 },
        }))]
    );
    let (_, refused) = results(model(), bank(&patterns, found)).await;
    let ToolResult::Error { message } = &refused[0] else { panic!("{refused:?}") };
    assert!(message.contains("`e-mail address`") && !message.contains("4111"), "{message}");
}
