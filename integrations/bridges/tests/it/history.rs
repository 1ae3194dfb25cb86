//! How much of a long thread a client gets, and how it learns of what is left out.

use axum::http::StatusCode;
use positronic_server::Scope;
use serde_json::{Value, json};

use crate::support::{Shop, types};

const ALL: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Decide];

/// Has a conversation of four runs. Each has more than two MiB of messages: one of the user, and an answer that repeats it.
async fn long_thread(shop: &Shop, token: &str) {
    for number in 0..4 {
        let text = format!("{number} {}", "x".repeat(1_200_000));
        let message = json!({ "id": format!("m-{number}"), "role": "user", "content": text });
        let leg = shop.leg(token, "long", json!({ "messages": [message] })).await;
        assert_eq!(leg.last().unwrap()["outcome"]["type"], "success");
    }
}

#[tokio::test]
async fn page_of_the_ai_sdk_loads_the_latest_runs_that_fit() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    long_thread(&shop, &ann).await;

    let (status, loaded) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/long", None).await;

    assert_eq!(status, StatusCode::OK);
    let messages: Value = serde_json::from_str(&loaded).unwrap();
    let [said, answer] = messages.as_array().unwrap().as_slice() else { panic!("other messages") };
    assert_eq!((&said["id"], &said["metadata"]), (&json!("m-3"), &json!({ "leftOutRuns": 3 })));
    assert_eq!(answer["metadata"]["leftOutRuns"], Value::Null);
}

#[tokio::test]
async fn page_of_ag_ui_that_attaches_gets_the_latest_runs_that_fit() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    long_thread(&shop, &ann).await;

    let attached = shop.leg(&ann, "long", json!({})).await;

    assert_eq!(types(&attached), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "CUSTOM", "RUN_FINISHED"]);
    let users = attached[1]["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    let users: Vec<_> = users.map(|message| message["id"].clone()).collect();
    assert_eq!(json!(users), json!(["m-2", "m-3"]));
    assert_eq!((&attached[2]["name"], &attached[2]["value"]), (&json!("positronic.left_out"), &json!({ "runs": 2 })));
}

#[tokio::test]
async fn page_of_tasks_of_a2a_ends_early_and_names_the_next_one() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    long_thread(&shop, &ann).await;
    let page = async |token: &str| {
        let params = json!({ "historyLength": 10, "includeArtifacts": true, "pageToken": token });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": params });
        let (_, answer) = shop.send(&ann, "POST", "/api/v1/a2a/Refund", Some(request)).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let tasks = answer["result"]["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone());
        (tasks.collect::<Vec<_>>(), answer["result"]["nextPageToken"].as_str().unwrap().to_owned())
    };

    let (first, next) = page("").await;
    let (second, none) = page(&next).await;

    assert_eq!((json!(first), json!(second)), (json!(["long-3", "long-2"]), json!(["long-1", "long-0"])));
    assert_eq!(none, "");
}
