//! A small scripted HTTP server on this machine.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use positronic_toolbox::{FetchOptions, Fetcher, HostResolver, PrivateAddresses};

/// An answer: its status line and headers, and its body.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Page {
    pub(crate) fn new(status: &str, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let head = format!("{status}\r\nContent-Type: {media_type}\r\nContent-Length: {}", body.len());
        Self { head, body }
    }

    pub(crate) fn text(body: &str) -> Self {
        Self::new("200 OK", "text/plain", body)
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self { head: format!("302 Found\r\nLocation: {to}\r\nContent-Length: 0"), body: Vec::new() }
    }
}

/// A server with the request lines it received.
pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that answers by path; it ends with the test's process.
    pub(crate) fn start(answer: impl Fn(&str) -> Page + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, notes) = (Arc::new(answer), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, notes) = (Arc::clone(&answer), Arc::clone(&notes));
                std::thread::spawn(move || serve(stream, &*answer, &notes));
            }
        });
        Self { port, asked }
    }

    /// Returns the requested paths with their hosts.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    /// Creates a fetcher that may request this server under these names.
    pub(crate) fn fetcher(&self, hosts: &[&str]) -> Fetcher {
        let hosts = hosts.iter().map(|host| format!("{host}:{}", self.port));
        let options = FetchOptions::builder().hosts(hosts).private(PrivateAddresses::Allow).resolver(Here);
        Fetcher::new(options.build()).unwrap()
    }
}

/// Resolves every name to this machine.
pub(crate) struct Here;

impl HostResolver for Here {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) })
    }
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&str) -> Page, notes: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(read) if read > 2 => head.push(line.trim().to_owned()),
            _ => break,
        }
    }
    let Some(path) = head.first().and_then(|line| line.split(' ').nth(1)) else { return };
    let host = head.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
    notes.lock().unwrap().push(format!("{} {path}", host.unwrap_or_default()));
    let Page { head, body } = answer(path);
    // The client has disconnected and does not need the rest.
    _ = stream.write_all(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes());
    _ = stream.write_all(&body);
}
