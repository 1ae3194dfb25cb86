//! Rejected functions and their messages. The behaviour of tools is tested from outside, with the compiler.

use proc_macro2::TokenStream;

/// Returns the messages of all errors, in order.
fn errors(flags: &str, function: &str) -> Vec<String> {
    let expanded = expand(flags, function);
    let file: syn::File = syn::parse2(expanded).unwrap();
    let macros = file.items.into_iter().filter_map(|item| match item {
        syn::Item::Macro(item) => Some(item.mac),
        _ => None,
    });
    macros.map(|mac| mac.parse_body::<syn::LitStr>().unwrap().value()).collect()
}

fn expand(flags: &str, function: &str) -> TokenStream {
    super::expand(flags.parse().unwrap(), function.parse().unwrap())
}

#[track_caller]
fn refused(flags: &str, function: &str, beginning: &str) {
    let errors = errors(flags, function);
    assert!(errors.len() == 1 && errors[0].starts_with(beginning), "{errors:#?}");
}

#[test]
fn valid_tool_has_no_error() {
    let flags = r#"exit, read_only, idempotent, destructive, sequential, approval = "a", approval_expires = "1h", not_editable, name = "a.b", title = "T", timeout = 3, retries = 2,"#;
    assert_eq!(
        errors(flags, "/// Asks.\npub async fn ask(query: String, _: ToolContext) -> Result<()> { Ok(()) }"),
        [""; 0]
    );
}

#[test]
fn function_is_async_plain_documented_and_has_a_result() {
    refused("", "/// A.\nfn a() -> R { x }", "a tool is an async function");
    refused("", "/// A.\nasync unsafe fn a() -> R { x }", "a tool is a plain async function");
    refused("", "/// A.\nasync extern \"C\" fn a() -> R { x }", "a tool is a plain async function");
    refused("", "async fn a() -> R { x }", "a tool needs a doc comment");
    refused("", "///  \nasync fn a() -> R { x }", "a tool needs a doc comment");
    refused("", "/// A.\nasync fn a() { x }", "a tool returns a result");
    refused("", "/// A.\nasync fn a() -> R;", "a tool is a function with a body");
}

#[test]
fn arguments_have_names_and_owned_types() {
    refused("", "/// A.\nasync fn a(&self) -> R { x }", "a tool is a free function");
    refused("", "/// A.\nasync fn a(Query { text }: Query) -> R { x }", "an argument has a name");
    refused("", "/// A.\nasync fn a(_: Query) -> R { x }", "an argument has a name");
    refused("", "/// A.\nasync fn a(ref q: Query) -> R { x }", "an argument has a name");
    refused(
        "",
        "/// A.\nasync fn a(q: &str) -> R { x }",
        "arguments are decoded from JSON and have to be owned: use `String`",
    );
    refused(
        "",
        "/// A.\nasync fn a(q: Vec<&'static [u8]>) -> R { x }",
        "arguments are decoded from JSON and have to be owned: use `Vec",
    );
    refused(
        "",
        "/// A.\nasync fn a(q: Cow<'_, str>) -> R { x }",
        "arguments are decoded from JSON and have to be owned: use a type",
    );
    refused(
        "",
        "/// A.\nasync fn a(q: impl Into<String>) -> R { x }",
        "arguments are decoded from JSON, which needs a type",
    );
    refused("", "/// A.\nasync fn a(#[cfg(unix)] q: u8) -> R { x }", "an argument cannot be switched off");
    assert_eq!(errors("", "/// A.\nasync fn a(mut q: Cow<'static, str>) -> R { x }"), [""; 0]);
}

#[test]
fn context_is_unique_and_by_value() {
    refused("", "/// A.\nasync fn a(c: ToolContext, d: core::ToolContext) -> R { x }", "a tool has one context");
    refused("", "/// A.\nasync fn a(c: &ToolContext) -> R { x }", "the context is taken by value");
}

#[test]
fn aliased_context_is_found_by_its_name_or_its_type() {
    for parameter in ["cx: Call", "_ctx: Call", "call: Cx", "_: a::Context"] {
        let expanded = expand("", &format!("/// A.\nasync fn a(q: String, {parameter}) -> R {{ x }}")).to_string();
        assert!(expanded.contains("AnyToolContext > :: State"), "{expanded}");
    }
    refused("", "/// A.\nasync fn a(cx: &Call) -> R { x }", "the context is taken by value");
}

#[test]
fn flags_are_known_unique_and_have_valid_values() {
    let a = "/// A.\nasync fn a() -> R { x }";
    refused("readonly", a, "unknown flag: a tool knows `exit`, `read_only`,");
    refused("exit::now", a, "unknown flag");
    refused("exit, exit", a, "`exit` is given twice");
    refused("exit = true", a, "`exit` stands alone");
    refused("approval", a, "`approval` needs a text: `approval = \"Refunds need a person\"`");
    refused("title = \" \"", a, "`title` needs a text");
    refused("name = \"a/b\"", a, "a tool's name has 1 to 64 letters");
    refused("", "/// A.\nasync fn größe() -> R { x }", "a tool's name has 1 to 64 letters");
    assert_eq!(errors("name = \"size\"", "/// A.\nasync fn größe() -> R { x }"), [""; 0]);
    refused("retries = \"2\"", a, "`retries` needs a number");
    refused("timeout = 0", a, "`timeout` needs a time above zero");
    refused("timeout = \"soon\"", a, "`timeout` needs a time above zero");
    refused("approval = \"a\", approval_expires = \"soon\"", a, "`approval_expires` needs a time above zero");
    refused("approval = \"a\", not_editable = true", a, "`not_editable` stands alone");
}

#[test]
fn approval_flags_require_an_approval() {
    let a = "/// A.\nasync fn a() -> R { x }";
    refused("approval_expires = \"1h\"", a, "`approval_expires` is about an approval");
    refused("not_editable", a, "`not_editable` is about an approval, which this tool does not ask for: add");
}

#[test]
fn all_mistakes_are_reported_together() {
    let errors = errors("exit = 1, loud", "fn a(Q(q): Q, r: &str) -> R { x }");
    assert_eq!(errors.len(), 6, "{errors:#?}");
}

#[test]
fn unfinished_body_passes_through() {
    let expanded = expand("", "/// A.\nasync fn a(q: String) -> R { q. }").to_string();
    assert!(expanded.contains("{ q . }"), "{expanded}");
}

#[test]
fn invalid_parameters_keep_a_function_of_the_same_name() {
    let expanded = expand("", "/// A.\npub async fn a(q: &str) -> R { x }").to_string();
    assert!(expanded.contains("pub fn a < O , S , V > ()"), "{expanded}");
    assert!(expanded.contains("async fn a (q : & str) -> R { x }"), "{expanded}");
}
