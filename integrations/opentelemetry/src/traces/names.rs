//! Names of attributes: those of the semantic conventions, and Positronic's own.

pub(super) const ERROR_TYPE: &str = "error.type";
pub(super) const HTTP_STATUS: &str = "http.response.status_code";
pub(super) const USER_ID: &str = "user.id";

pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const AGENT_VERSION: &str = "gen_ai.agent.version";
pub(super) const CONVERSATION_ID: &str = "gen_ai.conversation.id";
pub(super) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OPERATION_NAME: &str = "gen_ai.operation.name";
pub(super) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(super) const PROVIDER_NAME: &str = "gen_ai.provider.name";
pub(super) const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
pub(super) const RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const RESPONSE_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(super) const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const USAGE_CACHED: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const USAGE_INPUT: &str = "gen_ai.usage.input_tokens";
pub(super) const USAGE_OUTPUT: &str = "gen_ai.usage.output_tokens";
pub(super) const USAGE_REASONING: &str = "gen_ai.usage.reasoning.output_tokens";

pub(super) const ATTEMPT: &str = "positronic.attempt";
pub(super) const COST: &str = "positronic.cost";
pub(super) const CURRENCY: &str = "positronic.currency";
pub(super) const EVENT: &str = "positronic.event";
pub(super) const ITERATION: &str = "positronic.iteration";
pub(super) const OUTCOME: &str = "positronic.loop.outcome";
pub(super) const PATH: &str = "positronic.path";
pub(super) const RELATION: &str = "positronic.relation";
pub(super) const RETRIED: &str = "positronic.retried";
pub(super) const RUN: &str = "positronic.run";
pub(super) const SEGMENT: &str = "positronic.segment";
pub(super) const STAGE: &str = "positronic.stage";
pub(super) const STATUS: &str = "positronic.status";
pub(super) const SUSPENDED: &str = "positronic.suspended";
pub(super) const WAIT_ACTOR: &str = "positronic.wait.actor";
pub(super) const WAIT_CHANNEL: &str = "positronic.wait.channel";
pub(super) const WAIT_EDITED: &str = "positronic.wait.edited";
pub(super) const WAIT_KIND: &str = "positronic.wait.kind";
pub(super) const WAIT_LIMIT: &str = "positronic.wait.limit";
pub(super) const WAIT_REASON: &str = "positronic.wait.reason";
pub(super) const WAIT_VERDICT: &str = "positronic.wait.verdict";
pub(super) const WAIT_WEBHOOKS: &str = "positronic.wait.webhooks";
pub(super) const WORKER: &str = "positronic.worker";

#[cfg(test)]
mod tests {
    #![expect(deprecated, reason = "the crate marks the GenAI names as moved to a repository of their own")]

    use opentelemetry_semantic_conventions::attribute as semantic;

    #[test]
    fn names_are_those_of_the_semantic_conventions() {
        let pairs = [
            (super::ERROR_TYPE, semantic::ERROR_TYPE),
            (super::HTTP_STATUS, semantic::HTTP_RESPONSE_STATUS_CODE),
            (super::USER_ID, semantic::USER_ID),
            (super::AGENT_NAME, semantic::GEN_AI_AGENT_NAME),
            (super::AGENT_VERSION, semantic::GEN_AI_AGENT_VERSION),
            (super::CONVERSATION_ID, semantic::GEN_AI_CONVERSATION_ID),
            (super::INPUT_MESSAGES, semantic::GEN_AI_INPUT_MESSAGES),
            (super::OPERATION_NAME, semantic::GEN_AI_OPERATION_NAME),
            (super::OUTPUT_MESSAGES, semantic::GEN_AI_OUTPUT_MESSAGES),
            (super::PROVIDER_NAME, semantic::GEN_AI_PROVIDER_NAME),
            (super::REQUEST_MAX_TOKENS, semantic::GEN_AI_REQUEST_MAX_TOKENS),
            (super::REQUEST_MODEL, semantic::GEN_AI_REQUEST_MODEL),
            (super::REQUEST_TEMPERATURE, semantic::GEN_AI_REQUEST_TEMPERATURE),
            (super::RESPONSE_FINISH_REASONS, semantic::GEN_AI_RESPONSE_FINISH_REASONS),
            (super::RESPONSE_ID, semantic::GEN_AI_RESPONSE_ID),
            (super::RESPONSE_MODEL, semantic::GEN_AI_RESPONSE_MODEL),
            (super::RESPONSE_FIRST_CHUNK, semantic::GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK),
            (super::SYSTEM_INSTRUCTIONS, semantic::GEN_AI_SYSTEM_INSTRUCTIONS),
            (super::TOOL_ARGUMENTS, semantic::GEN_AI_TOOL_CALL_ARGUMENTS),
            (super::TOOL_CALL_ID, semantic::GEN_AI_TOOL_CALL_ID),
            (super::TOOL_NAME, semantic::GEN_AI_TOOL_NAME),
            (super::TOOL_RESULT, semantic::GEN_AI_TOOL_CALL_RESULT),
            (super::TOOL_TYPE, semantic::GEN_AI_TOOL_TYPE),
            (super::USAGE_CACHED, semantic::GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS),
            (super::USAGE_INPUT, semantic::GEN_AI_USAGE_INPUT_TOKENS),
            (super::USAGE_OUTPUT, semantic::GEN_AI_USAGE_OUTPUT_TOKENS),
            (super::USAGE_REASONING, semantic::GEN_AI_USAGE_REASONING_OUTPUT_TOKENS),
        ];
        for (own, standard) in pairs {
            assert_eq!(own, standard);
        }
    }
}
