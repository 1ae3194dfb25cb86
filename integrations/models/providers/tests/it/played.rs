//! A server that plays one answer byte by byte, with pauses on tokio's paused clock, and what a model of this crate reads from it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use positronic_core::model::{DeltaSink, Piece};
use positronic_core::record::{DeltaKind, ModelError, ModelRequest, ModelResponse, Part, Path, Settings, Transcript};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use crate::strings::providers;

/// The four APIs.
pub(crate) const APIS: [&str; 4] = ["anthropic", "chat", "gemini", "responses"];

/// An answer as a server sends it.
#[derive(Debug, Clone)]
pub(crate) struct Played {
    pub(crate) media_type: String,
    pub(crate) steps: Vec<Step>,
    /// Whether the server leaves the connection open after the last step.
    pub(crate) stays_open: bool,
    pub(crate) settings: Settings,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Pause(Duration),
}

/// What came of a request.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) answer: Result<ModelResponse, ModelError>,
    /// The pieces since the last restart.
    pub(crate) pieces: Vec<Piece>,
    /// How long it took, on the paused clock.
    pub(crate) took: Duration,
}

impl Played {
    pub(crate) fn new(body: impl Into<Vec<u8>>) -> Self {
        Self::steps(vec![Step::Send(body.into())])
    }

    pub(crate) fn steps(steps: Vec<Step>) -> Self {
        let media_type = "text/event-stream".to_owned();
        Self { media_type, steps, stays_open: false, settings: Settings::default() }
    }

    /// A stream of these events.
    pub(crate) fn events(events: &[String]) -> Self {
        Self::new(stream(events))
    }

    pub(crate) fn labelled(self, media_type: &str) -> Self {
        Self { media_type: media_type.to_owned(), ..self }
    }

    pub(crate) fn staying_open(self) -> Self {
        Self { stays_open: true, ..self }
    }
}

pub(crate) fn stream(events: &[String]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

impl Heard {
    /// Describes the answer: its texts and calls in order, or its error.
    pub(crate) fn told(&self) -> String {
        let response = match &self.answer {
            Ok(response) => response,
            Err(error) => return format!("error: {}", error.message),
        };
        let parts = response.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.clone()),
            Part::Reasoning { text, .. } => Some(format!("({text})")),
            Part::Call { index } => {
                let call = &response.calls[*index as usize];
                Some(format!("{}{}", call.name, call.arguments))
            }
            // The id of a message, for sending it back.
            Part::Opaque { .. } => None,
            other => Some(format!("{other:?}")),
        });
        parts.collect::<Vec<_>>().join(" | ")
    }

    /// Returns the pieces of texts, joined.
    pub(crate) fn streamed(&self) -> String {
        let texts = self.pieces.iter().filter(|piece| piece.kind == DeltaKind::Text);
        texts.map(|piece| piece.text.as_str()).collect()
    }
}

#[derive(Default)]
struct Pieces(Mutex<Vec<Piece>>);

impl DeltaSink for Pieces {
    fn piece(&self, piece: Piece) {
        self.0.lock().unwrap().push(piece);
    }

    fn restart(&self) {
        self.0.lock().unwrap().clear();
    }
}

/// Asks a model behind an API whose server plays an answer.
pub(crate) async fn hear(api: &str, played: Played) -> Heard {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (variable, model) = match api {
        "anthropic" => ("ANTHROPIC_BASE_URL", "anthropic/claude-haiku-5-5"),
        "gemini" => ("GEMINI_BASE_URL", "gemini/gemini-3.8-flash"),
        "responses" => ("OPENAI_BASE_URL", "openai-responses/gpt-5"),
        _ => ("OPENAI_BASE_URL", "openai/gpt-5"),
    };
    let model = providers(&[(variable, &url)]).model(model).unwrap();
    let request = ModelRequest {
        path: Path::parse("Chat/0").unwrap(),
        attempt: 0,
        system: "You help.".into(),
        context: [].into(),
        tools: Arc::default(),
        messages: Transcript::new([positronic_core::record::Message::user("Hi")]),
        settings: Arc::new(played.settings.clone()),
    };
    let server = tokio::spawn(async move {
        let (connection, _) = listener.accept().await.unwrap();
        play(connection, &played).await
    });
    let (pieces, began) = (Pieces::default(), Instant::now());
    let answer = model.call(&request, &pieces).await;
    let took = began.elapsed();
    server.abort();
    Heard { answer, pieces: pieces.0.into_inner().unwrap(), took }
}

async fn play(mut connection: TcpStream, played: &Played) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    read_request(&mut connection).await?;
    let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: {}\r\n\r\n", played.media_type);
    connection.write_all(head.as_bytes()).await?;
    for step in &played.steps {
        match step {
            Step::Send(bytes) if bytes.is_empty() => {}
            Step::Send(bytes) => {
                let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
                connection.write_all(&chunk).await?;
            }
            Step::Pause(time) => sleep(*time).await,
        }
    }
    if !played.stays_open {
        connection.write_all(b"0\r\n\r\n").await?;
    }
    _ = connection.read(&mut [0]).await?;
    Ok(())
}

async fn read_request(connection: &mut TcpStream) -> std::io::Result<()> {
    let mut read = Vec::new();
    loop {
        let mut bytes = [0; 4096];
        let count = connection.read(&mut bytes).await?;
        read.extend_from_slice(&bytes[..count]);
        let text = String::from_utf8_lossy(&read).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if count == 0 || body.len() >= length.unwrap_or(0) {
            return Ok(());
        }
    }
}
