//! aimock, a scripted server: `fixtures/aimock.json` contains its answers, each under the model name of a
//! test, so that tests run concurrently.

use serde_json::Value;

use crate::address::address;

/// Returns the server's URL.
#[track_caller]
pub(crate) fn server() -> String {
    address("POSITRONIC_AIMOCK", ".ci/lanes")
}

/// Returns the requests that the server received for a model, in order: each body, and the status of its answer.
pub(crate) async fn journal(model: &str) -> Vec<(Value, u64)> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let entries = client.get(format!("{}/__aimock/journal", server())).send().await.unwrap();
    let entries: Vec<Value> = entries.error_for_status().unwrap().json().await.unwrap();
    entries
        .into_iter()
        .filter(|entry| entry["body"]["model"] == model)
        .map(|entry| (entry["body"].clone(), entry["response"]["status"].as_u64().unwrap()))
        .collect()
}
