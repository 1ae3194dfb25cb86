//! Servers as processes: shell scripts that speak MCP.

use std::time::Duration;

use positronic_core::model::scripted::Reply;
use positronic_mcp::{McpCommand, McpOptions, McpServer};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::desk::{desk, eventually};
use crate::support::{Play, done, error_of, results, success};

/// Answers the handshake and the list; `CALL` is the reaction to a call whose id is in `$id`.
const SCRIPT: &str = r#"
echo "banner of a careless program"
echo "starting" >&2
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
say() { reply "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
while read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
        *'"initialize"'*) reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"0"}}' ;;
        *'"tools/list"'*) reply '{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*) CALL ;;
    esac
done
"#;

fn script(call: &str) -> McpCommand {
    McpCommand::new("sh").arg("-c").arg(SCRIPT.replace("CALL", call))
}

fn server(command: McpCommand) -> McpServer {
    McpServer::new("sh", command, McpOptions::builder().ask(false).build()).unwrap()
}

fn act(times: usize) -> Vec<Reply> {
    (0..times).map(|_| Reply::call("sh__act", json!({}))).chain([done()]).collect()
}

/// Returns whether a process with this command line runs.
fn runs(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.replace('\0', " ").trim() == mark)
}

#[tokio::test]
async fn process_is_asked_and_its_banner_on_stdout_is_harmless() {
    let server = server(script("say hello"));
    let play = Play::new(act(1));

    let story = play.run(desk(&[&server]), ()).await;

    assert_eq!(results(&story, "Work"), [success("hello")]);
}

#[tokio::test]
async fn server_inherits_no_environment_of_this_process() {
    let folder = TempDir::new().unwrap();
    let command = script(r#"say "$(env | sort | tr '\n' ' ')in $PWD""#).env("TEA", "green").env("LANG", "C");
    let place = folder.path().canonicalize().unwrap();
    let play = Play::new(act(1));

    let story = play.run(desk(&[&server(command.folder(&place))]), ()).await;

    let results = results(&story, "Work");
    let positronic_core::record::ToolResult::Success { output: Value::String(said), .. } = &results[0] else {
        panic!("{results:?}")
    };
    // A shell sets some variables itself.
    let own = ["PWD=", "OLDPWD=", "SHLVL=", "_=", "POSITRONIC_MCP_SERVER="];
    let (variables, at) = said.rsplit_once("in ").unwrap();
    let variables: Vec<_> =
        variables.split_whitespace().filter(|one| !own.iter().any(|own| one.starts_with(own))).collect();
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    assert_eq!(variables, ["LANG=C", path, "TEA=green"]);
    assert_eq!(at, place.display().to_string());
}

#[tokio::test]
async fn dead_process_is_reported_with_its_status_and_last_output_and_restarted() {
    let folder = TempDir::new().unwrap();
    let command = script("if test -e died; then say back; else touch died; echo 'no more tea' >&2; exit 3; fi");
    let play = Play::new(act(2));

    let story = play.run(desk(&[&server(command.folder(folder.path()))]), ()).await;

    let results = results(&story, "Work");
    assert_eq!(
        error_of(&results[0]),
        "the MCP server `sh` ended before it answered: it ended with exit status: 3; last output: starting / no more \
         tea; whether the call took effect is unknown"
    );
    assert_eq!(results[1], success("back"));
}

#[tokio::test]
async fn secret_variable_is_redacted_in_results_and_last_output() {
    let folder = TempDir::new().unwrap();
    let command =
        script("if test -e said; then echo \"bad $API_KEY\" >&2; exit 3; else touch said; say \"with $API_KEY\"; fi");
    let key = "k3y-0123456789abc";
    let play = Play::new(act(2));

    let story = play.run(desk(&[&server(command.env("API_KEY", key).folder(folder.path()))]), ()).await;

    let results = results(&story, "Work");
    assert_eq!(results[0], success("with [hidden]"));
    assert!(error_of(&results[1]).contains("starting / bad [hidden]"), "{results:?}");
    let ends = McpCommand::new("sh").args(["-c", "echo \"bad $API_KEY\" >&2; exit 64"]).env("API_KEY", key);
    let ends = server(ends).connect().await.unwrap_err().to_string();
    assert!(ends.ends_with("last output: bad [hidden]"), "{ends}");
}

#[tokio::test]
async fn missing_program_or_non_server_is_reported() {
    let missing = server(McpCommand::new("no-such-program-4711")).connect().await.unwrap_err().to_string();
    assert!(
        missing.starts_with("the MCP server `sh` did not start: cannot find the program `no-such-program-4711`; searched in /usr/local/sbin"),
        "{missing}"
    );
    let nowhere = server(McpCommand::new("sh").folder("/no/such/folder")).connect().await.unwrap_err().to_string();
    assert!(nowhere.contains("or the folder `/no/such/folder`"), "{nowhere}");

    let ends = McpCommand::new("sh").args(["-c", "echo 'usage: tea [cup]' >&2; exit 64"]);
    let ends = server(ends).connect().await.unwrap_err().to_string();
    assert_eq!(ends, "the MCP server `sh` did not start: it ended with exit status: 64; last output: usage: tea [cup]");

    let refuses = r#"read -r line; printf '{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"members only"}}\n'; sleep 60"#;
    let refuses = server(McpCommand::new("sh").args(["-c", refuses])).connect().await.unwrap_err().to_string();
    assert!(refuses.contains("the server rejected the handshake: members only (code -32600)"), "{refuses}");
}

#[tokio::test]
async fn process_group_ends_with_the_last_clone_of_the_server() {
    let server = server(script("sleep 7711 & say started"));
    let play = Play::new(act(1));
    play.run(desk(&[&server]), ()).await;
    assert!(runs("sleep 7711"));

    drop(play);
    drop(server);

    eventually("the end of what the server has started", || !runs("sleep 7711")).await;
}

#[tokio::test]
async fn process_outside_the_group_ends_with_the_server_too() {
    for (leaves, mark) in [
        ("setsid sleep 7713 &", "sleep 7713"),
        ("(setsid sh -c 'sleep 7714 & sleep 7714' > /dev/null 2>&1 < /dev/null &);", "sleep 7714"),
        ("setsid sh -c 'env -i sleep 7715; :' &", "sleep 7715"),
    ] {
        let server = server(script(&format!("{leaves} say started")));
        let play = Play::new(act(1));
        play.run(desk(&[&server]), ()).await;
        eventually("its start", || runs(mark)).await;

        drop(play);
        drop(server);

        eventually("the end of what has left the group", || !runs(mark)).await;
    }
}

#[tokio::test]
async fn server_inherits_no_descriptors_of_this_process() {
    let held = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&held, rustix::io::FdFlags::empty()).unwrap();
    // `ls` itself opens the folder.
    let server = server(script(r#"say "$(ls /proc/self/fd | tr '\n' ' ')""#));

    let story = Play::new(act(1)).run(desk(&[&server]), ()).await;

    assert_eq!(results(&story, "Work"), [success("0 1 2 3 ")]);
    drop(held);
}

#[tokio::test]
async fn server_that_ignores_end_of_input_is_killed() {
    let server = server(script("exec sleep 7712"));
    let options = McpOptions { call_timeout: Duration::from_millis(200), ..server.options().clone() };
    let server = McpServer::new("sh", script("exec sleep 7712"), options).unwrap();
    let play = Play::new(act(1));
    let story = play.run(desk(&[&server]), ()).await;
    assert!(error_of(&results(&story, "Work")[0]).contains("did not answer within 200ms"));
    assert!(runs("sleep 7712"));

    server.close().await;

    eventually("its end", || !runs("sleep 7712")).await;
}

#[tokio::test]
async fn closed_server_is_restarted_when_needed() {
    let server = server(script("say $$"));
    let pid = async || {
        let story = Play::new(act(1)).run(desk(&[&server]), ()).await;
        results(&story, "Work").remove(0)
    };
    let first = pid().await;
    assert_eq!(first, pid().await);

    server.close().await;

    assert_ne!(first, pid().await);
}
