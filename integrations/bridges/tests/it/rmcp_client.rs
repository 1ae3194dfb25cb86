//! Brains as tools of a client that is written with `rmcp`, the official library for Rust: over HTTP and over streams.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use positronic_bridges::Bridges;
use positronic_core::prelude::*;
use positronic_core::store::RunFilter;
use positronic_server::extension::LocalCaller;
use positronic_server::{Caller, Options, Scope, Shutdown};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest, ContentBlock,
    CustomRequest, DetailedTask, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    Implementation, ProtocolVersion, TaskPayload, TaskStatus, TaskStatusNotificationParams, UpdateTaskParams,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{Shop, waiting_order};

const ALL: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Decide];

/// A person at a client, who answers what is asked, and hears of tasks.
struct Person {
    answer: Value,
    capabilities: ClientCapabilities,
    asked: mpsc::UnboundedSender<String>,
    heard: mpsc::UnboundedSender<DetailedTask>,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(self.capabilities.clone(), Implementation::new("person", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        _ = self.asked.send(message);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(self.answer.clone()))
    }

    async fn on_task_status(&self, params: TaskStatusNotificationParams, _: NotificationContext<RoleClient>) {
        _ = self.heard.send(params.task);
    }
}

/// A client with its person.
struct Connected {
    client: RunningService<RoleClient, Person>,
    asked: mpsc::UnboundedReceiver<String>,
    heard: mpsc::UnboundedReceiver<DetailedTask>,
}

#[derive(Clone, Copy, Debug)]
enum Over {
    Http,
    Streams,
}

fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

fn capabilities(has_tasks: bool) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = Some(ElicitationCapability::default());
    if has_tasks {
        let tasks = BTreeMap::from([("io.modelcontextprotocol/tasks".to_owned(), serde_json::Map::new())]);
        capabilities.extensions = Some(tasks);
    }
    capabilities
}

/// Connects a client of the user `ann`.
async fn connect(shop: &Shop, over: Over, lifecycle: ClientLifecycleMode, has_tasks: bool) -> Connected {
    connect_with(shop, over, lifecycle, has_tasks, json!({ "approve": true })).await
}

/// Connects a client of the user `ann`, who gives one answer to all forms.
async fn connect_with(
    shop: &Shop,
    over: Over,
    lifecycle: ClientLifecycleMode,
    has_tasks: bool,
    answer: Value,
) -> Connected {
    let ((asking, asked), (hearing, heard)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let person = Person { answer, capabilities: capabilities(has_tasks), asked: asking, heard: hearing };
    let client = match over {
        Over::Http => {
            let token = shop.token(Some("ann"), &ALL).await;
            let url = format!("{}/api/v1/mcp", shop.listen().await);
            let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
            let transport = StreamableHttpClientTransport::from_config(config);
            person.serve_with_lifecycle(transport, lifecycle).await.unwrap()
        }
        Over::Streams => {
            let options = Options::builder().brains(shop.runner.clone()).build();
            let local = LocalCaller::new(shop.client.clone(), options, Caller::service("ann", ALL), "mcp");
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let (input, output) = tokio::io::split(theirs);
            tokio::spawn(async move { Bridges::builder().build().serve_mcp(local, input, output).await });
            person.serve_with_lifecycle(tokio::io::split(ours), lifecycle).await.unwrap()
        }
    };
    Connected { client, asked, heard }
}

fn refund(message: &str) -> CallToolRequestParams {
    let arguments = json!({ "message": message });
    CallToolRequestParams::new("Refund").with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

fn text(content: &[ContentBlock]) -> String {
    content.iter().filter_map(|block| block.as_text()).map(|block| block.text.as_str()).collect()
}

/// Runs a case over both transports, and in both revisions of the protocol.
async fn everywhere(case: impl Fn(Connected) -> BoxFuture<'static, ()>) {
    for over in [Over::Http, Over::Streams] {
        for lifecycle in [ClientLifecycleMode::Initialize, discover()] {
            let shop = Shop::new();
            case(connect(&shop, over, lifecycle, false).await).await;
        }
    }
}

#[tokio::test]
async fn brains_are_listed_and_called() {
    everywhere(|Connected { client, .. }| {
        Box::pin(async move {
            let tools = client.list_all_tools().await.unwrap();
            let result = client.call_tool(refund("hello")).await.unwrap();

            assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["Refund", "run_status"]);
            assert_eq!((text(&result.content).as_str(), result.is_error), ("You said hello.", Some(false)));
            client.cancel().await.unwrap();
        })
    })
    .await;
}

#[tokio::test]
async fn approval_is_asked_of_the_person() {
    everywhere(|Connected { client, mut asked, .. }| {
        Box::pin(async move {
            let result = client.call_tool(refund("pay")).await.unwrap();

            assert_eq!(text(&result.content), "Done.");
            let question = asked.try_recv().unwrap();
            assert!(question.contains("pay") && question.contains("it costs money"), "{question}");
            assert!(asked.try_recv().is_err(), "it is asked once");
        })
    })
    .await;
}

#[tokio::test]
async fn answer_that_does_not_fit_is_asked_again_with_the_reason_and_three_end_the_call() {
    for over in [Over::Http, Over::Streams] {
        for lifecycle in [ClientLifecycleMode::Initialize, discover()] {
            let shop = Shop::new();
            let answer = json!({ "accept": true });
            let Connected { client, mut asked, .. } = connect_with(&shop, over, lifecycle, false, answer).await;

            let result = client.call_tool(refund("pay")).await.unwrap();

            let mut messages = Vec::new();
            while let Ok(message) = asked.try_recv() {
                messages.push(message);
            }
            assert_eq!(messages.len(), 3, "{over:?}: {messages:?}");
            assert!(messages[2].contains("`approve` is neither true nor false"), "{over:?}: {messages:?}");
            let text = text(&result.content);
            assert!(result.is_error == Some(true) && text.contains("positronic approve"), "{over:?}: {text}");
        }
    }
}

/// Subscribes to a task until the server ends it, and returns the result. The library has no field for the tasks.
async fn subscribe(client: &RunningService<RoleClient, Person>, task: &str) -> Value {
    let params = json!({ "notifications": { "taskIds": [task] } });
    let request = CustomRequest::new("subscriptions/listen", Some(params));
    let result = client.send_request(ClientRequest::CustomRequest(request)).await.unwrap();
    serde_json::to_value(result).unwrap()
}

/// Approves what a task asks.
async fn approve(client: &RunningService<RoleClient, Person>, task: &DetailedTask) {
    let TaskPayload::InputRequired { input_requests } = &task.payload else { return };
    let answer = json!({ "action": "accept", "content": { "approve": true } });
    let answers = input_requests.keys().map(|key| (key.clone(), answer.clone())).collect();
    client.update_task(UpdateTaskParams::new(&*task.task.task_id, answers)).await.unwrap();
}

#[tokio::test]
async fn changes_of_a_task_are_notified() {
    for over in [Over::Http, Over::Streams] {
        let shop = Shop::new();
        let Connected { client, mut heard, .. } = connect(&shop, over, discover(), true).await;
        let CallToolResponse::Task(created) = client.call_tool_once(refund("pay")).await.unwrap() else {
            panic!("a run that waits is a task");
        };
        let deciding = async {
            let mut told = Vec::new();
            while told.last().is_none_or(|task: &DetailedTask| task.status() != TaskStatus::Completed) {
                told.push(heard.recv().await.unwrap());
                approve(&client, told.last().unwrap()).await;
            }
            told
        };

        let (result, told) = tokio::join!(subscribe(&client, &created.task.task_id), deciding);

        assert_eq!(result["resultType"], "complete", "{over:?}: {result}");
        let mut statuses: Vec<_> = told.iter().map(DetailedTask::status).collect();
        statuses.retain(|status| *status != TaskStatus::Working);
        assert_eq!(statuses, [TaskStatus::InputRequired, TaskStatus::Completed], "{over:?}: {told:?}");
        let TaskPayload::Completed { result } = &told.last().unwrap().payload else { panic!("{told:?}") };
        assert_eq!(result["content"][0]["text"], "Done.");
    }
}

/// A client of a command that stops.
async fn connect_until(
    shop: &Shop,
    shutdown: &Shutdown,
    lifecycle: ClientLifecycleMode,
) -> RunningService<RoleClient, ()> {
    let options = Options::builder().brains(shop.runner.clone()).shutdown(shutdown.clone()).build();
    let local = LocalCaller::new(shop.client.clone(), options, Caller::service("ann", ALL), "mcp");
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    tokio::spawn(async move { Bridges::builder().build().serve_mcp(local, input, output).await });
    ().serve_with_lifecycle(tokio::io::split(ours), lifecycle).await.unwrap()
}

#[tokio::test]
async fn command_that_stops_answers_its_calls_and_says_where_their_runs_continue() {
    for lifecycle in [ClientLifecycleMode::Initialize, discover()] {
        let (shop, shutdown) = (Shop::of(waiting_order(), &Bridges::builder().build(), &[]), Shutdown::default());
        let client = connect_until(&shop, &shutdown, lifecycle).await;
        let arguments = json!({ "message": "go" }).as_object().cloned().unwrap_or_default();
        let call = client.call_tool(CallToolRequestParams::new("Order").with_arguments(arguments));
        let stopped = async {
            while shop.client.store().runs(&RunFilter::default()).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            shutdown.begin();
        };

        let (result, ()) = tokio::join!(call, stopped);

        let (result, rows) = (result.unwrap(), shop.client.store().runs(&RunFilter::default()).await.unwrap());
        let said = format!("The server is stopping. The run {} continues with the next one", rows[0].run);
        assert!(text(&result.content).starts_with(&said), "{result:?}");
        assert_eq!(result.is_error, Some(true));
    }
}
