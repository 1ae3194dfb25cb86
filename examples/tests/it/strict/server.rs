//! An endpoint that validates every request by the strictest real rules, and sends scripted answers.

use std::collections::{HashMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use positronic_core::record::ModelResponse;
use serde_json::Value;

use super::answers::written;
use super::rules::{Dialect, broken};

/// An endpoint on its own port. Its threads end with the process.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) address: String,
    kept: Arc<Kept>,
}

struct Kept {
    results_last: bool,
    /// The answers by the bodies of their requests.
    answers: Mutex<HashMap<String, VecDeque<ModelResponse>>>,
    refused: Mutex<Vec<String>>,
    answered: Mutex<usize>,
}

impl Endpoint {
    pub(super) fn start(results_last: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let kept =
            Kept { results_last, answers: Mutex::default(), refused: Mutex::default(), answered: Mutex::default() };
        let kept = Arc::new(kept);
        let serving = Arc::clone(&kept);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&serving);
                std::thread::spawn(move || while kept.exchange(&stream).is_some() {});
            }
        });
        Self { address, kept }
    }

    /// Sets the answer to a request.
    pub(super) fn expect(&self, body: String, answer: ModelResponse) {
        self.kept.answers.lock().unwrap().entry(body).or_default().push_back(answer);
    }

    /// Returns the violations since the last call.
    pub(super) fn refused(&self) -> Vec<String> {
        std::mem::take(&mut *self.kept.refused.lock().unwrap())
    }
}

impl Kept {
    fn exchange(&self, mut stream: &TcpStream) -> Option<()> {
        let (path, body) = read(stream)?;
        let is_stream_path = path.contains(":streamGenerateContent");
        let dialect = match &*path {
            path if path.ends_with("/chat/completions") => Dialect::Chat,
            path if path.ends_with("/messages") => Dialect::Messages,
            path if path.contains(":generateContent") || is_stream_path => Dialect::GenerateContent,
            _ => Dialect::Responses,
        };
        let request: Value = serde_json::from_str(&body).ok()?;
        self.refused.lock().unwrap().extend(broken(dialect, &request, self.results_last));
        let is_streamed = request["stream"] == true || is_stream_path;
        let answer = self.answers.lock().unwrap().get_mut(&body).and_then(VecDeque::pop_front);
        let number = {
            let mut answered = self.answered.lock().unwrap();
            *answered += 1;
            *answered
        };
        let (status, media_type, body) = match answer {
            Some(answer) => {
                let (media_type, body) = written(dialect, is_streamed, &answer, number);
                (200, media_type, body)
            }
            None => (400, "application/json", r#"{"error":{"message":"unexpected request"}}"#.to_owned()),
        };
        let head =
            format!("HTTP/1.1 {status} X\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
        stream.flush().ok()
    }
}

fn read(mut stream: &TcpStream) -> Option<(String, String)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1)?.to_owned();
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((path, String::from_utf8(body).ok()?))
}
