//! Every example against an endpoint that refuses everything that any real endpoint refuses, over chat completions,
//! the Responses API and the APIs of Anthropic and Google, streamed and unstreamed. The examples' cassettes provide the answers; the adapters send the
//! requests and parse the answers, so a request contains the adapter's rendering of earlier answers.

mod answers;
mod files;
mod rules;
mod server;

use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, LocalBoxFuture};
use positronic_anthropic::{Anthropic, AnthropicConfig};
use positronic_core::dsl::Runnable;
use positronic_core::model::cassette::Cassette;
use positronic_core::model::{DeltaSink, Model, NoDeltas};
use positronic_core::record::{ActionFormat, Message, ModelError, ModelRequest, ModelResponse, Transcript};
use positronic_core::runner::{Runner, Settled};
use positronic_core::testing::{Lockstep as _, Test};
use positronic_examples::acme::Acme;
use positronic_examples::nested::Newsroom;
use positronic_examples::{
    agentloop, analyst, blueprints, compaction, delegate, flags, kitchen, memory, minimal, modes, nested, release,
    rover, support, toolsets, triggers, weather,
};
use positronic_openai::{ContextAfterResults, OpenAiChat, OpenAiConfig, OpenAiResponses};
use positronic_plugins::MemoryFacts;

use positronic_gemini::{Gemini, GeminiConfig};
use rules::Dialect;
use server::Endpoint;

/// A model of the endpoint that answers from a cassette.
#[derive(Clone)]
struct Behind {
    cassette: Arc<Cassette>,
    adapter: Arc<dyn Model>,
    endpoint: Endpoint,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Model for Behind {
    fn name(&self) -> String {
        self.adapter.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            let answer = self.cassette.call(request, &NoDeltas).await?;
            self.asked.lock().unwrap().push(request.clone());
            self.endpoint.expect(self.adapter.wire(request), answer);
            // On a separate thread and clock: the test's clock stands still while it waits here.
            let exchange = || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(self.adapter.call(request, deltas))
            };
            std::thread::scope(|scope| scope.spawn(exchange).join().unwrap())
        })
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(&*self.adapter)
    }

    fn action_format(&self) -> ActionFormat {
        self.cassette.action_format()
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.adapter.wire(request)
    }
}

struct Lane {
    dialect: Dialect,
    stream: bool,
    config: OpenAiConfig,
    endpoint: Endpoint,
    wrong: Vec<String>,
}

impl Lane {
    fn new(dialect: Dialect, stream: bool, context: ContextAfterResults) -> Self {
        let endpoint = Endpoint::start(context == ContextAfterResults::InResult);
        let config = OpenAiConfig::builder()
            .base_url(endpoint.address.clone())
            .model("strict-1")
            .stream(stream)
            .strict_schemas(true)
            .context_after_results(context)
            .build();
        Self { dialect, stream, config, endpoint, wrong: Vec::new() }
    }

    fn model(&self, cassette: &str) -> Behind {
        let config = self.config.clone();
        let adapter: Arc<dyn Model> = match self.dialect {
            Dialect::Chat => Arc::new(OpenAiChat::new(config).unwrap()),
            Dialect::Responses => Arc::new(OpenAiResponses::new(config).unwrap()),
            Dialect::Messages => {
                let own = AnthropicConfig::builder().base_url(config.base_url).model(config.model).stream(self.stream);
                Arc::new(Anthropic::new(own.strict_tools(true).build()).unwrap())
            }
            Dialect::GenerateContent => {
                let own = GeminiConfig::builder().base_url(config.base_url).model(config.model).stream(self.stream);
                Arc::new(Gemini::new(own.build()).unwrap())
            }
        };
        let cassette = Arc::new(Cassette::replay(cassette).unwrap());
        Behind { cassette, adapter, endpoint: self.endpoint.clone(), asked: Arc::default() }
    }

    /// Plays an example. Its future is boxed: those of all examples together do not fit the stack of a test.
    fn play<'a, B: Runnable + 'a>(
        &'a mut self,
        title: &'a str,
        cassette: &str,
        brain: B,
        options: B::Options,
    ) -> LocalBoxFuture<'a, ()>
    where
        B::Options: 'a,
    {
        let model = self.model(cassette);
        Box::pin(async move {
            Test::new(model.clone()).play_with(&model.cassette, brain, options).await;
            self.judge(title, &model);
        })
    }

    /// Sends a message in a conversation, and approves pending calls.
    async fn talk<B: Runnable<Options = ()> + Clone>(&mut self, title: &str, cassette: &str, brain: B, said: &[&str]) {
        let model = self.model(cassette);
        let runner = Runner::new(model.clone()).lockstep(true);
        let talk = runner.conversation("c").user("ann");
        for text in said {
            let run = talk.send(brain.clone(), (), *text).await.unwrap();
            while let Settled::Waiting(pending) = run.settled().await {
                run.approve(&pending[0].call, "ann").await.unwrap();
            }
        }
        self.judge(title, &model);
    }

    fn judge(&mut self, title: &str, model: &Behind) {
        let asked = std::mem::take(&mut *model.asked.lock().unwrap());
        assert!(!asked.is_empty(), "{title} asks nothing");
        // The other APIs mark the end of the history for their caches, or wrap texts in more than a chat does.
        let is_openai = matches!(self.dialect, Dialect::Chat | Dialect::Responses);
        let parted = if is_openai { parted(&*model.adapter, &asked) } else { Vec::new() };
        let wrong = self.endpoint.refused().into_iter().chain(parted);
        let place = format!("{title}, {:?}, stream {}", self.dialect, self.stream);
        self.wrong.extend(wrong.map(|what| format!("{place}: {what}")));
    }

    async fn every_example(mut self) {
        self.play(minimal::TITLE, minimal::CASSETTE, minimal::minimal(), ()).await;
        self.play(flags::TITLE, flags::CASSETTE, flags::flags(), ()).await;
        self.play(release::TITLE, crate::release::approved(), release::release(), ()).await;
        self.play(toolsets::TITLE, toolsets::CASSETTE, toolsets::assistant(), ()).await;
        self.play(analyst::TITLE, analyst::CASSETTE, analyst::analyst(), ()).await;
        self.play(rover::TITLE, rover::CASSETTE, rover::rover(), ()).await;
        self.play(modes::TITLE, modes::CASSETTE, modes::helpdesk(), modes::Problem::default()).await;
        self.play(compaction::TITLE, compaction::CASSETTE, compaction::proofreader(), ()).await;
        self.play(blueprints::TITLE, blueprints::CASSETTE, blueprints::planner(), ()).await;
        let baker = memory::baker(MemoryFacts::default());
        self.play(memory::TITLE, memory::CASSETTE, baker, memory::Visit::default()).await;
        self.play(delegate::TITLE, delegate::CASSETTE, delegate::trip(), delegate::Wish::default()).await;
        self.play(triggers::TITLE, triggers::CASSETTE, triggers::gardener(), triggers::Errand::default()).await;
        let newsletter = nested::newsletter().bind(Newsroom::example());
        self.play(nested::TITLE, nested::CASSETTE, newsletter, nested::Topic::default()).await;
        let support = support::support().bind(Acme::example());
        self.play(support::TITLE, support::CASSETTE, support, support::SupportOptions::default()).await;
        #[cfg(unix)]
        {
            let folder = tempfile::tempdir().unwrap();
            let task = crate::agentloop::task(&folder);
            self.play(agentloop::TITLE, agentloop::CASSETTE, agentloop::agentloop(), task).await;
        }
        let said = ["What can I cook tonight?", "Please order the cheese.", "Thank you!"];
        self.talk(kitchen::TITLE, kitchen::CASSETTE, &kitchen::kitchen(), &said).await;
        let said = ["What is the weather in Ghent?", "Remind me tomorrow."];
        self.talk(weather::TITLE, weather::CASSETTE, &weather::weather(), &said).await;

        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
    }
}

/// Lists the requests that do not begin with the bytes of the previous one in their loop: up to the end of the last
/// common message, without the context, which may change.
fn parted(adapter: &dyn Model, asked: &[ModelRequest]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (index, later) in asked.iter().enumerate() {
        // A plugin that asks during preparation has another prompt, and no tools.
        let asker = |one: &ModelRequest| (one.path.parent(), one.tools.tools().is_empty());
        let of_loop = |one: &&ModelRequest| asker(one) == asker(later);
        let Some(earlier) = asked.iter().take(index).rev().find(of_loop) else { continue };
        let (before, after) = (earlier.messages.messages(), later.messages.messages());
        let shared: Vec<_> = std::iter::zip(&before, &after)
            .take_while(|(one, other)| one == other)
            .map(|(one, _)| one.clone())
            .collect();
        let history = |extra: &str| {
            let messages = shared.iter().cloned().chain([Message::user(extra)]);
            let messages = Transcript::new(messages);
            adapter.wire(&ModelRequest { context: [].into(), messages, ..earlier.clone() })
        };
        let stable = common(&history("a"), &history("b"));
        let same = common(&adapter.wire(earlier), &adapter.wire(later));
        // The common start of the next message: the end of the previous text, its role, and the quote that opens its
        // text.
        if same + "\"},{\"role\":\"user\",\"content\":\"".len() < stable {
            let bytes = adapter.wire(earlier).len();
            let place = (&earlier.path, &later.path);
            wrong.push(format!("{place:?} have {same} bytes in common of {bytes}, and {stable} are their history"));
        }
    }
    wrong
}

fn common(one: &str, other: &str) -> usize {
    std::iter::zip(one.bytes(), other.bytes()).take_while(|(one, other)| one == other).count()
}

#[tokio::test(start_paused = true)]
async fn chat_endpoint_accepts_every_example_streamed() {
    Lane::new(Dialect::Chat, true, ContextAfterResults::OwnMessage).every_example().await;
}

#[tokio::test(start_paused = true)]
async fn chat_endpoint_accepts_every_example_unstreamed() {
    Lane::new(Dialect::Chat, false, ContextAfterResults::OwnMessage).every_example().await;
}

#[tokio::test(start_paused = true)]
async fn chat_endpoint_with_results_last_accepts_every_example() {
    Lane::new(Dialect::Chat, true, ContextAfterResults::InResult).every_example().await;
}

#[tokio::test(start_paused = true)]
async fn responses_endpoint_accepts_every_example_streamed() {
    Lane::new(Dialect::Responses, true, ContextAfterResults::OwnMessage).every_example().await;
}

#[tokio::test(start_paused = true)]
async fn responses_endpoint_accepts_every_example_unstreamed() {
    Lane::new(Dialect::Responses, false, ContextAfterResults::OwnMessage).every_example().await;
}

#[tokio::test(start_paused = true)]
async fn messages_endpoint_accepts_every_example_streamed() {
    Lane::new(Dialect::Messages, true, ContextAfterResults::OwnMessage).every_example().await;
}

#[tokio::test(start_paused = true)]
async fn messages_endpoint_accepts_every_example_unstreamed() {
    Lane::new(Dialect::Messages, false, ContextAfterResults::OwnMessage).every_example().await;
}

#[tokio::test(start_paused = true)]
async fn generate_content_endpoint_accepts_every_example_streamed() {
    Lane::new(Dialect::GenerateContent, true, ContextAfterResults::OwnMessage).every_example().await;
}

#[tokio::test(start_paused = true)]
async fn generate_content_endpoint_accepts_every_example_unstreamed() {
    Lane::new(Dialect::GenerateContent, false, ContextAfterResults::OwnMessage).every_example().await;
}
