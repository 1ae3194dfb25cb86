//! A local server with scripted answers, in HTTP chunks that the test chooses.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An answer: its head without the body's framing, and its chunks.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) chunks: Vec<Vec<u8>>,
    pub(super) end: End,
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Regular.
    Complete,
    /// The connection breaks before the end of the body.
    Broken,
    /// The server sends nothing more until the client gives up.
    Silent,
}

impl Answer {
    pub(super) fn sse(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", body)
    }

    pub(super) fn new(status: u16, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type", media_type.to_owned()), ("x-request-id", "req_42".to_owned())];
        Self { status, headers, chunks: vec![body.into()], end: End::Complete }
    }

    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(super) fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

/// A server on its own port. Its thread ends with the test.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// A request: its head in lower case, and its body.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) head: String,
    pub(super) body: String,
}

impl Server {
    /// Starts a server that gives the answers in turn, and then repeats the last one.
    pub(super) fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, seen) = (answers.clone(), Arc::clone(&seen));
                std::thread::spawn(move || serve(stream, &answers, &seen));
            }
        });
        Self { address, requests }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(super) fn bodies(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.body).collect()
    }
}

fn serve(mut stream: TcpStream, answers: &[Answer], seen: &Mutex<Vec<Request>>) {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    while let Some(request) = read_request(&mut stream) {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            seen.len() - 1
        };
        let answer = &answers[number.min(answers.len() - 1)];
        if write_answer(&mut stream, answer).is_err() || answer.end == End::Broken {
            return;
        }
        if answer.end == End::Silent {
            // Wait until the client closes.
            _ = stream.read(&mut [0]);
            return;
        }
    }
}

fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0").parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Request { head, body: String::from_utf8(body).ok()? })
}

fn write_answer(stream: &mut TcpStream, answer: &Answer) -> std::io::Result<()> {
    let mut out = format!("HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\n", answer.status);
    for (name, value) in &answer.headers {
        out.extend([*name, ": ", value, "\r\n"]);
    }
    out.push_str("\r\n");
    let mut out = out.into_bytes();
    for chunk in answer.chunks.iter().filter(|chunk| !chunk.is_empty()) {
        out.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        out.extend(chunk);
        out.extend(b"\r\n");
    }
    if answer.end == End::Complete {
        out.extend(b"0\r\n\r\n");
    }
    stream.write_all(&out)?;
    stream.flush()
}
