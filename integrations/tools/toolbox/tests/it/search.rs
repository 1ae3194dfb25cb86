//! `search_web`: hits from the page of a search engine, or a clear error.

use std::net::IpAddr;
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::model::scripted::Reply;
use positronic_toolbox::{
    self as toolbox, DuckDuckGo, FetchOptions, Fetcher, HostResolver, PrivateAddresses, SearchError, SearchHit,
    SearchOptions, SearchProvider, WebSearch,
};
use serde_json::{Value, json};

use crate::desk::desk;
use crate::server::{Here, Page, Server};
use crate::support::{Play, done, error_of, results, success};

const FOUND: &str = include_str!("pages/duckduckgo.html");
const NONE: &str = include_str!("pages/duckduckgo_none.html");
const CHALLENGE: &str = include_str!("pages/duckduckgo_challenge.html");

fn serving(status: &'static str, page: impl Into<String>) -> Server {
    let page = page.into();
    Server::start(move |_| Page::new(status, "text/html; charset=UTF-8", page.clone()))
}

fn engine(server: &Server) -> DuckDuckGo {
    DuckDuckGo::at(&server.url("duck.test", "/html/"), server.fetcher(&["duck.test"])).unwrap()
}

fn web(server: &Server) -> WebSearch {
    WebSearch::new(engine(server), SearchOptions::default())
}

#[tokio::test]
async fn hits_have_titles_redirect_targets_and_snippets() {
    let server = serving("200 OK", FOUND);
    let web = web(&server);
    let play = Play::new([Reply::call("search_web", json!({"query": " tea & \"milk\" "})), done()]);

    let story = play.run(&desk::<Value>(move || vec![toolbox::search_web(&web)]), ()).await;

    let hits = json!([
        {
            "title": "Tea - Encyclopedia",
            "url": "https://en.example.org/wiki/Tea?a=1&b=2#History",
            "snippet": "Tea is an aromatic beverage prepared by pouring hot water over leaves & buds.",
        },
        {"title": "How to brew \"proper\" tea", "url": "https://plain.example/brew", "snippet": "Boil water. Wait."},
        {"title": "茶", "url": "https://zh.example/%E8%8C%B6", "snippet": ""},
    ]);
    assert_eq!(results(&story, "Work")[0], success(json!({"results": hits})), "no advertisement, and no script");
    assert_eq!(server.asked(), [format!("duck.test:{} /html/?q=tea+%26+%22milk%22", server.port)]);
}

#[tokio::test]
async fn author_sets_the_number_of_hits_and_the_region() {
    let server = serving("200 OK", FOUND);
    let web = WebSearch::new(engine(&server).region("de-de"), SearchOptions::builder().max_hits(2).build());

    assert_eq!(web.search("tea").await.unwrap().len(), 2);
    assert!(server.asked()[0].ends_with("?q=tea&kl=de-de"));
}

#[tokio::test]
async fn empty_result_is_reported_and_not_an_error() {
    let server = serving("200 OK", NONE);
    let web = web(&server);
    let play = Play::new([Reply::call("search_web", json!({"query": "qwxyzzyq"})), done()]);

    let story = play.run(&desk::<Value>(move || vec![toolbox::search_web(&web)]), ()).await;

    assert_eq!(results(&story, "Work")[0], success(json!({"results": [], "note": "nothing was found"})));
}

#[tokio::test]
async fn captcha_page_is_never_an_empty_result() {
    for (status, page) in
        [("202 Accepted", CHALLENGE), ("200 OK", CHALLENGE), ("202 Accepted", "<html></html>"), ("403 Forbidden", "")]
    {
        let error = web(&serving(status, page)).search("tea").await.unwrap_err();
        assert!(matches!(error, SearchError::Blocked { .. }), "{status}: {error}");
        assert!(!error.is_transient(), "asking again at once makes it worse");
    }
    let error = web(&serving("202 Accepted", CHALLENGE)).search("tea").await.unwrap_err().to_string();
    assert!(error.starts_with("DuckDuckGo requires a CAPTCHA (HTTP status 202)"), "{error}");
}

#[tokio::test]
async fn page_with_another_layout_is_an_error() {
    let pages = [
        "<html><body>Hello.</body></html>".to_owned(),
        String::new(),
        FOUND.replace("class=\"result ", "class=\"hit "),
        FOUND.replace("result__a", "hit__a"),
        FOUND.replace("uddg=", "to=").replace("https://plain.example/brew", "#"),
    ];
    for page in pages {
        let error = web(&serving("200 OK", page.clone())).search("tea").await.unwrap_err();
        assert!(matches!(error, SearchError::Layout { .. }), "{error}: {page}");
        assert!(error.to_string().contains("has an unknown layout"), "{error}");
    }
    let error = web(&serving("500 Internal Server Error", FOUND)).search("tea").await.unwrap_err();
    assert!(matches!(error, SearchError::Status { status: 500, .. }) && error.is_transient());
}

#[tokio::test]
async fn missing_network_is_an_explained_error() {
    struct NoNetwork;
    impl HostResolver for NoNetwork {
        fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
            Box::pin(async { Err(std::io::Error::other("temporary failure in name resolution")) })
        }
    }
    let fetcher =
        Fetcher::new(FetchOptions::builder().hosts(["html.duckduckgo.com"]).resolver(NoNetwork).build()).unwrap();
    let engine = DuckDuckGo::at("https://html.duckduckgo.com/html/", fetcher).unwrap();
    let web = WebSearch::new(engine, SearchOptions::default());

    let error = web.search("tea").await.unwrap_err();

    assert!(error.is_transient());
    assert_eq!(
        error.to_string(),
        "cannot reach `html.duckduckgo.com`: temporary failure in name resolution; check the network"
    );
}

#[tokio::test]
async fn unresponsive_engine_is_a_timeout() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let options = FetchOptions::builder().hosts([format!("duck.test:{port}")]).time(Duration::from_millis(100));
    let fetcher = Fetcher::new(options.private(PrivateAddresses::Allow).resolver(Here).build()).unwrap();
    let engine = DuckDuckGo::at(&format!("http://duck.test:{port}/html/"), fetcher).unwrap();

    let error = WebSearch::new(engine, SearchOptions::default()).search("tea").await.unwrap_err().to_string();

    assert!(error.contains("did not answer within 100ms"), "{error}");
}

#[tokio::test]
async fn invalid_queries_are_refused_and_a_custom_engine_is_asked() {
    struct Shelf;
    impl SearchProvider for Shelf {
        fn search<'a>(&'a self, query: &'a str, _: usize) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
            let hit = move |n| SearchHit { title: format!("{query} {n}"), url: String::new(), snippet: String::new() };
            Box::pin(async move {
                if query == "fire" {
                    Err(SearchError::Other("it burns".to_owned()))
                } else {
                    Ok((0..50).map(hit).collect())
                }
            })
        }
    }
    let web = WebSearch::new(Shelf, SearchOptions::default());
    assert_eq!(web.search("tea").await.unwrap().len(), 10, "an engine that gives more is cut");
    let queries = ["", " \n", &"x".repeat(501), "fire"].map(|query| ("search_web", json!({"query": query})));
    let batch = queries.into_iter().chain([("search_web", json!({"q": "tea"}))]);
    let play = Play::new([Reply::calls(batch), done()]);

    let story = play.run(&desk::<Value>(move || vec![toolbox::search_web(&web)]), ()).await;

    let results = results(&story, "Work");
    assert_eq!(error_of(&results[0]), "the query is empty; say what to search for");
    assert_eq!(error_of(&results[1]), error_of(&results[0]));
    assert_eq!(error_of(&results[2]), "the query is longer than 500 bytes; search for less");
    assert_eq!(error_of(&results[3]), "the search failed: it burns");
    assert!(error_of(&results[4]).contains("the arguments do not match the schema"));
}
