//! Tools created by `#[tool]`.

use positronic_core::definition::StateValue;
use positronic_core::dsl::State;
use positronic_core::prelude::*;
use positronic_core::record::MAX_DOCUMENT_BYTES;
use positronic_core::tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::bench::{Bench, iteration, names, scope};

/// Searches the help documentation.
///
/// Finds articles only:
///   - no tickets
///   - no people
#[tool(read_only, timeout = "10s")]
async fn search_docs(
    /// What to search for.
    query: String,
    /// How many results
    /// at most.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    limit: u32,
    r#type: Option<String>,
) -> Result<Vec<String>> {
    Ok(vec![format!("{limit} about {query} in {type:?}")])
}

fn ten() -> u32 {
    10
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Ticket {
    number: u32,
}

#[derive(Clone, Default)]
struct Acme {
    currency: &'static str,
}

/// Pays an order back.
#[tool(
    approval = "refunds need a person",
    approval_expires = "36h",
    not_editable,
    destructive,
    name = "payment.refund",
    title = "Refund",
    retries = 2
)]
pub(crate) async fn refund(order: String, cx: ToolContext<(), Ticket, Acme>, mut amount: u32) -> Result<String> {
    amount += 1;
    Ok(format!("{order}: {amount} {} for ticket {}", cx.services.currency, cx.state.number))
}

/// Ends.
#[tool(exit, idempotent, sequential, timeout = 90)]
async fn stop() -> Result<()> {
    Ok(())
}

/// Sends.
#[tool(approval = "it cannot be called back")]
async fn send() -> Result<()> {
    Ok(())
}

/// Counts down.
#[tool(timeout = "1500ms")]
async fn countdown(from: u32, cx: ToolContext<(), Ticket>) -> Result<Vec<u32>> {
    match from.checked_sub(1) {
        Some(next) => {
            // Here the name refers to the function, not to the tool.
            let mut rest = Box::pin(countdown(next, cx)).await?;
            rest.insert(0, from);
            Ok(rest)
        }
        None => Ok(vec![0]),
    }
}

/// Numbers the ticket.
#[tool]
async fn renumber(number: u32, cx: ToolContext<(), Ticket, Acme>) -> Result<ToolReply<Ticket>> {
    Ok(cx.result(number).update(move |ticket| ticket.number = number))
}

type Cx = ToolContext<(), Ticket, Acme>;

/// Says the number.
#[tool]
async fn say(the_call: Cx) -> Result<u32> {
    Ok(the_call.state.number)
}

#[test]
fn tools_with_and_without_a_context_share_one_loop() {
    let support: Brain<(), Ticket, Acme> = positronic_core::brain! {
        "Support"
        .services::<Acme>()
        .step("Open", async |_| Ok(Ticket::default()))
        .loop("Chat", |cx| cx.system("").tools([search_docs(), refund(), stop(), renumber(), say()]))
    }
    .build();
    let definition = iteration(support, Acme::default(), &scope(json!({"number": 0}), Acme::default()));
    assert_eq!(names(&definition), ["search_docs", "payment.refund", "stop", "renumber", "say"]);
}

#[test]
fn name_docs_flags_and_arguments_become_the_declaration() {
    let search = Bench::bare(search_docs());
    insta::assert_json_snapshot!(search.tool.decl, @r#"
    {
      "id": "search_docs",
      "description": "Searches the help documentation.\n\nFinds articles only:\n  - no tickets\n  - no people",
      "parameters": {
        "additionalProperties": false,
        "properties": {
          "limit": {
            "default": 10,
            "description": "How many results\nat most.",
            "format": "uint32",
            "maximum": 50,
            "minimum": 1,
            "type": "integer"
          },
          "query": {
            "description": "What to search for.",
            "type": "string"
          },
          "type": {
            "type": [
              "string",
              "null"
            ]
          }
        },
        "required": [
          "query"
        ],
        "type": "object"
      },
      "flags": {
        "read_only": true
      }
    }
    "#);
    assert_eq!((search.tool.timeout.as_secs(), search.tool.retries, search.approval()), (10, 3, None));

    let refund = Bench::with(Ticket::default(), Acme::default(), refund());
    insta::assert_json_snapshot!(refund.tool.decl, @r#"
    {
      "id": "payment.refund",
      "title": "Refund",
      "description": "Pays an order back.",
      "parameters": {
        "additionalProperties": false,
        "properties": {
          "amount": {
            "format": "uint32",
            "minimum": 0,
            "type": "integer"
          },
          "order": {
            "type": "string"
          }
        },
        "required": [
          "order",
          "amount"
        ],
        "type": "object"
      },
      "flags": {
        "destructive": true
      }
    }
    "#);
    assert_eq!((refund.tool.timeout.as_secs(), refund.tool.retries), (60, 2));
    let gate = refund.approval().unwrap();
    assert_eq!(gate.reason, "refunds need a person");
    assert_eq!((gate.valid_for, gate.editable), (Some(std::time::Duration::from_hours(36)), false));

    let stop = Bench::bare(stop());
    insta::assert_json_snapshot!(stop.tool.decl, @r#"
    {
      "id": "stop",
      "description": "Ends.",
      "parameters": {
        "additionalProperties": false,
        "type": "object"
      },
      "flags": {
        "exit": true,
        "idempotent": true,
        "sequential": true
      }
    }
    "#);
    assert_eq!(stop.tool.timeout.as_secs(), 90);

    assert_eq!(Bench::with(Ticket::default(), (), countdown()).tool.timeout.as_millis(), 1500);
}

#[test]
fn approval_defaults_to_no_expiry_and_editable_arguments() {
    let gate = Bench::bare(send()).approval().unwrap();
    assert_eq!((gate.valid_for, gate.editable), (None, true));
}

#[test]
fn arguments_are_decoded_by_name() {
    let search = Bench::bare(search_docs());
    assert_eq!(search.call(json!({"query": "x", "limit": 3, "type": "faq"})), json!(["3 about x in Some(\"faq\")"]));
    assert_eq!(search.call(json!({"query": "x"})), json!(["10 about x in None"]));
    assert!(search.refusal(&json!({"query": "x", "limt": 3})).contains("limt"));
    assert!(search.refusal(&json!({"query": "x", "limit": 0})).contains("limit"));
    assert_eq!(Bench::bare(stop()).call(json!({})), json!(null));
    assert_eq!(Bench::with(Ticket::default(), (), countdown()).call(json!({"from": 2})), json!([2, 1, 0]));
}

#[test]
fn context_parameter_may_have_any_position_and_changes_the_state() {
    let refund = Bench::with(Ticket { number: 7 }, Acme { currency: "EUR" }, refund());
    assert_eq!(refund.call(json!({"order": "A1", "amount": 4})), json!("A1: 5 EUR for ticket 7"));

    let renumber = Bench::with(Ticket { number: 7 }, Acme::default(), renumber());
    let reply = renumber.reply(json!({"number": 8})).unwrap();
    let state = StateValue::new(json!({"number": 7}).into(), MAX_DOCUMENT_BYTES);
    let updated: Vec<_> = reply.updates.into_iter().map(|update| update(&state)).collect();
    assert_eq!((reply.output, updated[0].as_ref().unwrap()), (json!(8), &json!({"number": 8})));
}

#[test]
fn generics_of_the_function_are_preserved() {
    /// Echoes.
    #[tool]
    async fn echo<T, const N: usize>(item: T, others: Vec<T>, cx: ToolContext<(), T>) -> Result<(T, T, usize)>
    where
        T: State + Clone + JsonSchema,
    {
        Ok((item, T::clone(&cx.state), others.len() * N))
    }
    let echo = Bench::with("b".to_owned(), (), echo::<String, 2>());
    assert_eq!(echo.call(json!({"item": "a", "others": ["c"]})), json!(["a", "b", 2]));
}

#[test]
fn attributes_are_preserved() {
    /// Is the only one there is.
    #[tool]
    #[cfg(any())]
    async fn chosen() -> Result<u8> {
        compile_error!("switched off")
    }
    /// Is the only one there is.
    #[cfg(not(any()))]
    #[tool]
    #[expect(unused_variables, clippy::unused_async, reason = "they apply to the inner function")]
    async fn chosen(
        ignored: Option<u8>,
        #[expect(unused_mut, reason = "so do these")] mut unchanged: u8,
    ) -> Result<u8> {
        Ok(unchanged)
    }
    assert_eq!(Bench::bare(chosen()).call(json!({"unchanged": 1})), json!(1));
}

#[test]
fn flattened_argument_takes_the_remaining_fields() {
    #[derive(Deserialize, JsonSchema)]
    struct Filter {
        author: String,
    }
    /// Finds.
    #[tool]
    async fn find(query: String, #[serde(flatten)] filter: Filter) -> Result<String> {
        Ok(format!("{query} by {}", filter.author))
    }
    assert_eq!(Bench::bare(find()).call(json!({"query": "x", "author": "y"})), json!("x by y"));
}

#[test]
fn author_names_never_collide_with_generated_ones() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Arguments(u8);
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct O(u8);
    /// Has the names of everything that is written around it.
    #[tool]
    async fn t(arguments: Arguments, builder: O, t: u8) -> Result<u8> {
        Ok(arguments.0 + builder.0 + t)
    }
    assert_eq!(Bench::bare(t()).call(json!({"arguments": 1, "builder": 2, "t": 3})), json!(6));
}
