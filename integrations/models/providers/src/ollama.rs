//! The address of an Ollama server, as `OLLAMA_HOST` names it.

/// The port without a scheme.
const PORT: &str = "11434";

/// Returns the base URL of `OLLAMA_HOST`, which Ollama reads as `host`, `host:port` or a URL. A server that listens on all
/// addresses is reached at the local one.
pub(crate) fn base_url(host: &str) -> String {
    let host = host.trim().trim_matches(['"', '\'']).trim();
    let (scheme, rest, port) = match host.split_once("://") {
        None => ("http", host, PORT),
        Some(("https", rest)) => ("https", rest, "443"),
        Some((scheme, rest)) => (scheme, rest, "80"),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (name, port) = match authority.rsplit_once(':') {
        // Colons within an IPv6 address are not followed by a port.
        Some((name, number)) if !name.contains(':') || name.ends_with(']') => (name, number),
        _ => (authority, port),
    };
    let port = if port.parse::<u16>().is_ok() { port } else { PORT };
    let name = match name {
        "" | "0.0.0.0" => "127.0.0.1".to_owned(),
        "::" | "[::]" => "[::1]".to_owned(),
        name if name.contains(':') && !name.starts_with('[') => format!("[{name}]"),
        name => name.to_owned(),
    };
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix("v1").map_or(path, |path| path.trim_end_matches('/'));
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{name}:{port}{slash}{path}/v1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_read_as_ollama_reads_it() {
        for (host, url) in [
            ("", "http://127.0.0.1:11434/v1"),
            ("example.com", "http://example.com:11434/v1"),
            ("example.com:1234", "http://example.com:1234/v1"),
            (":1234", "http://127.0.0.1:1234/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
            ("http://example.com", "http://example.com:80/v1"),
            ("https://example.com", "https://example.com:443/v1"),
            ("https://example.com:8443/ollama/", "https://example.com:8443/ollama/v1"),
            ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
            ("[::1]:1234", "http://[::1]:1234/v1"),
            ("::1", "http://[::1]:11434/v1"),
            ("[::]", "http://[::1]:11434/v1"),
            ("example.com:66000", "http://example.com:11434/v1"),
            (" \"10.0.0.1\" ", "http://10.0.0.1:11434/v1"),
        ] {
            assert_eq!(base_url(host), url, "{host}");
        }
    }
}
