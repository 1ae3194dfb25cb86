//! A picture from the command line, in the request of each provider and in the timeline.

use positronic_core::prelude::*;
use positronic_model_http::data_url;
use positronic_model_testing::rules::{anthropic, chat, gemini, responses};
use positronic_model_testing::wire_forms::{self, Encode, Reply};
use positronic_model_testing::{Provider, Rules};

use super::desk::Desk;
use crate::app::{Project, Settings};
use crate::commands::tests::call_with;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// A model's string, the variable with the base URL of its provider, and the provider's rules and form of answers.
type Api = (&'static str, &'static str, Rules, Encode);

#[test]
fn picture_goes_from_the_command_line_to_each_provider_and_into_the_timeline() {
    let apis: [Api; 4] = [
        ("openai/gpt-5-mini", "OPENAI_BASE_URL", chat::check, wire_forms::chat),
        ("openai-responses/gpt-5-mini", "OPENAI_BASE_URL", responses::check, wire_forms::responses),
        ("anthropic/claude-haiku-5-5", "ANTHROPIC_BASE_URL", anthropic::check, wire_forms::messages),
        ("gemini/gemini-3.8-flash", "GEMINI_BASE_URL", gemini::check, wire_forms::generate_content),
    ];
    let data = data_url("image/png", PNG);
    let encoded = data.split_once(',').unwrap().1;
    let viewer = brain("Viewer").r#loop("Look", |cx| cx.system("You look."));
    let project = Project::new().brain(viewer);
    for (model, variable, rules, encode) in apis {
        let desk = Desk::new();
        let picture = desk.path("bees.png");
        std::fs::write(&picture, PNG).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let answer = encode(&Reply { text: "A bee.".to_owned(), calls: Vec::new() }, 0);
        let server = runtime.block_on(Provider::start(rules, vec![answer]));
        let url = if variable == "OPENAI_BASE_URL" { format!("{}/v1", server.url()) } else { server.url() };
        let settings = Settings::from_variables(|name| (name == variable).then(|| url.clone().into()));
        let store = desk.path("runs.db");
        let run = ["run", "viewer", "--id", "look", "--model", model, "--attach", &picture, "--store", &store];

        let ran = call_with(&project, &run, settings);

        assert_eq!(ran.code, 0, "{model}: {}", ran.err);
        assert!(server.bodies()[0].to_string().contains(encoded), "{model}: {}", server.bodies()[0]);
        let report = call_with(&project, &["report", "look", "--json", "--store", &store], Settings::default());
        let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
        let nodes = report["timeline"]["nodes"].as_array().unwrap();
        let files: Vec<_> = nodes.iter().filter_map(|node| node["kind"]["files"].as_array()).flatten().collect();
        assert_eq!(files.iter().map(|file| &file["name"]).collect::<Vec<_>>(), ["bees.png"], "{model}");
    }
}
