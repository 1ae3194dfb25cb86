//! Arguments of the commands for brains: `new`, `list`, `show`, `run` and `work`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use positronic_core::record::{ActionFormat, AskForMore, Budget, Money, OnLimit};

use super::value_parsers::{iterations, money, name, output_tokens, run_id, text, time, tokens};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").multiple(false).args(["version", "git", "path"]))]
pub(crate) struct NewArgs {
    /// The new folder; its name becomes the package name
    pub(crate) dir: PathBuf,
    /// The framework's version on crates.io
    #[arg(long)]
    pub(crate) version: Option<String>,
    /// The framework's git repository
    #[arg(long, value_name = "URL")]
    pub(crate) git: Option<String>,
    /// The commit, tag or branch of the git repository
    #[arg(long, requires = "git")]
    pub(crate) rev: Option<String>,
    /// A local checkout of the framework [default: the one that this command was built from]
    #[arg(long, value_name = "CHECKOUT")]
    pub(crate) path: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A brain's title or a run's id, or a prefix of either; a brain takes precedence
    #[arg(value_name = "BRAIN|RUN")]
    pub(crate) what: String,
    /// File with model prices for the run's cost, as TOML or JSON [default: POSITRONIC_PRICES, else a built-in table
    /// of 2026]
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Draw the brain, as a tree of text or in Mermaid's language
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, default_missing_value = "text", conflicts_with = "json")]
    pub(crate) diagram: Option<DiagramForm>,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A form of a diagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiagramForm {
    /// A tree of text
    Text,
    /// A flowchart for Mermaid
    Mermaid,
}

/// Environment variables in `run --help`.
pub(super) const ENVIRONMENT: &str = "\
Environment:
  OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY
                    API keys of the providers; `positronic models` lists what is set
  OPENAI_BASE_URL   an OpenAI-compatible endpoint, including the version; the default is OpenAI
  OPENAI_MODEL      its default model
  POSITRONIC_MODEL, POSITRONIC_HIGH_MODEL
                    defaults of --model and --high-model
  POSITRONIC_STORE  default of --store
  POSITRONIC_PRICES default of --prices
  POSITRONIC_ACTION_FORMAT
                    default of --action-format
  NO_COLOR          disables colours

Without a key and a named model, the brain's bundled cassette is played.";

/// Notes about waiting runs in `run --help`.
const WAITING: &str = "\
On a terminal, a run that waits for a person asks there: answer, or leave the question for later. Without a terminal, or \
after you leave a question, the command exits with code 3 and prints how to answer; the run stays in the store.

Ctrl-C cancels the run. At a question, Ctrl-C leaves the question for later: nothing is decided, and the run stays; \
only a run with --memory ends. SIGTERM, and SIGHUP when the terminal closes, release the run: effects in flight \
finish, the run stays, and `work` continues it; code 143. A closed output pipe \
changes nothing.

A cassette provides the brain's options and also answers approvals and waits, unless --ask is given. It replaces \
only the model and the people: steps and tools run for real, with all their effects.";

/// Notes in `work --help`.
const WORK: &str = "\
Signals and work are separate. `approve`, `send` and `resume` only record a signal, from any terminal, \
at once. A process with the brain's code and a model does the work that follows: the `run` that is still open, or \
`work`. `work` also claims runs whose worker has died.

Without a run, `work` serves all runs until Ctrl-C. With a run, it shows the run as `run` does, asks on a terminal, and \
ends with the run or at a question without a terminal. Ctrl-C cancels nothing: effects in flight \
finish, and the runs are released for another worker; a second Ctrl-C ends at once. At a question, Ctrl-C leaves it \
for later.

A cassette replaces only the model: people answer approvals and waits, as in `run --ask`.";

/// Output of the progress.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct OutputArgs {
    /// Write every event as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Read and write line by line, even on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
}

/// Options of a brain.
#[derive(Debug, Args)]
pub(crate) struct OptionArgs {
    /// An option, parsed by the brain's schema; `a.b=1` sets a nested field, a repeated key fills a list
    #[arg(short = 'o', value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// All options as JSON, @FILE, or - for stdin; -o overrides them
    #[arg(long = "options", value_name = "JSON")]
    pub(crate) document: Option<String>,
}

/// Which model answers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ModelArgs {
    /// The model as PROVIDER/NAME, such as anthropic/claude-haiku-5-5; without a provider, a model of OPENAI_BASE_URL
    /// [default: POSITRONIC_MODEL, else that of the only provider with a key]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The model of loops in the high tier [default: POSITRONIC_HIGH_MODEL, else the normal model; with --model, that one]
    #[arg(long, value_name = "MODEL")]
    pub(crate) high_model: Option<String>,
    /// Play a cassette instead of asking a model
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "high_model", "action_format", "max_output_tokens", "reasoning", "headers", "proxy"])]
    pub(crate) cassette: Option<PathBuf>,
    /// Request format of structured actions, for brains that use them [default: POSITRONIC_ACTION_FORMAT, else schema]
    #[arg(long, value_name = "FORM", value_enum)]
    pub(crate) action_format: Option<ActionFormatArg>,
    /// File with model prices, as TOML or JSON, for the run's cost and money limits [default: POSITRONIC_PRICES]
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
}

/// Settings of requests to providers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct EndpointArgs {
    /// Maximum tokens per answer, including reasoning, such as 4000 or 4k; a lower limit of the brain takes precedence
    #[arg(long, value_name = "NUMBER", value_parser = output_tokens, allow_negative_numbers = true)]
    pub(crate) max_output_tokens: Option<u32>,
    /// Reasoning effort: none, minimal, low, medium, high, or another value of the model; a brain's own setting takes
    /// precedence
    #[arg(long, value_name = "EFFORT", value_parser = name)]
    pub(crate) reasoning: Option<String>,
    /// Extra HTTP header for the providers of both tiers, such as 'X-Title: Help Desk'; repeatable
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Proxy for requests to models, http://HOST:PORT or socks5://HOST:PORT
    #[arg(long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
    /// Read <think> and <tool_call> in texts as thinking and calls, for OpenAI-compatible servers that do not separate them
    #[arg(long)]
    pub(crate) text_marks: bool,
}

impl EndpointArgs {
    /// Returns the first flag that was given.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let Self { max_output_tokens, reasoning, headers, proxy, text_marks } = self;
        let given = [
            ("--max-output-tokens", max_output_tokens.is_some()),
            ("--reasoning", reasoning.is_some()),
            ("--header", !headers.is_empty()),
            ("--proxy", proxy.is_some()),
            ("--text-marks", *text_marks),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

/// Request format of structured actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ActionFormatArg {
    /// A structured output format, supported by most endpoints
    Schema,
    /// A stricter format that ties each input to its action, for llama.cpp and vLLM
    Grammar,
    /// Instructions in the prompt, for endpoints without structured output
    Plain,
}

impl From<ActionFormatArg> for ActionFormat {
    fn from(form: ActionFormatArg) -> Self {
        match form {
            ActionFormatArg::Schema => Self::Schema,
            ActionFormatArg::Grammar => Self::Grammar,
            ActionFormatArg::Plain => Self::Plain,
        }
    }
}

/// Budget of a run or a conversation; it overrides the brain's.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BudgetArgs {
    /// Maximum cost of model answers, such as 2.50, in the currency of --prices
    #[arg(long, value_name = "AMOUNT", value_parser = money, allow_negative_numbers = true)]
    pub(crate) max_money: Option<Money>,
    /// Maximum tokens of requests and answers, such as 20000 or 20k
    #[arg(long, value_name = "NUMBER", value_parser = tokens, allow_negative_numbers = true)]
    pub(crate) max_tokens: Option<u64>,
    /// Maximum iterations of all loops together
    #[arg(long, value_name = "NUMBER", value_parser = iterations, allow_negative_numbers = true)]
    pub(crate) max_iterations: Option<u64>,
    /// Maximum active time, such as 10m; time spent waiting for people does not count
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    pub(crate) max_time: Option<Duration>,
    /// Action at the limit: fail the run, end the open loop and continue, or ask a person for more [default: the setting of
    /// the brain or the conversation, else fail]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) at_limit: Option<AtLimit>,
}

/// Action when a budget is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AtLimit {
    Fail,
    End,
    Ask,
}

/// Budget of each answer in a chat.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Budget of each answer")]
pub(crate) struct AnswerBudgetArgs {
    /// Maximum cost of the model answers to one message
    #[arg(long, value_name = "AMOUNT", value_parser = money, allow_negative_numbers = true)]
    pub(crate) answer_max_money: Option<Money>,
    /// Maximum tokens for one message
    #[arg(long, value_name = "NUMBER", value_parser = tokens, allow_negative_numbers = true)]
    pub(crate) answer_max_tokens: Option<u64>,
    /// Maximum iterations of all loops for one message
    #[arg(long, value_name = "NUMBER", value_parser = iterations, allow_negative_numbers = true)]
    pub(crate) answer_max_iterations: Option<u64>,
    /// Maximum active time for one message
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    pub(crate) answer_max_time: Option<Duration>,
    /// Action at the limit, as with --at-limit
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) answer_at_limit: Option<AtLimit>,
}

impl AnswerBudgetArgs {
    /// Returns the budget, if any of its flags was given.
    pub(crate) fn budget(&self) -> Option<Budget> {
        let Self { answer_max_money, answer_max_tokens, answer_max_iterations, answer_max_time, answer_at_limit } =
            *self;
        let (max_money, max_tokens, max_iterations) = (answer_max_money, answer_max_tokens, answer_max_iterations);
        let (max_time, at_limit) = (answer_max_time, answer_at_limit);
        BudgetArgs { max_money, max_tokens, max_iterations, max_time, at_limit }.budget()
    }
}

impl BudgetArgs {
    /// Returns the budget, if any of its flags was given.
    pub(crate) fn budget(&self) -> Option<Budget> {
        let Self { max_money, max_tokens, max_iterations, max_time, at_limit } = *self;
        let on_limit = match at_limit {
            Some(AtLimit::Fail) => Some(OnLimit::Error),
            Some(AtLimit::End) => Some(OnLimit::Exit),
            Some(AtLimit::Ask) | None => None,
        };
        let ask = (at_limit == Some(AtLimit::Ask)).then(AskForMore::default);
        let mut budget = Budget::default();
        (budget.max_money, budget.max_tokens, budget.max_iterations) = (max_money, max_tokens, max_iterations);
        (budget.max_time, budget.on_limit, budget.ask) = (max_time, on_limit, ask);
        (budget != Budget::default()).then_some(budget)
    }
}

#[derive(Debug, Args)]
#[command(after_help = format!("{WAITING}\n\n{ENVIRONMENT}"))]
pub(crate) struct RunArgs {
    /// The brain's title or a prefix of it; case, spaces and dashes are ignored
    pub(crate) brain: String,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
    /// Message to the brain: its first loop begins with it, as with a message in `chat`
    #[arg(long, value_name = "TEXT", value_parser = text)]
    pub(crate) message: Option<String>,
    /// Attach a file to the message, at most 32 MiB, or a URL that the model's provider loads; repeatable
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) attach: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Record the run's model traffic and the answers of people
    #[arg(long, value_name = "FILE", conflicts_with = "cassette")]
    pub(crate) record: Option<PathBuf>,
    /// Ask people even if the cassette has their answers
    #[arg(long)]
    pub(crate) ask: bool,
    /// The run's id; an existing id continues that run
    #[arg(long, value_name = "ID", value_parser = run_id)]
    pub(crate) id: Option<String>,
    /// The user that the run belongs to
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) user: Option<String>,
    /// A tag of the run, by which `runs` can list it; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Store the run in memory only, so that it ends with this command
    #[arg(long, conflicts_with = "id")]
    pub(crate) memory: bool,
    #[command(flatten, next_help_heading = "Budget of the run")]
    pub(crate) budget: BudgetArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{WORK}\n\n{ENVIRONMENT}"))]
pub(crate) struct WorkArgs {
    /// The run [default: all runs]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Serve only the runs of this brain, or of one version of it; repeat it for several
    #[arg(long, value_name = "TITLE[@VERSION]", conflicts_with = "run")]
    pub(crate) brain: Vec<String>,
    /// Exit when no work is left
    #[arg(long, conflicts_with = "run")]
    pub(crate) once: bool,
    /// Write the whole run as a cassette when the command ends, as `record` does
    #[arg(long, value_name = "FILE", requires = "run", conflicts_with = "cassette")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Notes in `serve --help`.
#[cfg(feature = "serve")]
const SERVE: &str = "\
The command prints the URL of the inspector page with a code that logs one browser in, once and within 15 minutes. Other \
programs use the API under /api/v1 with a token, and Prometheus reads /metrics with one.

It also works on the runs as `work` does, unless --no-work is given. Ctrl-C releases them for another worker.";

#[cfg(feature = "serve")]
#[derive(Debug, Args)]
#[command(after_help = format!("{SERVE}\n\n{ENVIRONMENT}"))]
pub(crate) struct ServeArgs {
    /// Address to listen on; only addresses of this machine are possible without tokens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4747")]
    pub(crate) listen: std::net::SocketAddr,
    /// URL under which clients reach the server, if another one is in front of it
    #[arg(long, value_name = "URL", value_parser = public_url)]
    pub(crate) public_url: Option<positronic_server::Url>,
    /// Address or range of a proxy in front, such as 10.0.0.0/8, whose X-Forwarded-For and X-Forwarded-Proto count; repeatable
    #[arg(long, value_name = "CIDR")]
    pub(crate) trusted_proxy: Vec<positronic_server::IpRange>,
    /// Origin whose pages may use the API with a token, such as https://app.example.org; repeatable
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(crate) cors_origin: Vec<positronic_server::Url>,
    /// Who decides, of those with the right to: names, or not-the-starter; TOOL= in front limits it to calls of a tool;
    /// repeatable, and all must hold [default: all]
    #[arg(long, value_name = "[TOOL=]WHO")]
    pub(crate) deciders: Vec<positronic_server::DeciderRule>,
    /// Protocol of existing frontends to speak as well: ag-ui, ai-sdk, mcp, openai, a2a; repeatable, or separated by commas
    #[arg(long, value_name = "PROTOCOL", value_delimiter = ',')]
    pub(crate) bridge: Vec<positronic_bridges::Protocol>,
    /// Field whose values the API and the page show as [redacted], at any depth; repeatable
    #[arg(long, value_name = "FIELD", value_parser = name)]
    pub(crate) redact: Vec<String>,
    /// File with the inbound webhooks, as TOML or JSON [default: POSITRONIC_WEBHOOKS]
    #[arg(long, value_name = "FILE")]
    pub(crate) webhooks: Option<PathBuf>,
    /// Let outgoing webhooks reach addresses that are not public, and unencrypted ones
    #[arg(long)]
    pub(crate) private_webhooks: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    /// Only serve, and leave the work on the runs to other processes
    #[arg(long)]
    pub(crate) no_work: bool,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Work only on the runs of this brain, or of one version of it; repeat it for several
    #[arg(long, value_name = "TITLE[@VERSION]", conflicts_with = "no_work")]
    pub(crate) brain: Vec<String>,
}

/// What `serve` writes of its work on stderr.
#[cfg(feature = "serve")]
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct LogArgs {
    /// Write only failures and retries
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Log")]
    pub(crate) quiet: bool,
    /// Write every event of the runs [default: starts, ends, waits and decisions, failures and retries]
    #[arg(short, long, help_heading = "Log")]
    pub(crate) verbose: bool,
    /// Format of the lines, also of POSITRONIC_LOG's
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Log")]
    pub(crate) log: LogFormat,
}

/// The format of the log of `serve`.
#[cfg(feature = "serve")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people
    #[default]
    Text,
    /// A JSON object a line, with the time, the level, the run and the event
    Json,
}

/// Parses the URL of a server, under which it adds paths.
#[cfg(feature = "serve")]
fn public_url(text: &str) -> Result<positronic_server::Url, String> {
    let expected = "expected a URL such as https://runs.example.org or https://example.org/agents";
    let url: positronic_server::Url = text.parse().map_err(|_| expected.to_owned())?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let has_more =
        url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some();
    if is_web && !has_more { Ok(url) } else { Err(format!("{expected}, without a user, a query or a fragment")) }
}

/// Parses an origin: a URL without a path.
#[cfg(feature = "serve")]
fn origin(text: &str) -> Result<positronic_server::Url, String> {
    let url: positronic_server::Url =
        text.parse().map_err(|_| "expected an origin such as https://app.example.org".to_owned())?;
    if url.origin().is_tuple() && url.origin().ascii_serialization() == text.trim_end_matches('/') {
        Ok(url)
    } else {
        Err("expected an origin such as https://app.example.org, without a path".to_owned())
    }
}
