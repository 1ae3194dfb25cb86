//! The project that `positronic new` creates: files with placeholders for names.

use std::path::{Path, PathBuf};

/// The files: path and content.
pub(crate) const FILES: [(&str, &str); 8] = [
    ("Cargo.toml", include_str!("files/Cargo.toml.in")),
    ("README.md", include_str!("files/README.md")),
    (".gitignore", include_str!("files/gitignore")),
    ("src/main.rs", include_str!("files/src/main.rs.in")),
    ("src/lib.rs", include_str!("files/src/lib.rs.in")),
    ("src/brains/hello.rs", include_str!("files/src/brains/hello.rs.in")),
    ("src/brains/hello.cassette.jsonl", include_str!("files/src/brains/hello.cassette.jsonl")),
    ("tests/hello.rs", include_str!("files/tests/hello.rs.in")),
];

/// The new project's source of the framework.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A released version.
    Version(String),
    /// A git repository, at a commit, tag or branch.
    Git { url: String, rev: Option<String> },
    /// A checkout.
    Path(PathBuf),
}

impl Source {
    /// Renders a dependency on one of the framework's packages.
    fn dependency(&self, package: &str) -> String {
        let place = match self {
            Self::Version(version) => format!("version = {}", quoted(version)),
            Self::Git { url, rev: None } => format!("git = {}", quoted(url)),
            Self::Git { url, rev: Some(rev) } => format!("git = {}, rev = {}", quoted(url), quoted(rev)),
            Self::Path(checkout) => format!("path = {}", quoted(&checkout.join(package).to_string_lossy())),
        };
        format!("{{ {place} }}")
    }
}

/// Returns the checkout from which this binary was built, if it is still there.
pub(crate) fn checkout() -> Option<PathBuf> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    is_checkout(checkout).then(|| checkout.to_owned())
}

/// Returns whether a folder is a checkout of the framework.
pub(crate) fn is_checkout(folder: &Path) -> bool {
    ["positronic-core", "positronic-cli"].iter().all(|package| folder.join(package).join("Cargo.toml").is_file())
}

/// Renders a TOML string.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

/// Replaces the placeholders of a file.
pub(crate) fn filled(text: &str, package: &str, source: &Source) -> String {
    text.replace("{{package}}", package)
        .replace("{{crate}}", &package.replace('-', "_"))
        .replace("{{core}}", &source.dependency("positronic-core"))
        .replace("{{cli}}", &source.dependency("positronic-cli"))
}

/// Derives a package name from a folder's: lower case letters, digits and dashes, and no name that Cargo or Rust refuses.
pub(crate) fn package_name(folder: &str) -> Option<String> {
    let mut name = String::new();
    for letter in folder.chars().flat_map(char::to_lowercase) {
        match letter {
            'a'..='z' | '0'..='9' | '_' => name.push(letter),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    let name = name.trim_end_matches(['-', '_']).trim_start_matches('_');
    if !name.contains(|letter: char| letter.is_ascii_alphabetic()) {
        return None;
    }
    let refused = REFUSED.split(' ').any(|refused| refused == name)
        || name.starts_with("positronic")
        || name.starts_with(|letter: char| letter.is_ascii_digit());
    Some(if refused { format!("my-{name}") } else { name.to_owned() })
}

/// Names that a package cannot have: Rust's keywords, Cargo's own names, and those of the template's dependencies.
const REFUSED: &str = "\
    abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if \
    impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true try \
    type typeof unsafe unsized use virtual where while yield test core std alloc proc-macro build deps examples \
    incremental proc_macro serde serde_json tokio schemars insta";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_name_becomes_a_package_name() {
        let names = ["My Agent", "support_agent", "2nd try", "Shop é!", "loop", "positronic", "a--b", "_x_"];
        let packages: Vec<_> = names.iter().map(|name| package_name(name).unwrap()).collect();

        assert_eq!(
            packages,
            ["my-agent", "support_agent", "my-2nd-try", "shop", "my-loop", "my-positronic", "a-b", "x"]
        );
        assert_eq!(package_name("42"), None);
        assert_eq!(package_name("日本"), None);
    }

    #[test]
    fn framework_comes_from_a_version_a_repository_or_a_checkout() {
        let git = |rev: Option<&str>| Source::Git {
            url: "https://example.com/p.git".to_owned(),
            rev: rev.map(str::to_owned),
        };

        assert_eq!(Source::Version("0.1.0".to_owned()).dependency("x"), r#"{ version = "0.1.0" }"#);
        assert_eq!(git(None).dependency("x"), r#"{ git = "https://example.com/p.git" }"#);
        assert_eq!(git(Some("v1")).dependency("x"), r#"{ git = "https://example.com/p.git", rev = "v1" }"#);
        assert_eq!(Source::Path("/a \"b".into()).dependency("x"), r#"{ path = "/a \"b/x" }"#);
    }

    #[test]
    fn no_placeholder_remains() {
        for (path, text) in FILES {
            assert!(!filled(text, "my-agent", &Source::Version("1".to_owned())).contains("{{"), "{path}");
        }
    }
}
