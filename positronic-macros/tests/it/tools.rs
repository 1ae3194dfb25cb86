//! What `#[tool]` makes of functions.

use positronic_macros::tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::dsl::{Result, Tool, ToolContext};

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

#[derive(Clone, Default)]
struct Ticket {
    number: u32,
}

#[derive(Clone, Default)]
struct Acme {
    currency: &'static str,
}

/// Pays an order back.
#[tool(approval = "refunds need a person", destructive, name = "payment.refund", title = "Refund", retries = 2)]
pub(crate) async fn refund(order: String, cx: ToolContext<(), Ticket, Acme>, mut amount: u32) -> Result<String> {
    amount += 1;
    Ok(format!("{order}: {amount} {} for ticket {}", cx.services.currency, cx.state.number))
}

/// Ends.
#[tool(exit, idempotent, sequential, timeout = 90)]
async fn stop() -> Result<()> {
    Ok(())
}

/// Counts down.
#[tool(timeout = "1500ms")]
async fn countdown(from: u32, _: ToolContext<(), Ticket>) -> Result<Vec<u32>> {
    match from.checked_sub(1) {
        Some(next) => {
            // The function's name means the function here, not the tool.
            let mut rest = Box::pin(countdown(next, ToolContext::default())).await?;
            rest.insert(0, from);
            Ok(rest)
        }
        None => Ok(vec![0]),
    }
}

fn call<O: Default, S: Default, V: Default>(tool: &Tool<O, S, V>, arguments: Value) -> Result<Value> {
    tool.call(arguments, ToolContext { options: O::default(), state: S::default(), services: V::default() })
}

#[test]
fn name_docs_and_flags_become_calls_on_the_builder() {
    let tool = search_docs::<(), Ticket, Acme>();
    assert_eq!(tool.id, "search_docs");
    insta::assert_snapshot!(tool.said.join("\n"), @r"
    description: Searches the help documentation.

    Finds articles only:
      - no tickets
      - no people
    read only
    timeout: 10s
    ");
    let tool = refund();
    assert_eq!(tool.id, "payment.refund");
    insta::assert_snapshot!(tool.said.join("\n"), @r"
    description: Pays an order back.
    approval: refunds need a person
    destructive
    title: Refund
    retries: 2
    ");
    insta::assert_snapshot!(stop::<(), (), ()>().said.join("\n"), @r"
    description: Ends.
    exit
    idempotent
    sequential
    timeout: 90s
    ");
    insta::assert_snapshot!(countdown().said.join("\n"), @r"
    description: Counts down.
    timeout: 1.5s
    ");
}

#[test]
fn arguments_become_the_schema() {
    insta::assert_json_snapshot!(search_docs::<(), (), ()>().schema, @r#"
    {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
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
      "title": "Arguments",
      "type": "object"
    }
    "#);
    insta::assert_json_snapshot!(stop::<(), (), ()>().schema, @r#"
    {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "title": "Arguments",
      "type": "object"
    }
    "#);
}

#[test]
fn arguments_are_decoded_by_name() {
    let tool = search_docs::<(), (), ()>();
    assert_eq!(
        call(&tool, json!({"query": "x", "limit": 3, "type": "faq"})),
        Ok(json!(["3 about x in Some(\"faq\")"]))
    );
    assert_eq!(call(&tool, json!({"query": "x"})), Ok(json!(["10 about x in None"])));
    assert!(call(&tool, json!({"query": "x", "limt": 3})).unwrap_err().starts_with("unknown field `limt`"));
    assert_eq!(call(&stop::<(), (), ()>(), json!({})), Ok(Value::Null));
    assert_eq!(call(&countdown(), json!({"from": 2})), Ok(json!([2, 1, 0])));
}

#[test]
fn a_context_stands_anywhere_and_fixes_the_types() {
    let context = ToolContext { options: (), state: Ticket { number: 7 }, services: Acme { currency: "EUR" } };
    let tool: Tool<(), Ticket, Acme> = refund();
    assert_eq!(tool.call(json!({"order": "A1", "amount": 4}), context), Ok(json!("A1: 5 EUR for ticket 7")));
}

#[test]
fn generics_of_the_function_stay() {
    /// Echoes.
    #[tool]
    async fn echo<T, const N: usize>(item: T, others: Vec<T>, cx: ToolContext<(), T>) -> Result<(T, usize)>
    where
        T: Serialize + for<'de> Deserialize<'de> + JsonSchema + 'static,
    {
        drop(cx);
        Ok((item, others.len() * N))
    }
    assert_eq!(call(&echo::<String, 2>(), json!({"item": "a", "others": ["b"]})), Ok(json!(["a", 2])));
}

#[test]
fn attributes_stay() {
    /// Is the only one there is.
    #[tool]
    #[cfg(any())]
    async fn chosen() -> Result<u8> {
        compile_error!("switched off")
    }
    /// Is the only one there is.
    #[cfg(not(any()))]
    #[tool]
    #[expect(unused_variables, clippy::unused_async, reason = "they hold for the function inside")]
    async fn chosen(
        ignored: Option<u8>,
        #[expect(unused_mut, reason = "so do these")] mut unchanged: u8,
    ) -> Result<u8> {
        Ok(unchanged)
    }
    assert_eq!(call(&chosen::<(), (), ()>(), json!({"unchanged": 1})), Ok(json!(1)));
}

#[test]
fn a_flattened_argument_takes_what_is_left() {
    #[derive(Deserialize, JsonSchema)]
    struct Filter {
        author: String,
    }
    /// Finds.
    #[tool]
    async fn find(query: String, #[serde(flatten)] filter: Filter) -> Result<String> {
        Ok(format!("{query} by {}", filter.author))
    }
    assert_eq!(call(&find::<(), (), ()>(), json!({"query": "x", "author": "y"})), Ok(json!("x by y")));
}

#[test]
fn names_of_the_author_never_meet_generated_ones() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Arguments(u8);
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct O(u8);
    /// Has the names of everything that is written around it.
    #[tool]
    async fn t(arguments: Arguments, cx: O, t: u8) -> Result<u8> {
        Ok(arguments.0 + cx.0 + t)
    }
    assert_eq!(call(&t::<(), (), ()>(), json!({"arguments": 1, "cx": 2, "t": 3})), Ok(json!(6)));
}
