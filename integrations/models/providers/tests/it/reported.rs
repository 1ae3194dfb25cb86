//! Answers that made other software fail: each file of `tests/data/reported` is read as its `must` says.

use std::time::Duration;

use serde_json::Value;

use crate::played::{Played, Step, hear};

/// What each file must lead to: texts and calls in order, or the error.
const MUST: [(&str, &str); 15] = [
    ("anth-spliced-leftover", r#"Again. | a{"pay":1}"#),
    ("anth-text-in-start-and-deltas", "Hello"),
    ("chat-event-error", "error: overloaded"),
    ("chat-finish-stop-every-pause3s", "one two"),
    ("chat-id-rotates-name-repeated", r#"a{"city":"Oslo"}"#),
    ("chat-index-climbs", ", maybe"),
    ("chat-minimax-final", "hi there"),
    ("chat-name-fragments", r#"get_weather{"city":"Oslo"}"#),
    ("chat-nan-logprobs", "hi"),
    ("chat-parallel-index0-noid", r#"get_weather{"city":"Oslo"} | get_weather{"city":"Bergen"}"#),
    ("chat-sse-as-json", "hi there"),
    ("chat-surrogate-in-args", "a{\"t\":\"\u{fffd}\"}"),
    ("chat-surrogate-split", "ok 😀 done"),
    ("gem-array-stream", "hi there"),
    ("resp-args-object", r#"a{"city":"Oslo"}"#),
];

fn played(file: &Value) -> Played {
    let steps = match file["chunks"].as_array() {
        None => vec![Step::Send(file["body"].as_str().unwrap().as_bytes().to_vec())],
        Some(chunks) => {
            let step = |chunk: &Value| match chunk.as_u64() {
                Some(pause) => Step::Pause(Duration::from_millis(pause)),
                None => Step::Send(chunk.as_str().unwrap().as_bytes().to_vec()),
            };
            chunks.iter().map(step).collect()
        }
    };
    let played = Played::steps(steps);
    match file["ctype"].as_str() {
        Some(label) => played.labelled(label),
        None => played,
    }
}

#[tokio::test(start_paused = true)]
async fn every_reported_answer_is_read_as_its_file_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/reported");
    let mut read = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        // Those with several answers are conversations, which have tests of their own.
        if file["answers"].is_array() {
            continue;
        }
        let heard = hear(file["api"].as_str().unwrap(), played(&file)).await;
        if let Ok(response) = &heard.answer {
            assert_eq!(heard.streamed(), response.text(), "{}: people saw the same", file["name"]);
        }
        read.push((file["name"].as_str().unwrap().to_owned(), heard.told()));
    }
    read.sort();

    let must: Vec<_> = MUST.iter().map(|(name, told)| ((*name).to_owned(), (*told).to_owned())).collect();
    assert_eq!(read, must);
}
