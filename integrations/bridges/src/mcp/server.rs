//! The server of the protocol: requests of a client as requests of a caller.

use positronic_core::record::RunId;
use positronic_server::extension::{NewRun, RequestContext as CallerContext};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, ErrorCode, GetTaskParams, GetTaskResult,
    Implementation, JsonObject, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};

use super::answers::answers;
use super::call::BrainCall;
use super::calls_in_flight::ToolServer;
use super::listen::{LISTEN_TO_TASKS, listen};
use super::outcome::{error_of, refused};
use super::task;
use super::tools::{BrainTool, RUN_STATUS, run_status};

/// The instructions that the server gives its clients.
const INSTRUCTIONS: &str = "Each tool runs a workflow. A workflow may need the approval or the answer of a person: only a person \
decides that. A run continues when its caller goes away; `run_status` reads its result later.";

impl ToolServer {
    async fn status(
        &self,
        caller: &CallerContext,
        arguments: Option<JsonObject>,
    ) -> Result<CallToolResponse, ErrorData> {
        let run = arguments.as_ref().and_then(|arguments| arguments.get("run"));
        let run = run.ok_or_else(|| ErrorData::invalid_params("`run` is missing", None))?;
        let run = run.as_str().ok_or_else(|| ErrorData::invalid_params("`run`: expected the id as a text", None))?;
        let result = match caller.run_row(&RunId::new(run)).await {
            Ok(row) => task::status(self, caller, &row).await,
            Err(problem) => Err(problem),
        };
        Ok(result.unwrap_or_else(|problem| refused(&problem)).into())
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks().build();
        let name = Implementation::new("positronic", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        let brains = caller.brains().map_err(|problem| error_of(&problem))?;
        let mut tools: Vec<_> = BrainTool::all(brains).iter().map(BrainTool::listed).collect();
        tools.push(run_status());
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        if request.name == RUN_STATUS {
            return self.status(&caller, request.arguments).await;
        }
        let brains = caller.brains().map_err(|problem| error_of(&problem))?;
        let tool = BrainTool::all(brains).into_iter().find(|tool| tool.name == request.name);
        let tool = tool.ok_or_else(|| {
            ErrorData::invalid_params(
                format!("there is no tool `{}` that this caller may use; `tools/list` lists them", request.name),
                None,
            )
        })?;
        let id = context.id.clone();
        let call = BrainCall { server: self, caller: &caller, context };
        let answer = match &request.request_state {
            Some(state) => {
                let responses = request.input_responses.unwrap_or_default();
                call.resumed(state, &tool.definition.title, &responses).await
            }
            None => {
                let given = match tool.given(request.arguments) {
                    Ok(given) => given,
                    Err(problem) => return Ok(refused(&problem).into()),
                };
                let brain = tool.definition.title.as_str();
                let new = NewRun::builder().brain(brain).options(given.options).message(given.message).build();
                call.begun(&tool, new).await
            }
        };
        // The notification that has cancelled the call still needs its run.
        if !call.context.ct.is_cancelled() {
            self.ended(&id);
        }
        answer
    }

    async fn on_cancelled(&self, cancelled: CancelledNotificationParam, context: NotificationContext<RoleServer>) {
        let run = cancelled.request_id.as_ref().and_then(|id| self.ended(id));
        let (Some(run), Ok(caller)) = (run, self.caller(&context.extensions)) else { return };
        let reason = cancelled.reason.or_else(|| Some("the client has cancelled its call".to_owned()));
        if let Err(problem) = task::cancel(&caller, &run, reason).await {
            tracing::warn!(%run, kind = problem.kind().slug(), "refused to cancel the run of a call");
        }
    }

    // The defaults answer with empty lists, as if the server had what it does not declare.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != LISTEN_TO_TASKS {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        listen(self, &self.caller(&context.extensions)?, &request, &context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        let task = task::detailed(self, &caller, &RunId::new(request.task_id)).await;
        task.map(GetTaskResult::new).map_err(|problem| error_of(&problem))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context.extensions)?;
        let run = RunId::new(request.task_id);
        let sent = answers(&caller, &run, &request.input_responses).await;
        let sent = sent.map_err(|problem| error_of(&problem))?;
        // The questions stay open, and the client reads them again.
        sent.misfits.values().next().map_or(Ok(()), |problem| Err(error_of(problem)))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context.extensions)?;
        let cancelled = task::cancel(&caller, &RunId::new(request.task_id), None).await;
        cancelled.map_err(|problem| error_of(&problem))
    }
}
