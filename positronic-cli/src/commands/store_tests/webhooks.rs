//! Webhooks: their payloads, duplicates and refusals.

use positronic_core::model::scripted::Reply;
use serde_json::{Value, json};

use super::desk::{Desk, begun, scripted};
use crate::app::Project;
use crate::commands::tests::{call_given, without_times};

/// Begins a run that waits for a webhook.
fn begun_to_wait(desk: &Desk, id: &str) {
    let letter = Reply::call("write", json!({"text": "Done."}));
    let outcome = desk.call(&scripted([letter]), &["run", "help desk", "-o", "customer=ada", "--id", id]);
    assert_eq!(outcome.code, 3, "{}", outcome.err);
}

const POST: [&str; 4] = ["--webhook", "post", "--identifier", "ada"];

#[test]
fn duplicate_webhook_is_reported_and_can_be_discarded() {
    let desk = Desk::new();
    begun_to_wait(&desk, "ticket-1");
    let send = |more: &[&str]| desk.call(&Project::new(), &[&["send"][..], &POST, more].concat());

    assert_eq!(send(&["--payload", r#"{"stars": 5}"#]).out, "delivered the webhook post ada (event 11 of ticket-1)\n");
    insta::assert_snapshot!(send(&["--payload", r#"{"stars": 5}"#, "--id", "again"]).out, @"no call waits for post ada: event 11 of ticket-1 already received one. This webhook is stored for 7d, and answers the next call that waits. Delete it with: desk send --discard again");
    let listed = without_times(&desk.call(&Project::new(), &["inbox", "--mail"]).out);
    insta::assert_snapshot!(listed, @r"
    post ada, for 0s; 7d left
      with stars=5
        desk send --discard again
    ");
    assert_eq!(desk.json(&["inbox", "--mail"])["payload"], json!({"stars": 5}));

    assert_eq!(desk.call(&Project::new(), &["send", "--discard", "again"]).out, "deleted the webhook post ada\n");
    assert_eq!(desk.json(&["inbox", "--mail"]), Value::Null);
    assert!(desk.refused(&["send", "--discard", "again"]).starts_with("7\nerror: no stored webhook `again`\n"));
}

#[test]
fn repeated_webhook_id_with_another_payload_is_refused() {
    let desk = Desk::new();
    let send = |run: &[&'static str], payload: &str| {
        let outcome =
            desk.call(&Project::new(), &[&["send"], run, &POST, &["--id", "x", "--payload", payload]].concat());
        (outcome.code, outcome.out + &outcome.err)
    };
    let other = "error: the signal id `x` was already used with other content\n";

    assert_eq!(send(&[], r#"{"stars": 5}"#).0, 0);
    let (code, told) = send(&[], r#"{"stars": 5}"#);
    assert!(code == 0 && told.starts_with("already accepted: no call waits for post ada yet"), "{told}");
    let (code, told) = send(&[], r#"{"stars": 1}"#);
    assert!(code == 7 && told.starts_with(other), "{told}");

    // It is delivered as soon as a call waits.
    let letter = Reply::call("write", json!({"text": "Done."}));
    desk.call(&scripted([letter]), &["run", "help desk", "-o", "customer=ada", "--id", "ticket-1"]);
    let (code, told) = send(&[], r#"{"stars": 5}"#);
    assert!(code == 0 && told.starts_with("already accepted: delivered the webhook post ada (event "), "{told}");
    for run in [&[][..], &["ticket-1"]] {
        let (code, told) = send(run, r#"{"stars": 1}"#);
        assert!(code == 7 && told.starts_with(other), "{told}");
    }
    let (code, told) = send(&["ticket-1"], r#"{"stars": 5}"#);
    assert!(code == 0 && told.starts_with("already accepted: delivered the webhook post ada (event "), "{told}");
}

#[test]
fn mismatching_signal_is_refused_with_the_commands_that_fit() {
    let desk = Desk::new();
    begun_to_wait(&desk, "ticket-1");
    begun(&desk, "ticket-2");

    insta::assert_snapshot!(desk.refused(&["send", "ticket-1", "--reply", "Chat/0.0", "{}"]), @r#"
    7
    error: the call `Chat/0.0` waits for the webhook `post`, not for a reply
      nothing was changed; `desk show ticket-1` shows the run
      desk send ticket-1 --webhook post --identifier ada --payload '{"stars":1}'
    "#);
    let approved = desk.refused(&["approve", "ticket-1", "Chat/0.0"]);
    assert!(approved.contains("waits for the webhook `post`, not for a decision\n"), "{approved}");
    let replied = desk.refused(&["send", "ticket-2", "--reply", "Chat/0.0", "{}"]);
    assert!(replied.contains("the call `Chat/0.0` waits for a decision, not for a reply\n"), "{replied}");
    assert!(replied.contains("desk approve ticket-2 Chat/0.0\n"), "{replied}");
    let misfit = desk.refused(&["approve", "ticket-2", "--args", r#"{"amount": "much"}"#]);
    assert!(misfit.contains("the edited arguments of `Chat/0.0` are invalid: "), "{misfit}");
}

#[test]
fn payload_from_a_file_or_stdin_is_not_echoed_in_full() {
    let desk = Desk::new();
    begun_to_wait(&desk, "ticket-1");
    begun(&desk, "ticket-2");
    std::fs::write(desk.path("args.json"), r#"{"amount": 60}"#).unwrap();

    let file = format!("@{}", desk.path("args.json"));
    assert_eq!(
        desk.json(&["approve", "ticket-2", "--args", &file])["accepted"][0]["signal"]["arguments"]["amount"],
        60
    );
    let send = |payload: &str| {
        call_given(&Project::new(), &[&["send"], &POST[..], &["--payload", "-"]].concat(), payload, desk.settings())
    };
    let wrong = send(&format!("{{\"stars\": {}", "x".repeat(100_000)));
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.starts_with("error: --payload: invalid JSON at `xxxx") && wrong.err.len() < 300, "{}", wrong.err);
    assert_eq!(send("{\"stars\": 4}").code, 0);
    assert_eq!(
        desk.call(&Project::new(), &[&["send"], &POST[..]].concat()).code,
        2,
        "nothing is sent that was not said"
    );
}

#[test]
fn webhook_that_starts_runs_starts_one_and_a_refusal_is_listed() {
    use positronic_core::prelude::*;
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    struct Order {
        id: String,
    }

    let desk = Desk::new();
    let project = || {
        let review = || brain("Review").options::<String>().step("Review", async |cx| Ok(cx.options.len()));
        scripted([]).brain(review()).start_on(webhook("orders"), review(), |order: Order| match order.id.as_str() {
            "T-0" => Err(Error::new("no such order")),
            _ => Ok(order.id),
        })
    };
    let send = |order: &str, id: &str| {
        let payload = json!({ "id": order }).to_string();
        let words = ["send", "--webhook", "orders", "--identifier", "T-7", "--id", id, "--payload", &payload];
        desk.call(&project(), &words)
    };

    let started = send("T-7", "first");
    assert_eq!(started.out, "started the run first by the webhook orders. Work on it with: desk work first\n");
    assert_eq!(send("T-7", "first").out, format!("already accepted: {}", started.out));
    assert_eq!(desk.call(&project(), &["work", "first"]).code, 0);
    let shown = desk.call(&project(), &["show", "first"]).out;
    assert!(shown.contains("the webhook orders has started it: first"), "{shown}");
    let brain = desk.call(&project(), &["show", "review"]).out;
    assert!(brain.contains("\nStarted by the webhook orders.\n"), "{brain}");

    let refused = send("T-0", "second");
    assert_eq!(refused.code, 7);
    assert!(refused.err.contains("the webhook `orders` starts no run of `Review`: no such order"), "{}", refused.err);
    let listed = desk.call(&Project::new(), &["inbox", "--mail"]).out;
    assert!(listed.contains("\n  started no run: no such order\n"), "{listed}");
}

#[test]
fn show_lists_the_webhooks_for_which_the_stages_of_a_brain_wait() {
    use positronic_core::prelude::*;
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    struct Payment {
        cents: u64,
    }

    let order = brain("Order")
        .step("Take", async |_| Ok("order-7".to_owned()))
        .wait(
            "Payment",
            |w| {
                let refused = w.on(webhook::<Payment>("refused"), String::clone).to(|_| 0);
                w.on(webhook::<Payment>("paid"), String::clone).to(|paid| paid.cents).or(refused)
            },
            |_, cents| cents,
        )
        .step("Send", async |cx| Ok(cx.state));

    let shown = Desk::new().call(&scripted([]).brain(order), &["show", "order"]).out;

    assert!(shown.contains("\n  Payment  (wait paid or refused)\n"), "{shown}");
}

mod listed {
    use positronic_core::prelude::*;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::super::desk::{Desk, scripted};
    use crate::app::Project;

    #[derive(Deserialize, JsonSchema)]
    struct Payment {
        cents: u64,
    }

    positronic_core::webhooks! {
        struct Hooks {
            /// The bank's notice of a payment.
            payment: Webhook<Payment> = "payment",
        }
    }

    fn project(hook: Webhook<Payment>) -> Project {
        let order = brain("Order")
            .step("Take", async |_| Ok("order-7".to_owned()))
            .wait("Paid", |w| w.on(hook, String::clone), |_, paid| paid.cents)
            .step("Send", async |cx| Ok(cx.state));
        scripted([]).brain(order).webhooks(Hooks::new().list())
    }

    #[test]
    fn webhooks_of_a_project_are_listed_with_their_payloads() {
        let listed = Desk::new().call(&project(Hooks::new().payment), &["list"]).out;
        assert!(
            listed.ends_with("\nWebhooks:\npayment  The bank's notice of a payment.  Order waits for it\n"),
            "{listed}"
        );
        let lines = Desk::new().call(&project(Hooks::new().payment), &["list", "--json"]).out;
        let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!(last["webhook"], "payment");
        assert_eq!(last["payload_schema"]["properties"]["cents"]["type"], "integer");
        assert_eq!((&last["starts"], &last["waits"]), (&json!([]), &json!(["Order"])));
    }

    #[test]
    fn stage_that_waits_for_a_webhook_that_the_project_does_not_list_is_refused_at_the_start() {
        let refused = Desk::new().call(&project(webhook("paymnt")), &["run", "order"]);
        assert_eq!(refused.code, 2, "{}", refused.err);
        let message =
            "the stage `Paid` of the brain `Order` waits for the webhook `paymnt`, which the project does not list";
        assert!(refused.err.contains(message), "{}", refused.err);
        assert!(refused.err.contains("the project has the webhooks payment"), "{}", refused.err);
    }

    #[test]
    fn webhooks_of_tools_are_shown_and_checked_where_their_loop_declares_them() {
        let chat = |hook: &Webhook<Payment>| {
            let order = brain("Order").r#loop("Chat", |cx| cx.system("Help.").input("Pay.")).waits_for(hook);
            scripted([]).brain(order).webhooks(Hooks::new().list())
        };
        let shown = Desk::new().call(&chat(&Hooks::new().payment), &["show", "order"]).out;
        assert!(shown.contains("Chat  (loop, tools wait for payment)"), "{shown}");
        let refused = Desk::new().call(&chat(&webhook("paymnt")), &["run", "order"]);
        assert_eq!(refused.code, 2, "{}", refused.err);
        assert!(
            refused.err.contains("the stage `Chat` of the brain `Order` waits for the webhook `paymnt`"),
            "{}",
            refused.err
        );
    }

    #[test]
    fn sender_of_a_webhook_that_the_project_does_not_list_is_refused_by_serve() {
        let desk = Desk::new();
        let senders = desk.path("senders.toml");
        std::fs::write(&senders, "[payment]\nscheme = \"unsigned\"\n[paymnt]\nscheme = \"unsigned\"\n").unwrap();
        let serve = ["serve", "--listen", "127.0.0.1:0", "--webhooks", &senders];
        let refused = desk.call(&project(Hooks::new().payment), &serve);
        assert_eq!(refused.code, 2, "{}", refused.err);
        let message = "the webhook file has the sender `paymnt`, and the project lists no such webhook";
        assert!(refused.err.contains(message), "{}", refused.err);
        assert!(refused.err.contains("did you mean `payment`?"), "{}", refused.err);
    }

    #[test]
    fn payload_that_does_not_fit_a_listed_webhook_is_refused_and_not_stored() {
        let desk = Desk::new();
        let send = |cents: serde_json::Value| {
            let payload = json!({ "cents": cents }).to_string();
            let words = ["send", "--webhook", "payment", "--identifier", "order-7", "--payload", &payload];
            desk.call(&project(Hooks::new().payment), &words)
        };
        let refused = send(json!("ten"));
        assert_eq!(refused.code, 7, "{}", refused.err);
        assert!(refused.err.contains("the payload of the webhook `payment` is invalid"), "{}", refused.err);
        assert_eq!(desk.json(&["inbox", "--mail"]), serde_json::Value::Null);
        assert!(send(json!(10)).out.starts_with("no call waits for payment order-7 yet"));
    }
}
