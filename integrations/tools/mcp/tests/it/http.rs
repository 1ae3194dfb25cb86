//! Servers over streamable HTTP, on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use positronic_core::model::scripted::Reply;
use positronic_mcp::{McpHttp, McpOptions, McpServer};
use serde_json::{Value, json};

use crate::desk::{desk, eventually};
use crate::support::{Play, done, error_of, results, success};

/// A request: its method, path, headers in lower case, and body.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Value,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// An HTTP server that answers with a status line, headers and a body.
struct Site {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

type Answer = (String, String);

impl Site {
    fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
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

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    fn server(&self, change: impl FnOnce(McpHttp) -> McpHttp) -> McpServer {
        let options = McpOptions::builder().ask(false).build();
        McpServer::new("web", change(McpHttp::new(self.url())), options).unwrap()
    }

    /// Returns the requests whose message has a method.
    fn asked(&self, method: &str) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.body["method"] == method).cloned().collect()
    }
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&Asked) -> Answer, notes: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(read) if read > 2 => head.push(line.trim().to_owned()),
            _ => break,
        }
    }
    let Some((first, headers)) = head.split_first() else { return };
    let headers: Vec<_> = headers
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, length)| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = first.split(' ').map(str::to_owned);
    let asked = Asked {
        method: words.next().unwrap(),
        path: words.next().unwrap(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    notes.lock().unwrap().push(asked.clone());
    let (head, body) = answer(&asked);
    let length = body.len();
    // The client has disconnected and does not need the rest.
    _ = stream.write_all(
        format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").as_bytes(),
    );
}

fn status(line: &str) -> Answer {
    (line.to_owned(), String::new())
}

fn result(asked: &Asked, result: &Value) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result});
    ("200 OK\r\nContent-Type: application/json".to_owned(), body.to_string())
}

/// Answers like a correct server, in the session of this name.
fn well(asked: &Asked, session: &str) -> Answer {
    if asked.method == "GET" {
        return status("405 Method Not Allowed");
    }
    if asked.method == "DELETE" {
        return status("200 OK");
    }
    match asked.body["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let (head, body) = result(
                asked,
                &json!({
                    "protocolVersion": asked.body["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "site", "version": "1"},
                }),
            );
            (format!("{head}\r\nMcp-Session-Id: {session}"), body)
        }
        "tools/list" => result(asked, &json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})),
        "tools/call" => {
            let body = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": {"content": [{"type": "text", "text": session}]}});
            let events = format!(
                "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}}\n\nevent: message\ndata: {body}\n\n"
            );
            ("200 OK\r\nContent-Type: text/event-stream".to_owned(), events)
        }
        _ => status("202 Accepted"),
    }
}

fn echo(times: usize) -> Vec<Reply> {
    (0..times).map(|_| Reply::call("web__echo", json!({}))).chain([done()]).collect()
}

#[tokio::test]
async fn http_server_gets_its_session_and_the_authors_headers() {
    let site = Site::start(|asked| well(asked, "s1"));
    let server = site.server(|http| http.bearer("t0ken").header("X-Team", "tea"));
    let play = Play::new(echo(1));

    let story = play.run(desk(&[&server]), ()).await;

    assert_eq!(results(&story, "Work"), [success("s1")]);
    let call = &site.asked("tools/call")[0];
    assert_eq!(call.header("authorization"), Some("Bearer t0ken"));
    assert_eq!((call.header("x-team"), call.header("mcp-session-id")), (Some("tea"), Some("s1")));
}

#[tokio::test]
async fn streamed_number_that_would_be_rounded_is_a_string_with_its_digits() {
    let site = Site::start(|asked| {
        if asked.body["method"] != "tools/call" {
            return well(asked, "s1");
        }
        let id = &asked.body["id"];
        let result = r#"{"content":[],"structuredContent":{"id":18446744073709551617}}"#;
        let event = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n\n");
        ("200 OK\r\nContent-Type: text/event-stream".to_owned(), event)
    });

    let story = Play::new(echo(1)).run(desk(&[&site.server(|http| http)]), ()).await;

    assert_eq!(results(&story, "Work"), [success(json!({"id": "18446744073709551617"}))]);
}

#[tokio::test]
async fn forgotten_session_is_restarted() {
    let sessions = Mutex::new(1);
    let site = Site::start(move |asked| {
        let mut sessions = sessions.lock().unwrap();
        if asked.body["method"] == "tools/call" && *sessions == 1 {
            *sessions = 2;
        }
        let now = format!("s{sessions}");
        let is_old = asked.header("mcp-session-id").is_some_and(|session| session != now);
        if is_old { status("404 Not Found") } else { well(asked, &now) }
    });
    let play = Play::new(echo(2));

    let story = play.run(desk(&[&site.server(|http| http)]), ()).await;

    assert_eq!(results(&story, "Work"), [success("s2"), success("s2")]);
    assert_eq!(site.asked("initialize").len(), 2);
}

#[tokio::test]
async fn unauthorized_client_gets_a_remedy() {
    for (line, code) in [
        ("401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata=\"x\"", 401),
        ("401 Unauthorized", 401),
        ("403 Forbidden", 403),
    ] {
        let site = Site::start(move |_| status(line));
        let error = site.server(|http| http.bearer("s3cret")).connect().await.unwrap_err().to_string();

        let expected =
            format!("127.0.0.1:{} denied access (HTTP {code}); give it a token with `.bearer(…)`", site.port);
        assert!(error.contains(&expected), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn token_that_the_server_repeats_is_redacted_in_results() {
    let site = Site::start(|asked| {
        if asked.body["method"] != "tools/call" {
            return well(asked, "s1");
        }
        let said = format!("{:?}", asked.headers);
        match asked.body["params"]["arguments"]["as"].as_str() {
            Some("error") => {
                let error =
                    json!({"jsonrpc": "2.0", "id": asked.body["id"], "error": {"code": -32000, "message": said}});
                ("200 OK\r\nContent-Type: application/json".to_owned(), error.to_string())
            }
            Some("structure") => result(asked, &json!({"content": [], "structuredContent": {"all": [said]}})),
            _ => result(asked, &json!({"content": [{"type": "text", "text": said}]})),
        }
    });
    let server = site.server(|http| {
        http.bearer("t0ken-0123456789").header("X-Api-Key", "k3y-0123456789abc").header("X-Title", "A title of an app")
    });
    let call = |kind: &str| Reply::call("web__echo", json!({"as": kind}));
    let play = Play::new([call("text"), call("structure"), call("error"), done()]);

    let story = play.run(desk(&[&server]), ()).await;

    for result in results(&story, "Work") {
        let said = serde_json::to_string(&result).unwrap();
        assert!(said.contains("Bearer [hidden]") && said.contains("A title of an app"), "{said}");
        assert!(!said.contains("t0ken-0123456789") && !said.contains("k3y-0123456789abc"), "{said}");
    }
}

#[tokio::test]
async fn non_mcp_server_is_named_without_its_url() {
    let page = Site::start(|_| ("200 OK\r\nContent-Type: text/html".to_owned(), "<h1>Tea</h1>".to_owned()));
    let error =
        page.server(|_| McpHttp::new(format!("{}?key=s3cret", page.url()))).connect().await.unwrap_err().to_string();
    assert!(error.contains("answers with text/html, which no MCP server does; is the address right?"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");

    let elsewhere = Site::start(|_| status("307 Temporary Redirect\r\nLocation: http://localhost:1/mcp"));
    let error = elsewhere.server(|http| http.header("X-Key", "k")).connect().await.unwrap_err().to_string();
    assert!(error.ends_with("answers with HTTP 307 Temporary Redirect"), "{error}");
}

#[tokio::test]
async fn server_may_redirect_its_own_url() {
    let site = Site::start(|asked| match asked.path.as_str() {
        "/mcp" => status("307 Temporary Redirect\r\nLocation: /mcp/"),
        _ => well(asked, "s1"),
    });
    let play = Play::new(echo(1));

    let story = play.run(desk(&[&site.server(|http| http.bearer("t"))]), ()).await;

    assert_eq!(results(&story, "Work"), [success("s1")]);
}

#[tokio::test]
async fn server_stream_is_reopened_at_most_once_a_second() {
    let site = Site::start(|asked| match asked.method.as_str() {
        "GET" => ("200 OK\r\nContent-Type: text/event-stream".to_owned(), "id: 1\nretry: 0\ndata:\n\n".to_owned()),
        _ => well(asked, "s1"),
    });
    let server = site.server(|http| http);
    let opened = || site.asked.lock().unwrap().iter().filter(|asked| asked.method == "GET").count();
    server.connect().await.unwrap();
    eventually("the first stream", || opened() == 1).await;
    let begun = tokio::time::Instant::now();

    eventually("two more", || opened() >= 3).await;

    assert!(begun.elapsed() > std::time::Duration::from_millis(1_900), "{:?}", begun.elapsed());
    drop(server);
}

#[tokio::test]
async fn unreachable_server_fails_the_loop_first_and_only_the_call_later() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let nobody =
        McpServer::new("web", McpHttp::new(format!("http://127.0.0.1:{port}/")), McpOptions::default()).unwrap();
    let error = nobody.connect().await.unwrap_err();
    assert_eq!(error.to_string(), format!("the MCP server `web` did not start: no response from 127.0.0.1:{port}"));
    assert!(error.is_transient());

    let calls = Mutex::new(0);
    let site = Site::start(move |asked| {
        if asked.body["method"] != "tools/call" {
            return well(asked, "s1");
        }
        let mut calls = calls.lock().unwrap();
        *calls += 1;
        match *calls {
            1 => status("503 Service Unavailable"),
            2 => ("200 OK\r\nContent-Type: text/event-stream".to_owned(), String::new()),
            _ => well(asked, "s1"),
        }
    });
    let options = McpOptions::builder().ask(false).call_timeout(std::time::Duration::from_secs(20)).build();
    let server = McpServer::new("web", McpHttp::new(site.url()), options).unwrap();

    let story = Play::new(echo(3)).run(desk(&[&server]), ()).await;

    let results = results(&story, "Work");
    assert!(
        error_of(&results[0]).starts_with("the MCP server `web` did not accept the request: 127.0.0.1"),
        "{results:?}"
    );
    assert!(error_of(&results[0]).contains("503"), "{results:?}");
    assert!(!results[1].is_success(), "a truncated answer is refused: {results:?}");
    assert_eq!(results[2], success("s1"));
}
