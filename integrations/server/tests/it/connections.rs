//! Limits of the server's own listener, over real connections.

use std::net::SocketAddr;
use std::time::Duration;

use positronic_core::record::Timestamp;
use positronic_core::runner::Client;
use positronic_core::store::MemoryStore;
use positronic_server::{Listener, Options, Scope, Shutdown, Token};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(40);

struct Serving {
    address: SocketAddr,
    shutdown: Shutdown,
    task: tokio::task::JoinHandle<()>,
}

async fn serve(max_connections: usize) -> Serving {
    serve_runs_of(Client::new(MemoryStore::new()), max_connections).await
}

async fn serve_runs_of(client: Client, max_connections: usize) -> Serving {
    let shutdown = Shutdown::default();
    let options = Options::builder().max_connections(max_connections).shutdown(shutdown.clone()).build();
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.address().unwrap();
    let task = tokio::spawn(listener.serve(client, options));
    Serving { address, shutdown, task }
}

/// Reads until the other side closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await;
    _ = read.expect("the server closes the connection");
    String::from_utf8(text).unwrap()
}

async fn healthy(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    rest(&mut stream).await
}

#[tokio::test(start_paused = true)]
async fn connection_without_complete_headers_is_closed() {
    let serving = serve(8).await;
    let mut slow = TcpStream::connect(serving.address).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: local").await.unwrap();
    let mut silent = TcpStream::connect(serving.address).await.unwrap();

    let (of_slow, of_silent) = tokio::join!(rest(&mut slow), rest(&mut silent));

    assert!(!of_slow.contains("200"), "{of_slow}");
    assert_eq!(of_silent, "");
}

#[tokio::test]
async fn client_that_sends_its_whole_body_first_gets_the_answer_that_it_is_too_large() {
    let client = Client::new(MemoryStore::new());
    let token = Token::builder().subject("app").scopes(Scope::ALL).created(Timestamp(0)).build();
    let token = Token::create(&client, token).await.unwrap().1;
    let serving = serve_runs_of(client, 8).await;
    let body = vec![b'x'; 20 << 20];
    let mut stream = TcpStream::connect(serving.address).await.unwrap();
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len(),
    );

    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();

    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("1048576 bytes"), "{answer}");
}

#[tokio::test]
async fn one_address_does_not_take_all_places() {
    let serving = serve(8).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(serving.address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        open.push(stream);
    }

    let mut third = TcpStream::connect(serving.address).await.unwrap();
    assert_eq!(rest(&mut third).await, "", "it is closed at once");

    open.clear();
    let mut answer = String::new();
    while !answer.starts_with("HTTP/1.1 200") {
        answer = healthy(serving.address).await;
        tokio::task::yield_now().await;
    }
    serving.shutdown.begin();
    tokio::time::timeout(PATIENCE, serving.task).await.expect("the server stops").unwrap();
}

#[tokio::test]
async fn body_that_a_route_does_not_take_leaves_the_connection_open() {
    let serving = serve(8).await;
    let mut stream = TcpStream::connect(serving.address).await.unwrap();
    let body = "x".repeat(60_000);
    let first = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len());

    stream.write_all(first.as_bytes()).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();

    let answers = rest(&mut stream).await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 2, "{answers}");
}
