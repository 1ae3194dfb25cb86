//! Approval policy of a server's tools.

use rmcp::model::ToolAnnotations;

use super::names::{NAME, printable};
use super::options::McpOptions;

/// The known properties of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) read_only: bool,
    pub(super) idempotent: bool,
    pub(super) destructive: bool,
    /// The reason for an approval; `None` if none is needed.
    pub(super) asks: Option<String>,
}

impl Policy {
    /// Combines the author's options with the server's annotations, if they are trusted.
    pub(super) fn of(server: &str, tool: &str, options: &McpOptions, annotations: Option<&ToolAnnotations>) -> Self {
        let names = |list: &[String]| list.iter().any(|name| name == tool);
        let claims = |claim: fn(&ToolAnnotations) -> Option<bool>| annotations.and_then(claim);
        let claims_to_read = claims(|of| of.read_only_hint) == Some(true);
        let claims_to_add = claims(|of| of.destructive_hint) == Some(false);
        let trusts = options.trust_annotations;
        let read_only = names(&options.read_only) || (trusts && claims_to_read);
        let idempotent = names(&options.idempotent) || (trusts && claims(|of| of.idempotent_hint) == Some(true));
        // The protocol's default for unannotated tools is destructive.
        let destructive = !(read_only || (trusts && claims_to_add));
        let asks = (options.ask && !read_only && !names(&options.unattended)).then(|| {
            let tool = printable(tool, NAME);
            let subject = format!("`{tool}` of the MCP server `{server}`");
            match (claims_to_read, trusts) {
                (true, _) => format!(
                    "{subject} may change something; the server declares it as read-only, which is not confirmed"
                ),
                (false, true) if claims_to_add => format!("{subject} changes something"),
                (false, _) => format!("{subject} may change or destroy something"),
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
    fn annotations_count_only_if_trusted() {
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
    fn options_count_without_annotations() {
        let named = |options: McpOptions| of(&options, None);

        assert_eq!(named(McpOptions::builder().read_only(["search"]).build()), (true, false, false, false));
        assert_eq!(named(McpOptions::builder().idempotent(["search"]).build()), (false, true, true, true));
        assert_eq!(named(McpOptions::builder().unattended(["search"]).build()), (false, false, true, false));
        assert_eq!(named(McpOptions::builder().ask(false).build()), (false, false, true, false));
        assert_eq!(named(McpOptions::builder().read_only(["other"]).build()), (false, false, true, true));
    }
}
