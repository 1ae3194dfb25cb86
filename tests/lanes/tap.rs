//! A proxy that passes bytes between a client and a server, and records the client's requests.
//!
//! A server's journal contains parsed requests; only a proxy sees them byte for byte.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The client's bytes, by connection.
#[derive(Debug, Clone)]
pub(crate) struct Tap {
    address: String,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Tap {
    /// Starts a proxy to a server.
    pub(crate) async fn on(server: &str) -> Self {
        let server = server.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tap = Self { address: format!("http://{}", listener.local_addr().unwrap()), sent: Arc::default() };
        let sent = Arc::clone(&tap.sent);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pass(client, server, Arc::clone(&sent)));
            }
        });
        tap
    }

    /// Returns the URL in place of the server's.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the bodies of the requests, in connection order.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.sent.lock().unwrap().iter().flat_map(|bytes| bodies(bytes)).collect()
    }
}

async fn pass(client: TcpStream, server: TcpStream, sent: Arc<Mutex<Vec<Vec<u8>>>>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let connection = {
        let mut sent = sent.lock().unwrap();
        sent.push(Vec::new());
        sent.len() - 1
    };
    let there = async {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
            sent.lock().unwrap()[connection].extend_from_slice(&bytes[..count]);
            if to_server.write_all(&bytes[..count]).await.is_err() {
                break;
            }
        }
    };
    let back = async {
        // Ends when either side closes; the client sees how the server closed.
        _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    };
    tokio::select! {
        () = there => {}
        () = back => {}
    }
}

/// Reads the bodies of the requests on one connection by their content length.
fn bodies(mut bytes: &[u8]) -> Vec<String> {
    let mut bodies = Vec::new();
    while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize =
            length.unwrap_or_else(|| panic!("a request without a length: {head}")).trim().parse().unwrap();
        let body = &bytes[end + 4..][..length];
        bodies.push(String::from_utf8(body.to_vec()).unwrap());
        bytes = &bytes[end + 4 + length..];
    }
    bodies
}
