//! The router's rules select a model, and the log names it.

use positronic_core::model::Model as _;
use positronic_core::model::scripted::Reply;
use positronic_core::model::wrap::{Fallback, Router, estimate_tokens};
use positronic_core::prelude::*;
use positronic_core::record::{ActionFormat, ModelErrorKind};
use positronic_core::testing::Test;
use serde_json::json;

use super::{Speaker, asker, fails, says, ways};

#[tokio::test(start_paused = true)]
async fn request_goes_to_the_first_matching_rule_else_to_the_default() {
    let look = || Reply::call("look", json!({}));
    let model = Router::new(Speaker::new("a/default", [look()]))
        .when("long", Speaker::new("b/long", [says("Much.")]), |request| estimate_tokens(request) > 1000)
        .when("never", Speaker::new("c/never", []), |request| estimate_tokens(request) > 1000);
    let brain = brain("Reader").r#loop("Read", |cx| {
        cx.system("Read.")
            .input("What does it say?")
            .tool("look", |t| t.description("Looks").execute(async |_: NoArgs, _| Ok("so ".repeat(2000))))
    });

    let story = Test::new(model).run(brain, ()).await;

    assert_eq!(ways(&story), ["a/default", "rule long → b/long"]);
}

#[tokio::test(start_paused = true)]
async fn rule_and_fallback_are_both_logged_in_order() {
    let cheap = Fallback::new(Speaker::new("b/cheap", [fails(ModelErrorKind::Timeout)]))
        .then(Speaker::new("c/spare", [says("Because.")]));
    let model =
        Router::new(Speaker::new("a/default", [])).when("no tools", cheap, |request| request.tools.tools().is_empty());

    let story = Test::new(model).run(asker(), ()).await;

    assert_eq!(ways(&story), ["rule no tools → b/cheap Timeout → c/spare"]);
}

#[test]
fn preview_equals_the_request_of_the_selected_model() {
    let form = |form| Speaker::new("a/one", []).deciding(form);
    let router = |one, other| Router::new(form(one)).when("all", form(other), |_| true).action_format();

    assert_eq!(router(ActionFormat::Schema, ActionFormat::Schema), ActionFormat::Schema);
    assert_eq!(router(ActionFormat::Plain, ActionFormat::Schema), ActionFormat::Plain);
}
