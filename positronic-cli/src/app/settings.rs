//! Settings from the environment. No other module reads it.
//!
//! | variable | meaning |
//! |---|---|
//! | keys and base URLs of providers, `OPENAI_MODEL` | see [`Providers`] |
//! | `POSITRONIC_MODEL`, `POSITRONIC_HIGH_MODEL` | defaults of `--model` and `--high-model` |
//! | `POSITRONIC_STORE` | default of `--store` |
//! | `CARGO`, `CARGO_PKG_NAME` | the package whose binary `cargo run` started |
//! | `POSITRONIC_PRICES` | default of `--prices` |
//! | `POSITRONIC_WEBHOOKS` | default of `serve --webhooks`, a file that names the variables with the secrets |
//! | `POSITRONIC_CAPABILITIES` | file that says which models read which kinds of files |
//! | `POSITRONIC_ACTION_FORMAT` | default of `--action-format` |
//! | `POSITRONIC_LOG`, `POSITRONIC_LOG_FORMAT` | what is logged, and whether as text or as JSON |
//! | `OTEL_EXPORTER_OTLP_ENDPOINT` and other variables of OpenTelemetry | where `serve` exports traces and metrics to, with the feature `otel` |
//! | `USER`, `USERNAME` | the person at the terminal |
//! | `NO_COLOR` | no colours, unless `--color always` |
//! | `TERM`, `LC_ALL`, `LC_CTYPE`, `LANG` | whether the terminal can move the cursor and print non-ASCII characters |
//! | `TERM`, `TERM_PROGRAM`, `LC_TERMINAL`, `KITTY_WINDOW_ID`, `TMUX`, `STY` | whether and how the terminal shows images |

use std::env::VarError;
use std::ffi::OsString;
use std::fmt;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use positronic_providers::Providers;

use super::LogSettings;
use crate::render::Graphics;

/// The variables that ask for an export over OTLP.
const OTLP_ENDPOINTS: [&str; 3] =
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"];

/// The settings of one call of the command.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    /// The providers with their keys and base URLs.
    pub(crate) providers: Providers,
    /// The string of the normal tier's model.
    pub(crate) model: Option<String>,
    /// The string of the high tier's model.
    pub(crate) high_model: Option<String>,
    /// Path of the store.
    pub(crate) store: Option<PathBuf>,
    /// The package whose binary cargo has started.
    pub(crate) cargo_package: Option<String>,
    /// Path of the price table.
    pub(crate) prices: Option<PathBuf>,
    /// Path of the list of inbound webhooks.
    #[cfg(feature = "serve")]
    pub(crate) webhooks: Option<PathBuf>,
    /// Path of the table of what models read.
    pub(crate) capabilities: Option<PathBuf>,
    /// Request format of structured actions.
    pub(crate) action_format: Option<String>,
    /// The person at the terminal.
    pub(crate) user: Option<String>,
    /// What is logged, and how.
    pub(crate) log: LogSettings,
    /// Whether colours are unwanted.
    pub(crate) no_color: bool,
    /// Whether the terminal can do nothing but print.
    pub(crate) dumb: bool,
    /// Whether non-ASCII characters can be printed.
    pub(crate) unicode: bool,
    /// How the terminal shows images.
    pub(crate) graphics: Option<Graphics>,
    /// The variable that names an endpoint of OTLP.
    pub(crate) otlp_endpoint: Option<&'static str>,
    /// What is exported over OTLP.
    #[cfg(feature = "otel")]
    pub(crate) otlp: positronic_opentelemetry::otlp::OtlpOptions,
    /// Whether a person can be asked.
    pub(crate) stdin_is_terminal: bool,
    /// Whether data goes to a terminal.
    pub(crate) stdout_is_terminal: bool,
    /// Whether progress goes to a terminal.
    pub(crate) stderr_is_terminal: bool,
}

impl Settings {
    /// Reads the process's environment.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the configuration comes in here and nowhere else")]
    pub(crate) fn from_env() -> Self {
        Self {
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            ..Self::from_variables(|name| match std::env::var(name) {
                Ok(value) => Some(value.into()),
                Err(VarError::NotUnicode(value)) => Some(value),
                Err(VarError::NotPresent) => None,
            })
        }
    }

    /// Reads variables; an empty one counts as unset. Paths may be any bytes, as files are.
    #[must_use]
    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| variable(name).filter(|value| !value.to_string_lossy().trim().is_empty());
        let variable = |name: &str| path(name).map(|value| value.to_string_lossy().into_owned());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
        let utf8 = |locale: &String| locale.to_ascii_lowercase().replace('-', "").contains("utf8");
        Self {
            providers: Providers::from_variables(variable),
            model: variable("POSITRONIC_MODEL"),
            high_model: variable("POSITRONIC_HIGH_MODEL"),
            store: path("POSITRONIC_STORE").map(PathBuf::from),
            cargo_package: variable("CARGO").and_then(|_| variable("CARGO_PKG_NAME")),
            prices: path("POSITRONIC_PRICES").map(PathBuf::from),
            #[cfg(feature = "serve")]
            webhooks: path("POSITRONIC_WEBHOOKS").map(PathBuf::from),
            capabilities: path("POSITRONIC_CAPABILITIES").map(PathBuf::from),
            action_format: variable("POSITRONIC_ACTION_FORMAT"),
            user: variable("USER").or_else(|| variable("USERNAME")),
            log: LogSettings { filter: variable("POSITRONIC_LOG"), format: variable("POSITRONIC_LOG_FORMAT") },
            no_color: variable("NO_COLOR").is_some(),
            dumb: variable("TERM").is_some_and(|term| term == "dumb"),
            unicode: locale.as_ref().is_none_or(utf8),
            graphics: graphics(variable),
            otlp_endpoint: OTLP_ENDPOINTS
                .into_iter()
                .find(|name| variable(name).is_some())
                .filter(|_| !variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))),
            #[cfg(feature = "otel")]
            otlp: positronic_opentelemetry::otlp::OtlpOptions::from_variables(variable),
            ..Self::default()
        }
    }

    /// Warns of an endpoint to which this command exports nothing.
    pub(crate) fn warn_of_unused_endpoint(&self, is_server: bool) {
        let Some(variable) = self.otlp_endpoint else { return };
        match (cfg!(feature = "otel"), is_server) {
            (true, true) => {}
            (true, false) => tracing::warn!("{variable} is set, but only `serve` exports traces and metrics"),
            (false, _) => tracing::warn!(
                "{variable} is set, but this binary exports nothing: build it with the feature `otel` of `positronic-cli` and use `serve`"
            ),
        }
    }

    /// Reads a variable that a file names.
    #[must_use]
    #[cfg(feature = "serve")]
    #[expect(clippy::disallowed_methods, reason = "the configuration comes in here and nowhere else")]
    pub(crate) fn variable(name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.trim().is_empty())
    }

    /// Returns whether the environment has a model: a named one, or a configured provider.
    #[must_use]
    pub(crate) fn has_model(&self) -> bool {
        self.model.is_some() || self.providers.is_configured()
    }
}

/// Returns how a terminal shows images, as far as its variables say it: asking the terminal would read the person's input.
/// A multiplexer passes no image on.
fn graphics(variable: impl Fn(&str) -> Option<String>) -> Option<Graphics> {
    let value = |name: &str| variable(name).unwrap_or_default();
    let (term, program) = (value("TERM"), value("TERM_PROGRAM"));
    let is = |names: &[&str]| names.iter().any(|name| term.split('-').any(|part| part == *name) || program == *name);
    if is(&["screen", "tmux"]) || variable("TMUX").is_some() || variable("STY").is_some() {
        return None;
    }
    if is(&["kitty", "ghostty"]) || variable("KITTY_WINDOW_ID").is_some() {
        return Some(Graphics::Kitty);
    }
    if is(&["iTerm.app", "WezTerm", "mintty"]) || value("LC_TERMINAL") == "iTerm2" {
        return Some(Graphics::Iterm);
    }
    is(&["foot", "contour", "mlterm"]).then_some(Graphics::Sixel)
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("providers", &self.providers)
            .field("model", &self.model)
            .field("high_model", &self.high_model)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_variable_counts_as_unset_and_keys_are_redacted() {
        let settings = Settings::from_variables(|name| match name {
            "OPENAI_API_KEY" => Some("sk-secret".into()),
            "NO_COLOR" | "POSITRONIC_MODEL" => Some(OsString::new()),
            "LANG" => Some("C".into()),
            _ => None,
        });

        assert!(settings.has_model() && !settings.no_color && !settings.unicode);
        assert_eq!(settings.model, None);
        assert!(!format!("{settings:?}").contains("secret"));
    }

    #[test]
    fn protocol_of_images_follows_from_the_variables_and_multiplexers_have_none() {
        let graphics = |variables: &[(&str, &str)]| {
            graphics(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(graphics(&[("TERM", "xterm-kitty")]), Some(Graphics::Kitty));
        assert_eq!(graphics(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "ghostty")]), Some(Graphics::Kitty));
        assert_eq!(graphics(&[("TERM_PROGRAM", "iTerm.app")]), Some(Graphics::Iterm));
        assert_eq!(graphics(&[("LC_TERMINAL", "iTerm2")]), Some(Graphics::Iterm));
        assert_eq!(graphics(&[("TERM", "foot-extra")]), Some(Graphics::Sixel));
        assert_eq!(graphics(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "vscode")]), None);
        assert_eq!(graphics(&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")]), None);
        assert_eq!(graphics(&[("TERM", "screen.xterm-kitty"), ("STY", "1.a")]), None);
        assert_eq!(graphics(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux,1,0")]), None);
    }

    #[cfg(unix)]
    #[test]
    fn variable_that_is_not_utf_8_is_not_ignored() {
        use std::os::unix::ffi::OsStringExt as _;

        let settings = Settings::from_variables(|_| Some(OsString::from_vec(b"shop\xe9".to_vec())));

        assert_eq!(settings.store.unwrap().into_os_string().into_vec(), b"shop\xe9");
        assert_eq!(settings.model.unwrap(), "shop\u{fffd}");
    }
}
