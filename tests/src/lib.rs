//! Tests that cross the crates. The code blocks of the guide, the READMEs and the docs of the macros run as tests of this crate's docs.

#[cfg(test)]
mod book;

/// Makes a page's code blocks tests.
#[cfg(doctest)]
macro_rules! pages {
    ($($module:ident: $page:literal,)+) => {
        $(
            #[doc = include_str!(concat!("../../", $page))]
            mod $module {}
        )+
    };
}

#[cfg(doctest)]
pages! {
    readme: "README.md",
    introduction: "docs/guide/introduction.md",
    first_brain: "docs/guide/first-brain.md",
    prompts: "docs/guide/prompts.md",
    stages: "docs/guide/stages.md",
    groups: "docs/guide/groups.md",
    loop_guards: "docs/guide/guards.md",
    tools: "docs/guide/tools.md",
    approvals: "docs/guide/approvals.md",
    waiting: "docs/guide/waiting.md",
    nested_brains: "docs/guide/nested-brains.md",
    projects: "docs/guide/projects.md",
    child_runs: "docs/guide/child-runs.md",
    conversations: "docs/guide/conversations.md",
    schedules: "docs/guide/schedules.md",
    files: "docs/guide/files.md",
    plugins: "docs/guide/plugins.md",
    structured_actions: "docs/guide/structured-actions.md",
    limits: "docs/guide/limits.md",
    results: "docs/guide/results.md",
    testing: "docs/guide/testing.md",
    durability: "docs/guide/durability.md",
    failed_runs: "docs/guide/failed-runs.md",
    bridges: "docs/guide/bridges.md",
    mcp_server: "docs/guide/mcp-server.md",
    openai_api: "docs/guide/openai-api.md",
    a2a: "docs/guide/a2a.md",
    machines: "docs/guide/machines.md",
    restate: "docs/guide/restate.md",
    embedding: "docs/guide/embedding.md",
    serving: "docs/guide/serving.md",
    webhooks: "docs/guide/webhooks.md",
    inspector: "docs/guide/inspector.md",
    monitoring: "docs/guide/monitoring.md",
    command_line: "docs/guide/command-line.md",
    models: "docs/guide/models.md",
    native_models: "docs/guide/native-models.md",
    providers: "docs/guide/providers.md",
    mcp: "docs/guide/mcp.md",
    toolbox: "docs/guide/toolbox.md",
    events: "docs/guide/events.md",
    examples: "docs/guide/examples.md",
    core: "positronic-core/README.md",
    macros: "positronic-macros/src/lib.md",
    macro_brain: "positronic-macros/src/brain.md",
    macro_tool: "positronic-macros/src/tool.md",
    macro_actions: "positronic-macros/src/actions.md",
    cli: "positronic-cli/README.md",
    anthropic: "integrations/models/anthropic/README.md",
    gemini: "integrations/models/gemini/README.md",
    openai: "integrations/models/openai/README.md",
    all_models: "integrations/models/providers/README.md",
    server: "integrations/server/README.md",
    sqlite: "integrations/stores/sqlite/README.md",
}
