//! The span of a running tool, for its requests to other services.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use opentelemetry::trace::TraceContextExt as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Path, RunId};
use positronic_opentelemetry::traces::SpanContexts;
use serde_json::json;

use crate::machines::Bench;

struct Shop {
    contexts: SpanContexts,
    seen: Arc<Mutex<HashMap<&'static str, String>>>,
}

#[tokio::test(start_paused = true)]
async fn tool_gets_the_context_of_its_own_span() {
    let bench = Bench::new();
    let machine = bench.machine(ScriptedModel::new([Reply::call("order", json!({})), Reply::text("Ordered.")]));
    let seen = Arc::<Mutex<HashMap<_, _>>>::default();
    let shop = Shop { contexts: machine.contexts(), seen: Arc::clone(&seen) };
    let brain = brain("Shop").services::<Shop>().r#loop("Work", |cx| {
        cx.system("Sell.").input("Go.").tool("order", |t| {
            t.execute(async |_: NoArgs, cx| {
                let headers = cx.services.contexts.headers(cx.run_id(), cx.path()).await;
                let context = cx.services.contexts.of(cx.run_id(), cx.path()).await;
                let mut seen = cx.services.seen.lock().unwrap();
                seen.extend(headers);
                seen.insert("span", context.span().span_context().span_id().to_string());
                Ok("ordered")
            })
        })
    });

    machine.test.run(brain.bind(shop), ()).await;
    machine.flush().await;

    let spans = bench.receiver.spans();
    let tool = spans.iter().find(|span| span.name == "execute_tool order").unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let seen = seen.lock().unwrap();
    assert_eq!(seen["traceparent"], format!("00-{}-{}-01", hex(&tool.trace_id), hex(&tool.span_id)));
    assert_eq!(seen["span"], hex(&tool.span_id));
}

#[tokio::test(start_paused = true)]
async fn unknown_run_has_no_context() {
    let machine = Bench::new().machine(ScriptedModel::new([]));

    let headers = machine.contexts().headers(&RunId::new("run-9"), &Path::root()).await;

    assert_eq!(headers, []);
}
