//! `http_fetch`: listed hosts at public addresses, with limits.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::model::scripted::Reply;
use positronic_toolbox::{
    self as toolbox, FetchError, FetchOptions, Fetcher, HostResolver, HtmlAs, PrivateAddresses, Unlisted,
};
use serde_json::{Value, json};

use crate::desk::{desk, reasons};
use crate::server::{Here, Page, Server};
use crate::support::{Play, done, error_of, path, results, success, waits};

/// Resolves to one list of addresses after the other; the last one stays.
struct Answers(Vec<Vec<IpAddr>>, Arc<AtomicUsize>);

impl HostResolver for Answers {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        let asked = self.1.fetch_add(1, Ordering::SeqCst);
        let answer = self.0[asked.min(self.0.len() - 1)].clone();
        Box::pin(async move { Ok(answer) })
    }
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[tokio::test]
async fn page_of_a_listed_host_is_fetched_as_text() {
    let page = "<html><head><title>Tea</title></head><body><script>no()</script><h1>Tea</h1><p>Tea is <b>hot</b>.</p></body></html>";
    let server = Server::start(move |path| match path {
        "/page?q=1" => Page::new("200 OK", "text/html; charset=utf-8", page),
        "/data.json" => Page::new("200 OK", "application/json", "{\"a\":1}"),
        _ => Page::new("404 Not Found", "text/plain", "no such page"),
    });
    let fetcher = server.fetcher(&["tea.test"]);
    let urls = ["/page?q=1#part", "/data.json", "/none"].map(|path| server.url("tea.test", path));
    let batch: Vec<_> = urls.iter().map(|url| ("http_fetch", json!({"url": url}))).collect();
    let play = Play::new([Reply::calls(batch), done()]);

    let story = play.run(&desk::<Value>(move || vec![toolbox::http_fetch(&fetcher)]), ()).await;

    let url = server.url("tea.test", "/page?q=1");
    let results = results(&story, "Work");
    let text = "Tea\nTea\nTea is hot.";
    assert_eq!(
        results[0],
        success(json!({"url": url, "status": 200, "media_type": "text/html; charset=utf-8", "text": text}))
    );
    assert_eq!(
        results[1],
        success(json!({"url": urls[1], "status": 200, "media_type": "application/json", "text": "{\"a\":1}"}))
    );
    assert_eq!(
        results[2],
        success(json!({"url": urls[2], "status": 404, "media_type": "text/plain", "text": "no such page"}))
    );

    let options = FetchOptions::builder().hosts([format!("tea.test:{}", server.port)]).html(HtmlAs::Source);
    let source = Fetcher::new(options.private(PrivateAddresses::Allow).resolver(Here).build()).unwrap();
    assert_eq!(source.fetch(&urls[0]).await.unwrap().text.unwrap(), page);
}

#[tokio::test]
async fn forbidden_hosts_schemes_and_addresses_are_refused() {
    let server = Server::start(|_| Page::text("never"));
    let port = server.port;
    let fetcher = server.fetcher(&["tea.test"]);
    for (url, said) in [
        (format!("http://other.test:{port}/"), "is not an allowed host; allowed are: `tea.test:"),
        (format!("http://tea.test.evil.test:{port}/"), "is not an allowed host"),
        (format!("http://tea.test@evil.test:{port}/"), "a user name or a password"),
        ("http://tea.test/".to_owned(), "`tea.test` is not an allowed host"),
        (format!("http://127.0.0.1:{port}/"), "is not an allowed host"),
        ("file:///etc/passwd".to_owned(), "only `http` and `https`"),
        ("ftp://tea.test/".to_owned(), "only `http` and `https`"),
        ("data:text/plain,x".to_owned(), "only `http` and `https`"),
        ("tea.test".to_owned(), "is not a valid URL"),
        ("http://".to_owned(), "is not a valid URL"),
        (String::new(), "is not a valid URL"),
    ] {
        let error = fetcher.fetch(&url).await.unwrap_err().to_string();
        assert!(error.contains(said), "{url}: {error}");
    }
    assert!(server.asked().is_empty());
    let error = Fetcher::new(FetchOptions::builder().hosts(["https://docs.rs"]).build()).unwrap_err().to_string();
    assert!(error.starts_with("invalid list of hosts: `https://docs.rs` is not a valid host"), "{error}");
    let none = Fetcher::new(FetchOptions::default()).unwrap().fetch("https://docs.rs/").await.unwrap_err().to_string();
    assert_eq!(none, "`docs.rs` is not an allowed host; allowed are: none");
}

#[tokio::test]
async fn loopback_and_private_addresses_are_refused_in_every_spelling() {
    let server = Server::start(|_| Page::text("never"));
    let port = server.port;
    let hosts = [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "10.0.0.1",
    ];
    for host in hosts {
        let options = FetchOptions::builder().hosts([format!("{host}:{port}")]).time(Duration::from_secs(5)).build();
        let error = Fetcher::new(options).unwrap().fetch(&format!("http://{host}:{port}/")).await.unwrap_err();
        assert!(matches!(error, FetchError::Private(_)), "{host}: {error}");
        assert!(error.to_string().contains("only public addresses"), "{error}");
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn name_is_resolved_once_per_connection_and_its_addresses_are_checked() {
    let server = Server::start(|_| Page::text("never"));
    let asked = Arc::new(AtomicUsize::new(0));
    // First a public address, then this machine: a DNS rebinding attack.
    let answers =
        Answers(vec![addresses(&["192.88.99.1"]), addresses(&["127.0.0.1", "::1", "10.1.2.3"])], Arc::clone(&asked));
    let options = FetchOptions::builder().hosts([format!("tea.test:{}", server.port)]).resolver(answers).build();
    let fetcher = Fetcher::new(options).unwrap();
    let url = server.url("tea.test", "/");

    for _ in 0..2 {
        assert!(matches!(fetcher.fetch(&url).await, Err(FetchError::Private(_))));
    }

    assert_eq!(asked.load(Ordering::SeqCst), 2, "the connection uses the checked address without a second lookup");
    assert!(server.asked().is_empty());
    let said = fetcher.fetch(&url).await.unwrap_err().to_string();
    assert_eq!(
        said,
        "`tea.test` is at 127.0.0.1, ::1, 10.1.2.3, which is not in the public internet; only public addresses are allowed"
    );
}

#[tokio::test]
async fn redirects_are_followed_only_to_listed_hosts() {
    let server = Server::start(|path| match path {
        "/one" => Page::redirect("/two"),
        "/two" => Page::redirect("/three#x"),
        "/three" => Page::text("arrived"),
        "/iteration" => Page::redirect("/iteration"),
        "/file" => Page::redirect("file:///etc/passwd"),
        "/inside" => Page::redirect("http://169.254.169.254/latest/meta-data/"),
        _ => Page::redirect("http://other.test/"),
    });
    let fetcher = server.fetcher(&["tea.test"]);
    let fetch = async |path: &str| fetcher.fetch(&server.url("tea.test", path)).await;

    let fetched = fetch("/one").await.unwrap();
    assert_eq!((fetched.url, fetched.text.unwrap()), (server.url("tea.test", "/three"), "arrived".to_owned()));
    assert!(matches!(fetch("/other").await, Err(FetchError::Host { host, .. }) if host == "other.test"));
    assert!(matches!(fetch("/inside").await, Err(FetchError::Host { host, .. }) if host == "169.254.169.254"));
    assert!(fetch("/file").await.unwrap_err().to_string().contains("only `http` and `https`"));
    let iteration = fetch("/iteration").await.unwrap_err().to_string();
    assert!(iteration.contains("is redirected more than 5 times"), "{iteration}");
    assert_eq!(server.asked().len(), 3 + 1 + 1 + 1 + 6);
}

#[tokio::test]
async fn redirect_of_a_public_host_does_not_lead_inside() {
    let server = Server::start(|_| Page::redirect("http://inside.test:1/"));
    let hosts = [format!("tea.test:{}", server.port), "inside.test:1".to_owned()];
    // The author allows this one address, and the resolver puts the other host into a private network.
    struct Split;
    impl HostResolver for Split {
        fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
            let address = if host == "inside.test" { "10.0.0.7" } else { "127.0.0.1" };
            Box::pin(async move { Ok(addresses(&[address])) })
        }
    }
    let fetcher = Fetcher::new(FetchOptions::builder().hosts(hosts).resolver(Split).build()).unwrap();

    let error = fetcher.fetch("http://inside.test:1/").await.unwrap_err();
    assert!(matches!(error, FetchError::Private(_)), "{error}");
}

#[tokio::test]
async fn long_page_is_truncated_and_binary_content_is_not_shown() {
    let server = Server::start(|path| match path {
        "/long" => Page::text(&"ü".repeat(3000)),
        "/endless" => Page { head: "200 OK\r\nContent-Type: text/plain".to_owned(), body: vec![b'x'; 3_000_000] },
        "/image" => Page::new("200 OK", "image/png", &b"\x89PNG\0"[..]),
        "/liar" => Page::new("200 OK", "text/plain", &b"a\0b"[..]),
        _ => Page { head: "200 OK".to_owned(), body: b"no type".to_vec() },
    });
    let options = FetchOptions::builder().hosts([format!("tea.test:{}", server.port)]).max_text(1001).max_bytes(10_000);
    let fetcher = Fetcher::new(options.private(PrivateAddresses::Allow).resolver(Here).build()).unwrap();
    let fetch = async |path: &str| fetcher.fetch(&server.url("tea.test", path)).await.unwrap();

    let long = fetch("/long").await;
    assert_eq!(long.text.unwrap(), "ü".repeat(500), "no letter is cut");
    assert_eq!(long.note.unwrap(), "the text was cut after 1001 of 6000 bytes");
    let endless = fetch("/endless").await;
    assert_eq!(
        endless.note.unwrap(),
        "the answer was cut after 10000 bytes; the text was cut after 1001 of 10000 bytes"
    );
    let image = fetch("/image").await;
    assert_eq!(
        (image.text, &*image.note.unwrap()),
        (None, "it is not text but 5 bytes of something else, which are not shown")
    );
    assert_eq!(fetch("/liar").await.text, None);
    assert_eq!(fetch("/none").await.text.unwrap(), "no type");
}

#[tokio::test]
async fn timeouts_and_a_missing_network_are_explained_and_retried() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let options = FetchOptions::builder().hosts([format!("tea.test:{port}")]).time(Duration::from_millis(200));
    let fetcher = Fetcher::new(options.private(PrivateAddresses::Allow).resolver(Here).build()).unwrap();
    let error = fetcher.fetch(&format!("http://tea.test:{port}/")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`tea.test:{port}` did not answer within 200ms; try again later, or another source")
    );
    assert!(error.is_transient());

    struct NoNetwork;
    impl HostResolver for NoNetwork {
        fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
            Box::pin(async { Err(std::io::Error::other("temporary failure in name resolution")) })
        }
    }
    let fetcher = Fetcher::new(FetchOptions::builder().hosts(["docs.rs"]).resolver(NoNetwork).build()).unwrap();
    let error = fetcher.fetch("https://docs.rs/").await.unwrap_err();
    assert_eq!(error.to_string(), "cannot reach `docs.rs`: temporary failure in name resolution; check the network");
    assert!(error.is_transient());
    let refused = FetchError::Host { host: String::new(), hosts: String::new() };
    assert!(!refused.is_transient(), "forbidden requests are not retried");
}

#[tokio::test]
async fn unlisted_host_can_need_an_approval() {
    let server = Server::start(|path| match path {
        "/away" => Page::redirect("http://third.test/"),
        _ => Page::text("hello"),
    });
    let options = FetchOptions::builder().hosts([format!("tea.test:{}", server.port)]).unlisted(Unlisted::Ask);
    let fetcher = Fetcher::new(options.private(PrivateAddresses::Allow).resolver(Here).build()).unwrap();
    let plain = fetcher.fetch(&server.url("other.test", "/")).await;
    assert!(matches!(plain, Err(FetchError::Host { .. })), "no approval was requested");
    let urls = [("tea.test", "/"), ("other.test", "/"), ("other.test", "/away"), ("no.test", "/")];
    let batch: Vec<_> = urls.map(|(host, path)| ("http_fetch", json!({"url": server.url(host, path)}))).into();
    let play = Play::new([Reply::calls(batch), done()]);
    let run = play.start(&desk::<Value>(move || vec![toolbox::http_fetch(&fetcher)]), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.1", "Work/0.2", "Work/0.3"]);
    assert_eq!(reasons(&run)[0], format!("the host `other.test:{}` is not listed", server.port));
    for call in ["Work/0.1", "Work/0.2"] {
        run.approve(&path(call), "ann").await.unwrap();
    }
    run.reject(&path("Work/0.3"), "no", "ann").await.unwrap();
    let results = results(&play.story(&run).await, "Work");

    assert!(results[0].is_success() && results[1].is_success(), "{results:?}");
    assert!(
        error_of(&results[2]).contains("`third.test` is not an allowed host"),
        "no approval was requested for its target"
    );
    assert_eq!(server.asked().len(), 3);
}
