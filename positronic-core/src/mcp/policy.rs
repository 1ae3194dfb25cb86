//! Who is asked before a call, and what may run again.

use rmcp::model::ToolAnnotations;

use super::names::{NAME, plain};
use super::options::McpOptions;

/// What is known about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) read_only: bool,
    pub(super) idempotent: bool,
    pub(super) destructive: bool,
    /// Why a person is asked; none where nobody is.
    pub(super) asks: Option<String>,
}

impl Policy {
    /// Reads the author's word, and the server's where the author believes it.
    pub(super) fn of(server: &str, tool: &str, options: &McpOptions, annotations: Option<&ToolAnnotations>) -> Self {
        let names = |list: &[String]| list.iter().any(|name| name == tool);
        let claims = |claim: fn(&ToolAnnotations) -> Option<bool>| annotations.and_then(claim);
        let claims_to_read = claims(|of| of.read_only_hint) == Some(true);
        let claims_to_add = claims(|of| of.destructive_hint) == Some(false);
        let trusts = options.trust_annotations;
        let read_only = names(&options.read_only) || (trusts && claims_to_read);
        let idempotent = names(&options.idempotent) || (trusts && claims(|of| of.idempotent_hint) == Some(true));
        // What says nothing of itself may destroy something, as the protocol has it.
        let destructive = !(read_only || (trusts && claims_to_add));
        let asks = (options.ask && !read_only && !names(&options.unattended)).then(|| {
            let tool = plain(tool, NAME);
            let whose = format!("`{tool}` of the MCP server `{server}`");
            match (claims_to_read, trusts) {
                (true, _) => format!(
                    "{whose} may change something; the server says that it only reads, and nobody has confirmed it"
                ),
                (false, true) if claims_to_add => format!("{whose} changes something"),
                (false, _) => format!("{whose} may change or destroy something"),
            }
        });
        Self { read_only, idempotent, destructive, asks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &McpOptions, annotations: Option<&ToolAnnotations>) -> (bool, bool, bool, bool) {
        let Policy { read_only, idempotent, destructive, asks } = Policy::of("docs", "search", options, annotations);
        (read_only, idempotent, destructive, asks.is_some())
    }

    #[test]
    fn a_servers_word_counts_only_where_the_author_believes_it() {
        let (doubts, trusts) = (McpOptions::default(), McpOptions::builder().trust_annotations(true).build());
        let reads = ToolAnnotations::new().read_only(true).idempotent(true);
        let adds = ToolAnnotations::new().destructive(false);
        let destroys = ToolAnnotations::new().destructive(true).idempotent(true);

        //                                       read_only, idempotent, destructive, asks
        assert_eq!(of(&doubts, Some(&reads)), (false, false, true, true));
        assert_eq!(of(&trusts, Some(&reads)), (true, true, false, false));
        assert_eq!(of(&doubts, Some(&adds)), (false, false, true, true));
        assert_eq!(of(&trusts, Some(&adds)), (false, false, false, true));
        assert_eq!(of(&trusts, Some(&destroys)), (false, true, true, true));
        assert_eq!(of(&trusts, None), (false, false, true, true));
        assert_eq!(of(&doubts, None), (false, false, true, true));
    }

    #[test]
    fn the_authors_word_counts_without_the_servers() {
        let named = |options: McpOptions| of(&options, None);

        assert_eq!(named(McpOptions::builder().read_only(["search"]).build()), (true, false, false, false));
        assert_eq!(named(McpOptions::builder().idempotent(["search"]).build()), (false, true, true, true));
        assert_eq!(named(McpOptions::builder().unattended(["search"]).build()), (false, false, true, false));
        assert_eq!(named(McpOptions::builder().ask(false).build()), (false, false, true, false));
        assert_eq!(named(McpOptions::builder().read_only(["other"]).build()), (false, false, true, true));
    }
}
