//! Commands about brains: what they are, and running them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use positronic_core::record::{ActionFormat, AskForMore, Budget, Money, OnLimit};

use super::values::{iterations, money, name, output_tokens, said, time, tokens};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").multiple(false).args(["version", "git", "path"]))]
pub(crate) struct NewArgs {
    /// The folder to make; its name becomes the package's name
    pub(crate) dir: PathBuf,
    /// The framework's version, once it is published
    #[arg(long)]
    pub(crate) version: Option<String>,
    /// The framework's git repository
    #[arg(long, value_name = "URL")]
    pub(crate) git: Option<String>,
    /// A commit, tag or branch of the git repository
    #[arg(long, requires = "git")]
    pub(crate) rev: Option<String>,
    /// A checkout of the framework
    #[arg(long, value_name = "CHECKOUT")]
    pub(crate) path: Option<PathBuf>,
    /// Writes JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Writes JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A brain's title or its beginning, else a run's id or its beginning; a brain wins
    #[arg(value_name = "BRAIN|RUN")]
    pub(crate) what: String,
    /// The prices that a run's cost is reckoned with, as TOML or JSON; the environment's POSITRONIC_PRICES, or a small table
    /// of March 2026, where nothing is said
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Writes JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `run --help` says about the environment.
pub(super) const ENVIRONMENT: &str = "\
Environment:
  OPENAI_API_KEY    the key of the endpoint
  OPENAI_BASE_URL   the endpoint, up to and including the version; OpenAI's own where it is not set
  OPENAI_MODEL      the model where --model names none
  POSITRONIC_STORE  where runs are kept, where --store names no file
  POSITRONIC_PRICES what models cost, where --prices names no file
  POSITRONIC_ACTION_FORMAT
                    how an endpoint is asked for decisions, where --action-format names no form
  NO_COLOR          no colours

Without a key and an address, the brain's own cassette is played.";

/// What `run --help` says about runs that wait.
const WAITING: &str = "\
A run that waits for a person asks on a terminal: answer, or leave it for later. Elsewhere, and when it is left, the \
command ends with code 3 and says how to answer; the run stays.

Ctrl-C cancels the run. At a question it does what leaving it for later does: nothing is decided, and the run stays; \
only a run in memory alone ends with it. The system's request to end (TERM), and a terminal that goes away (HUP), let go of it: what is \
in flight runs to its end, the run stays, and `work` goes on with it; code 143. A reader of the output that goes away \
changes nothing.

A cassette that is played brings its options, and answers approvals and waits, too, unless --ask is said. It answers for \
the model and for people alone: steps and tools run for real, with all their effects.";

/// What `work --help` says.
const WORK: &str = "\
Deciding and working are two things. `approve`, `send` and `resume` only write down what was said, from any terminal, \
at once. The work that follows is done by whoever has the brain's code and a model: the `run` that is still open, or \
`work`. It takes up runs whose worker has died, too.

Without a run, it serves all of them until Ctrl-C. With one, it shows it as `run` does, asks on a terminal, and ends \
with the run or when nobody is here to answer. Ctrl-C cancels nothing: what is in flight \
runs to its end, and the runs are released for another worker; Ctrl-C again ends at once. At a question it leaves that \
for later.

A cassette answers for the model alone: its approvals and waits are left to people, as in `run --ask`.";

/// Which model answers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ModelArgs {
    /// The model; `openai-responses/NAME` asks over the Responses API, everything else over chat completions
    #[arg(long, value_name = "NAME", conflicts_with = "cassette")]
    pub(crate) model: Option<String>,
    /// Plays a recording instead of asking a model
    #[arg(long, value_name = "FILE")]
    pub(crate) cassette: Option<PathBuf>,
    /// How an endpoint is asked for decisions, by brains that want them; the environment's POSITRONIC_ACTION_FORMAT, else schema,
    /// where nothing is said
    #[arg(long, value_name = "FORM", value_enum, conflicts_with = "cassette")]
    pub(crate) action_format: Option<ActionFormatArg>,
    /// What models cost, as TOML or JSON, for the run's cost and its limits of money; the environment's POSITRONIC_PRICES
    /// where nothing is said
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
}

/// What requests to an endpoint have, and how they get there.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct EndpointArgs {
    /// The most tokens of each answer, reasoning included, such as 4000 or 4k; a brain that sets fewer keeps its own
    #[arg(long, value_name = "NUMBER", value_parser = output_tokens, conflicts_with = "cassette", allow_negative_numbers = true)]
    pub(crate) max_output_tokens: Option<u32>,
    /// How much the model reasons: none, minimal, low, medium, high, or another word of the endpoint; a brain that sets it keeps
    /// its own
    #[arg(long, value_name = "EFFORT", value_parser = name, conflicts_with = "cassette")]
    pub(crate) reasoning: Option<String>,
    /// A header of each request to the endpoint, such as 'X-Title: Help Desk'; can be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", conflicts_with = "cassette")]
    pub(crate) headers: Vec<String>,
    /// The proxy on the way to the endpoint, http://HOST:PORT or socks5://HOST:PORT; none where nothing is said
    #[arg(long, value_name = "URL", conflicts_with = "cassette")]
    pub(crate) proxy: Option<String>,
}

impl EndpointArgs {
    /// Returns the first flag that was given.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let Self { max_output_tokens, reasoning, headers, proxy } = self;
        let given = [
            ("--max-output-tokens", max_output_tokens.is_some()),
            ("--reasoning", reasoning.is_some()),
            ("--header", !headers.is_empty()),
            ("--proxy", proxy.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

/// How an endpoint is asked for decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ActionFormatArg {
    /// As a structured output format, which most endpoints take
    Schema,
    /// As one that says which input belongs to which action, for llama.cpp and vLLM
    Grammar,
    /// In words alone, for endpoints that have no structured output
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

/// What a run or a conversation may use, whatever the brain says.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BudgetArgs {
    /// What the answers of models may cost, such as 2.50, in the currency of the prices that --prices names
    #[arg(long, value_name = "AMOUNT", value_parser = money, allow_negative_numbers = true)]
    pub(crate) max_money: Option<Money>,
    /// How many tokens may be used, of requests and answers, such as 20000 or 20k
    #[arg(long, value_name = "NUMBER", value_parser = tokens, allow_negative_numbers = true)]
    pub(crate) max_tokens: Option<u64>,
    /// How many iterations all loops may have together
    #[arg(long, value_name = "NUMBER", value_parser = iterations, allow_negative_numbers = true)]
    pub(crate) max_iterations: Option<u64>,
    /// How long it may be active, such as 10m; time spent waiting for people does not count
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    pub(crate) max_time: Option<Duration>,
    /// What using it up does: fails the run, ends the loop that is open and goes on, or asks a person for more; as the brain or
    /// the conversation has it, else fail, where nothing is said
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) at_limit: Option<AtLimit>,
}

/// What using up a budget does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AtLimit {
    Fail,
    End,
    Ask,
}

/// What each answer of a chat may use.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Budget of each answer")]
pub(crate) struct AnswerBudgetArgs {
    /// What the models' answers to one message may cost together
    #[arg(long, value_name = "AMOUNT", value_parser = money, allow_negative_numbers = true)]
    pub(crate) answer_max_money: Option<Money>,
    /// How many tokens may be used for one message
    #[arg(long, value_name = "NUMBER", value_parser = tokens, allow_negative_numbers = true)]
    pub(crate) answer_max_tokens: Option<u64>,
    /// How many iterations all loops may have for one message
    #[arg(long, value_name = "NUMBER", value_parser = iterations, allow_negative_numbers = true)]
    pub(crate) answer_max_iterations: Option<u64>,
    /// How long the brain may be active for one message
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    pub(crate) answer_max_time: Option<Duration>,
    /// What using it up does, as with --at-limit
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) answer_at_limit: Option<AtLimit>,
}

impl AnswerBudgetArgs {
    /// Returns the budget, where anything was said of one.
    pub(crate) fn budget(&self) -> Option<Budget> {
        let Self { answer_max_money, answer_max_tokens, answer_max_iterations, answer_max_time, answer_at_limit } =
            *self;
        let (max_money, max_tokens, max_iterations) = (answer_max_money, answer_max_tokens, answer_max_iterations);
        let (max_time, at_limit) = (answer_max_time, answer_at_limit);
        BudgetArgs { max_money, max_tokens, max_iterations, max_time, at_limit }.budget()
    }
}

impl BudgetArgs {
    /// Returns the budget, where anything was said of one.
    pub(crate) fn budget(&self) -> Option<Budget> {
        let Self { max_money, max_tokens, max_iterations, max_time, at_limit } = *self;
        let on_limit = match at_limit {
            Some(AtLimit::Fail) => Some(OnLimit::Error),
            Some(AtLimit::End) => Some(OnLimit::Exit),
            Some(AtLimit::Ask) | None => None,
        };
        let ask = (at_limit == Some(AtLimit::Ask)).then(AskForMore::default);
        let max_time = max_time.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        let mut budget = Budget::default();
        (budget.max_money, budget.max_tokens, budget.max_iterations) = (max_money, max_tokens, max_iterations);
        (budget.max_time, budget.on_limit, budget.ask) = (max_time, on_limit, ask);
        (budget != Budget::default()).then_some(budget)
    }
}

#[derive(Debug, Args)]
#[command(after_help = format!("{WAITING}\n\n{ENVIRONMENT}"))]
pub(crate) struct RunArgs {
    /// The brain's title, or its beginning; case, blanks and dashes do not matter
    pub(crate) brain: String,
    /// An option, read as the brain's schema says; `a.b=1` reaches into an object, a repeated key fills a list
    #[arg(short = 'o', value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// All options as JSON, @FILE with them, or - for stdin; -o is laid over it
    #[arg(long, value_name = "JSON")]
    pub(crate) options: Option<String>,
    /// What is said to the brain: its first loop begins with it, as with a message in `chat`
    #[arg(long, value_name = "TEXT", value_parser = said)]
    pub(crate) message: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Writes every event as one line of JSON, instead of the result
    #[arg(long)]
    pub(crate) json: bool,
    /// Tells the progress line by line
    #[arg(long)]
    pub(crate) plain: bool,
    /// Records the run's model traffic and its answers
    #[arg(long, value_name = "FILE", conflicts_with = "cassette")]
    pub(crate) record: Option<PathBuf>,
    /// Asks people even where the cassette that is played has their answers
    #[arg(long)]
    pub(crate) ask: bool,
    /// The run's id; the same id again is the same run, which then goes on
    #[arg(long, value_name = "ID", value_parser = name)]
    pub(crate) id: Option<String>,
    /// Whom the run belongs to
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) user: Option<String>,
    /// Keeps the run in memory alone, so that it ends with this command
    #[arg(long, conflicts_with = "id")]
    pub(crate) memory: bool,
    #[command(flatten, next_help_heading = "Budget of the run")]
    pub(crate) budget: BudgetArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{WORK}\n\n{ENVIRONMENT}"))]
pub(crate) struct WorkArgs {
    /// The run; all of them where none is named
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Ends when there is nothing left to do
    #[arg(long, conflicts_with = "run")]
    pub(crate) once: bool,
    /// Writes the whole run as a cassette, as `record` does, when the command ends
    #[arg(long, value_name = "FILE", requires = "run", conflicts_with = "cassette")]
    pub(crate) record: Option<PathBuf>,
    /// Writes every event as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Tells the progress line by line
    #[arg(long)]
    pub(crate) plain: bool,
}
