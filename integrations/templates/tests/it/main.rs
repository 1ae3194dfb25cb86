//! Templates: what is found at the start, with file and line, and what they render.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::BTreeMap;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_templates::{Template, TemplateError, TemplateSet, templates};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
struct Refund {
    title: &'static str,
    customer: String,
    order: Order,
    prices: BTreeMap<String, u32>,
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Order {
    id: u32,
    items: Vec<Item>,
}

#[derive(Serialize, JsonSchema)]
struct Item {
    name: &'static str,
    price: f64,
}

templates! {
    /// The prompts of a shop.
    #[derive(Debug, Clone)]
    struct Prompts {
        refund: Template<Refund> = "prompts/refund.md",
        base: Template<Refund> = "prompts/base.md",
    }
}

fn refund() -> Refund {
    Refund {
        title: "Refunds & returns",
        customer: "Ann".to_owned(),
        order: Order { id: 7, items: vec![Item { name: "tea", price: 2.5 }] },
        prices: BTreeMap::from([("tea".to_owned(), 3)]),
        note: None,
    }
}

/// Returns why a template is refused at the start, on its own.
fn refused(source: &'static str) -> String {
    let parsed = TemplateSet::parse([("prompt.md", source)]).and_then(|set| set.template::<Refund>("prompt.md"));
    match parsed {
        Ok(_) => panic!("it is accepted: {source}"),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn accepted(source: &'static str) {
    let set = TemplateSet::parse([("prompt.md", source)]).unwrap();
    if let Err(error) = set.template::<Refund>("prompt.md") {
        panic!("{error}");
    }
}

templates! {
    /// A template whose variables are those of another type.
    struct Misfit {
        refund: Template<Order> = "prompts/refund.md",
    }
}

#[test]
#[should_panic(
    expected = "the template `prompts/refund.md`, line 3, uses `customer`, which `Order` does not have; it has `id`, `items`"
)]
fn embedded_template_that_does_not_fit_its_type_ends_the_start_with_a_sentence() {
    _ = Misfit::new().refund;
}

#[test]
fn embedded_templates_render_with_their_types() {
    let prompts = Prompts::new();

    let text = prompts.refund.render(&refund()).unwrap();

    assert_eq!(text, "# Refunds & returns\n\nRefund 7 of Ann.\n- tea, 2.5 3");
    assert_eq!(prompts.base.render(&refund()).unwrap(), "# Refunds & returns\n");
    assert_eq!(prompts.refund.name(), "prompts/refund.md");
}

#[test]
fn mistakes_are_found_at_the_start_with_file_and_line() {
    for (source, message) in [
        ("Hello\n{{ customer }", "cannot parse the template `prompt.md`, line 2: unexpected `}`"),
        ("Hello\n\n{{ custmer }}", "the template `prompt.md`, line 3, uses `custmer`, which `Refund` does not have"),
        (
            "{% if note %}\n{{ order.number }}\n{% endif %}",
            "the template `prompt.md`, line 2, uses `order.number`, which `Refund` does not have",
        ),
        (
            // The branch is not taken with a sample.
            "{% if customer == 'never' %}{{ nothing }}{% endif %}",
            "the template `prompt.md`, line 1, uses `nothing`",
        ),
        (
            "{% for item in order.items %}\n{{ item.label }}{% endfor %}",
            "cannot render the template `prompt.md`, line 2: `item.label` is undefined",
        ),
        ("\n{{ customer|loud }}", "cannot render the template `prompt.md`, line 2: "),
        ("\n{% include 'tone.md' %}", "cannot render the template `prompt.md`, line 2: "),
        ("{{ title.length }}", "the template `prompt.md`, line 1, uses `title.length`"),
    ] {
        let error = refused(source);
        assert!(error.starts_with(message), "{source}: {error}");
    }
}

#[test]
fn error_in_an_included_template_names_that_template() {
    let set = TemplateSet::parse([("prompt.md", "Hello.\n{% include 'tone.md' %}"), ("tone.md", "\nBe {{ tone }}.")])
        .unwrap();

    let error = set.template::<Refund>("prompt.md").unwrap_err().to_string();

    assert!(error.starts_with("cannot render the template `tone.md`, line 2: `tone` is undefined"), "{error}");
}

#[test]
fn what_depends_on_values_is_accepted() {
    accepted("{{ prices['tea'] }} {{ prices.bread }} {{ order.items[3].name }} {{ order.items|length }}");
    accepted("{% for name, price in prices|items %}{{ name }}: {{ price }}{% endfor %}");
    accepted("{{ 100 // order.id }} {{ customer|upper }} {{ note or 'none' }} {% set x = customer %}{{ x }}");
    accepted("{% for i in range(order.id) %}{{ loop.index }}{% endfor %}");
    accepted("{{ order.items|map(attribute='name')|join(', ') }}");
}

#[test]
fn value_that_is_not_there_is_an_error_and_no_empty_text() {
    let set = TemplateSet::parse([("prompt.md", "First:\n{{ order.items[1].name }}")]).unwrap();
    let template = set.template::<Refund>("prompt.md").unwrap();

    let error = template.render(&refund()).unwrap_err();

    let TemplateError::Render { template, line, .. } = &error else { panic!("{error:?}") };
    assert_eq!((template.as_str(), *line), ("prompt.md", 2));
}

#[test]
fn unknown_template_is_an_error_that_lists_the_known_ones() {
    let set = TemplateSet::parse([("a.md", "A"), ("b.md", "B")]).unwrap();

    let error = set.template::<()>("c.md").unwrap_err();

    assert_eq!(error.to_string(), "there is no template `c.md`; the set has `a.md`, `b.md`");
}

struct Shop {
    prompts: Prompts,
}

#[tokio::test]
async fn loop_uses_a_template_of_its_services() {
    let support = brain("Support")
        .services::<Shop>()
        .r#loop("Chat", |cx| Ok(cx.system(cx.services.prompts.refund.render(&refund())?)))
        .bind(Shop { prompts: Prompts::new() });
    let model = ScriptedModel::from_fn(|request| {
        assert!(request.system.starts_with("# Refunds & returns"), "{}", request.system);
        Reply::text("Done.")
    });

    Runner::new(model).start(&support, ()).await.unwrap().result().await.unwrap();
}
