//! aimock, a scripted server: its answers stand in `fixtures/aimock.json`, each under the name of the model that a test
//! asks for, so that tests run side by side.

use serde_json::Value;

use crate::address::address;

/// Returns the server's address.
#[track_caller]
pub(crate) fn server() -> String {
    address("POSITRONIC_AIMOCK", ".ci/lanes")
}

/// Returns the requests for a model that the server says it got, in order: each body, and the status it answered with.
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
