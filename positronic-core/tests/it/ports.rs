//! Examples of other frameworks, as brains. Each is at most as long as the original, and bears a crash, a cancellation, a pause and a fork at
//! every boundary.
//!
//! Lines of code without imports, comments and blank lines. Ours are those of the brains, their types and tools, without what a test adds: the model, the
//! person, the ledger of what was done.
//!
//! | example | original, commit | lines | ours |
//! |---|---|---|---|
//! | Mastra, suspend and resume; a branch | `mastra-ai/mastra`: `suspend-and-resume.mdx`, 03e7ce7f; `control-flow.mdx`, 003d0bf7, two programs | 33; 47 | 17 for both |
//! | LangGraph, map-reduce with `Send` | `langchain-ai/langgraph`: graph API, "Map-Reduce and the Send API" | 27 | 18 |
//! | LangGraph, review of a call | `langchain-ai/langgraph`: `add-human-in-the-loop.md`, 03726f9b, the definition | 19 | 16 |
//! | Temporal, saga | `temporalio/samples-java`: `bookingsaga`, 4c45ab1c, workflow and activities | 60 | 19 |
//! | Temporal, timer with a signal | `temporalio/samples-typescript`: `expense/src/workflows.ts`, 157227e7 | 28 | 18 |
//! | Positronic (TypeScript), guard, map, wait with a timeout | `sfioritto/positronic`: `brain-dsl-guide.md`; the webhook in `waitfor.test.ts`, 2cfcfc37 | 26 | 19 |
//! | OpenAI Agents, handoff | `openai/openai-agents-python`: `docs/quickstart.md`, 0acf36f7, two specialists | 15 | 6 for one |
//! | OpenAI Agents, output guardrail | `openai/openai-agents-python`: `output_guardrails.py`, 479bf936, the definitions | 23 | 20 |
//! | Pydantic AI, output with a validator | `pydantic/pydantic-ai`: `docs/output.md`, 00438ddc, without its run | 21 | 19 |
//!
//! Snippets that show one call are shorter than a brain with the same words: a handoff without instructions and input (`docs/handoffs.md`, 17aa135b: 3 lines, ours 6), a signal
//! without a payload (`timers.mdx` of `temporalio/documentation`, 0c483b42: 12, ours 18). The wait with a timeout alone, whose webhook is defined elsewhere, has 5 lines, as ours.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::dsl::{IntoBrain, StepContext, Verdict, form};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{Message, ModelRequest, ModelResponse, Pending, SignalKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::{Baseline, Ledger, Tale};

/// An example with its model and its person, and what comes of it.
struct Port {
    tale: Tale,
    /// The state in the end.
    state: Value,
    /// What has been said, in part.
    said: &'static str,
    /// What has been done, in order.
    deeds: Vec<&'static str>,
}

impl Port {
    /// Creates a port without a model and a person, that ends with this state.
    fn new(brain: &impl IntoBrain, state: Value) -> Self {
        let tale = Tale {
            definition: brain.definition(),
            options: Value::Null,
            ledger: Ledger::default(),
            says: Arc::new(|request| panic!("{request:?}")),
            answers: Arc::new(|pending| panic!("{pending:?}")),
        };
        Self { tale, state, said: "", deeds: Vec::new() }
    }

    /// Sets the model, which gets the system prompt and the last message.
    fn model(mut self, says: impl Fn(&str, &str) -> Reply + Send + Sync + 'static) -> Self {
        self.tale.says = Arc::new(move |request| says(&request.system, &last_message(request)));
        self
    }

    fn person(mut self, answers: impl Fn(&Pending) -> Vec<SignalKind> + Send + Sync + 'static) -> Self {
        self.tale.answers = Arc::new(answers);
        self
    }

    async fn undisturbed(&self) -> Baseline {
        let baseline = self.tale.undisturbed().await;
        assert_eq!(baseline.end.state, self.state);
        assert!(baseline.end.transcript.contains(self.said), "{}", baseline.end.transcript);
        let deeds = self.tale.ledger.deeds();
        assert_eq!(deeds.iter().map(|(_, deed)| deed).collect::<Vec<_>>(), self.deeds);
        assert!(baseline.deaths.len() > 3, "it has too few boundaries to say anything");
        baseline
    }
}

fn last_message(request: &ModelRequest) -> String {
    match request.messages.messages().pop() {
        Some(Message::User { text, .. } | Message::Tool { text, .. }) => text,
        Some(Message::Assistant { .. }) | None => String::new(),
    }
}

fn value(value: impl Serialize) -> Reply {
    Reply::text(json!({ "value": value }).to_string())
}

/// Tests each port with each disturbance.
macro_rules! ports {
    ($($port:ident,)+) => {
        $(mod $port {
            use crate::support::disturbances;

            #[tokio::test(start_paused = true)]
            async fn ends_the_same_after_a_crash_at_every_boundary() {
                let port = super::$port();
                disturbances::crash(&port.tale, &port.undisturbed().await).await;
            }

            #[tokio::test(start_paused = true)]
            async fn is_cancelled_at_every_boundary() {
                let port = super::$port();
                disturbances::cancel(&port.tale, &port.undisturbed().await).await;
            }

            #[tokio::test(start_paused = true)]
            async fn pauses_at_every_boundary() {
                let port = super::$port();
                disturbances::pause(&port.tale, &port.undisturbed().await).await;
            }

            #[tokio::test(start_paused = true)]
            async fn ends_the_same_in_a_fork_at_every_boundary() {
                let port = super::$port();
                disturbances::fork(&port.tale, &port.undisturbed().await).await;
            }
        })+
    };
}

ports! {
    mastra_suspend_and_resume_with_a_branch,
    mastra_resume_that_takes_the_other_branch,
    langgraph_map_reduce,
    langgraph_edit_of_a_call,
    temporal_timer_with_a_signal,
    temporal_timer_without_a_signal,
    temporal_saga,
    positronic_guard_map_and_wait,
    positronic_guard_that_does_not_pass,
    positronic_wait_that_is_answered,
    openai_handoff_and_output_guardrail,
    openai_output_guardrail_that_stops,
    pydantic_output_with_a_validator,
    pydantic_output_of_another_kind,
}

#[derive(Deserialize, JsonSchema)]
struct Approval {
    approved: bool,
}

/// Mastra: a step suspends until a person has approved, and a branch does what was approved.
fn invite(approved: bool, end: &str) -> Port {
    let send = brain("Send").options::<String>().step("Send", async |cx| Ok(format!("sent to {}", *cx.options)));
    let invite = brain("Invite")
        .state("ann@example.com".to_owned())
        .ask_person(
            "Approve",
            |to| form::<Approval>(format!("Write to {to}?")),
            |to, Approval { approved }| (to, approved),
        )
        .branch("By approval", |mut b| {
            let send = b.arm("Send", send, |(to, _): &(String, bool)| to.clone(), |_, sent| sent);
            let drop = b.pass("Drop", |_| "not sent".to_owned());
            b.choose(move |(_, approved)| if *approved { send } else { drop })
        });
    Port::new(&invite, json!(end)).person(move |pending| {
        vec![SignalKind::Reply { call: pending.call.clone(), payload: json!({ "approved": approved }) }]
    })
}

fn mastra_suspend_and_resume_with_a_branch() -> Port {
    invite(true, "sent to ann@example.com")
}

fn mastra_resume_that_takes_the_other_branch() -> Port {
    invite(false, "not sent")
}

/// LangGraph: a topic gives subjects, each subject a joke of its own (`Send`), and the best joke remains.
fn langgraph_map_reduce() -> Port {
    let joke = brain("Joke").options::<String>().prompt(
        "Write",
        |cx| cx.system("Write a joke.").ask::<String>(format!("About {}", *cx.options)),
        |(), joke| joke,
    );
    let jokes = brain("Jokes")
        .state("animals".to_owned())
        .prompt(
            "Subjects",
            |cx| cx.system("List subjects.").ask::<Vec<String>>(format!("Of {}", cx.state)),
            |_, subjects| subjects,
        )
        .map("Jokes", Vec::clone, joke, |_, jokes| jokes)
        .prompt(
            "Best",
            |cx| cx.system("Choose by index.").ask::<usize>(cx.state.join("\n")),
            |jokes, best| jokes[best].clone(),
        );
    Port::new(&jokes, json!("A joke. About bears")).model(|system, message| match system {
        "List subjects." => value(["lions", "bears", "penguins"]),
        "Write a joke." => value(format!("A joke. {message}")),
        _ => value(message.lines().position(|joke| joke.contains("bears"))),
    })
}

#[derive(Deserialize, JsonSchema)]
struct Hotel {
    name: String,
}

/// LangGraph: a person reviews a call of a tool and edits its arguments.
fn langgraph_edit_of_a_call() -> Port {
    let ledger = Ledger::default();
    let books = ledger.clone();
    let agent = brain("Agent").state(Vec::new()).r#loop("Travel", move |cx| {
        let books = books.clone();
        cx.system("Book what the user wants.").input("A room in Harlem, please.").tool("book_hotel", move |t| {
            t.description("Books a room")
                .idempotent()
                .approval(|_: &Hotel, _| Some("it costs money".to_owned()))
                .execute(move |Hotel { name }, cx| {
                    books.act_once(cx.idempotency_key(), &name);
                    async move {
                        Ok(cx.result(format!("booked {name}")).update(|booked: &mut Vec<String>| booked.push(name)))
                    }
                })
        })
    });
    let mut port = Port::new(&agent, json!(["Hotel Sun"]))
        .model(|_, message| match message.split_once("booked ") {
            Some((_, name)) => Reply::text(format!("You sleep at {name}.")),
            None => Reply::call("book_hotel", json!({ "name": "Hotel Moon" })),
        })
        .person(|pending| {
            let arguments = Some(json!({ "name": "Hotel Sun" }));
            vec![SignalKind::Approve { call: pending.call.clone(), arguments }]
        });
    (port.tale.ledger, port.said, port.deeds) = (ledger, "You sleep at Hotel Sun.", vec!["Hotel Sun"]);
    port
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    accepted_by: String,
}

/// Temporal: an order waits for a signal, and expires after a day without one.
fn order() -> Brain<(), String> {
    brain("Order")
        .state("order-7".to_owned())
        .wait(
            "Acceptance",
            |w| w.on(webhook::<Order>("accept"), String::clone).within(Duration::from_hours(24)),
            |id, order| (id, order.map(|order| order.accepted_by)),
        )
        .step("Notify", async |cx| {
            Ok(match &cx.state {
                (id, Some(by)) => format!("{id} is accepted by {by}"),
                (id, None) => format!("{id} has expired"),
            })
        })
        .build()
}

fn temporal_timer_with_a_signal() -> Port {
    Port::new(&order(), json!("order-7 is accepted by lee")).person(|_| {
        let payload = json!({ "accepted_by": "lee" });
        vec![SignalKind::Webhook { name: "accept".to_owned(), identifier: "order-7".to_owned(), payload }]
    })
}

fn temporal_timer_without_a_signal() -> Port {
    Port::new(&order(), json!("order-7 has expired")).person(|_| Vec::new())
}

/// Temporal: a flight and a hotel are booked, there is no car, and what was booked is cancelled, the last one first.
fn temporal_saga() -> Port {
    let ledger = Ledger::default();
    let act = |deed: &'static str| {
        let ledger = ledger.clone();
        move |cx: StepContext<(), ()>| {
            ledger.act_once(cx.idempotency_key(), deed);
            std::future::ready(Ok(()))
        }
    };
    let trip = brain("Trip")
        .step("Flight", act("book the flight"))
        .compensate(act("cancel the flight"))
        .step("Hotel", act("book the hotel"))
        .compensate(act("cancel the hotel"))
        .step("Car", async |_| Err::<(), _>(Error::new("no car is free")));
    let travel = brain("Travel").state(String::new()).all(
        "Book",
        |g| (g.attempt("Trip", trip, |_| ()),),
        |_, (trip,)| trip.map_or_else(|failure| failure.message, |()| "booked".to_owned()),
    );
    let mut port = Port::new(&travel, json!("the step `Book/0.0/Car` failed: no car is free"));
    port.deeds = vec!["book the flight", "book the hotel", "cancel the hotel", "cancel the flight"];
    port.tale.ledger = ledger;
    port
}

#[derive(Deserialize, JsonSchema)]
struct Reviewed {
    ok: bool,
}

/// Positronic (TypeScript): a guard skips the rest when there is no mail; each mail is summarised; a webhook confirms, or a day passes.
fn digest(mails: &[&str]) -> Brain<(), Result<(String, bool), positronic_core::dsl::Skipped>> {
    let summary = brain("Summary").options::<String>().prompt(
        "Summarise",
        |cx| cx.system("Summarise.").ask::<String>(&*cx.options),
        |(), summary| summary,
    );
    brain("Digest")
        .state(mails.iter().map(|mail| (*mail).to_owned()).collect::<Vec<_>>())
        .guard("Has mail", |mails| !mails.is_empty())
        .map("Summaries", Vec::clone, summary, |_, summaries| summaries.join("; "))
        .wait(
            "Confirmation",
            |w| w.on(webhook::<Reviewed>("review"), |_| "digest".to_owned()).within(Duration::from_hours(24)),
            |digest, reviewed| (digest, reviewed.is_some_and(|reviewed| reviewed.ok)),
        )
        .build()
}

fn positronic_guard_map_and_wait() -> Port {
    Port::new(&digest(&["Hello", "Bye"]), json!(["HELLO; BYE", false]))
        .model(|_, mail| value(mail.to_uppercase()))
        .person(|_| Vec::new())
}

fn positronic_wait_that_is_answered() -> Port {
    Port::new(&digest(&["Hello", "Bye"]), json!(["HELLO; BYE", true]))
        .model(|_, mail| value(mail.to_uppercase()))
        .person(|_| {
            let payload = json!({ "ok": true });
            vec![SignalKind::Webhook { name: "review".to_owned(), identifier: "digest".to_owned(), payload }]
        })
}

fn positronic_guard_that_does_not_pass() -> Port {
    Port::new(&digest(&[]), json!([]))
}

/// OpenAI Agents: a triage agent hands over to a specialist, and a guardrail lets no phone number out.
fn openai_handoff_and_output_guardrail() -> Port {
    let billing = brain("Billing").r#loop("Talk", |cx| cx.system("You answer questions about bills.")).build();
    let triage = brain("Triage").r#loop("Chat", move |cx| {
        cx.system("Hand over to the right agent.")
            .input("My bill is wrong.")
            .handoff("billing", billing.clone())
            .guard_answer("No phone numbers", async |_, answer: Arc<ModelResponse>| {
                if answer.text().contains("650") { Err("it has a phone number".to_owned()) } else { Ok(()) }
            })
    });
    let mut port = Port::new(&triage, Value::Null).model(|system, message| match (system, message) {
        ("Hand over to the right agent.", _) => Reply::call("billing", json!({})),
        (_, last) if last.contains("it has a phone number") => Reply::text("Please write to us."),
        _ => Reply::text("Call 650-123-4567."),
    });
    port.said = "Please write to us.";
    port
}

#[derive(Deserialize, JsonSchema)]
struct Said {
    reasoning: String,
    response: String,
    user_name: Option<String>,
}

/// OpenAI Agents: a guardrail of a typed output stops the run, whose caller says so.
fn openai_output_guardrail_that_stops() -> Port {
    let assistant = brain("Assistant").state(String::new()).loop_to(
        "Talk",
        |cx| {
            cx.system("You are a helpful assistant.")
                .input("My phone number is 650-123-4567. Where do you think I live?")
                .guard_call("No phone numbers", async |_, _, said| {
                    let has_number =
                        ["reasoning", "response"].iter().any(|field| said[field].to_string().contains("650"));
                    if has_number { Verdict::Stop("it has a phone number".to_owned()) } else { Verdict::Pass }
                })
                .output::<Said>()
        },
        |_, Said { reasoning, response, user_name }| format!("{response} ({reasoning}, {user_name:?})"),
    );
    let call = brain("Call").state(String::new()).all(
        "Ask",
        |g| (g.attempt("Assistant", assistant, |_| ()),),
        |_, (said,)| said.unwrap_or_else(|failure| failure.message),
    );
    let why = "the guard `No phone numbers` stopped the loop `Ask/0.0/Talk`: its call of `done`: it has a phone number";
    Port::new(&call, json!(why)).model(|_, _| {
        let said = json!({ "reasoning": "650 is the area code", "response": "In San Mateo?", "user_name": null });
        Reply::call("done", said)
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type")]
enum Answer {
    Success { sql_query: String },
    InvalidRequest { error_message: String },
}

struct Database {
    verbs: &'static [&'static str],
}

impl Database {
    fn explain(&self, sql: &Value) -> std::future::Ready<Result<(), String>> {
        std::future::ready(match sql.as_str() {
            Some(sql) if !self.verbs.iter().any(|verb| sql.starts_with(verb)) => Err("write a SELECT".to_owned()),
            _ => Ok(()),
        })
    }
}

/// Pydantic AI: the output has one of two types, and a validator that asks the database lets the model try again.
fn sql(input: &'static str, end: &str) -> Port {
    let agent = brain("Database").services::<Database>().state(String::new()).loop_to(
        "Write SQL",
        move |cx| {
            cx.system("Write a query.")
                .input(input)
                .guard_call("Explain", async |cx, _, answer| cx.services.explain(&answer["value"]["sql_query"]).await)
                .output::<Answer>()
        },
        |_, answer| match answer {
            Answer::Success { sql_query } => sql_query,
            Answer::InvalidRequest { error_message } => error_message,
        },
    );
    let done = |answer: Value| Reply::call("done", json!({ "value": answer }));
    Port::new(&agent.bind(Database { verbs: &["SELECT"] }), json!(end)).model(move |_, message| match message {
        "The weather?" => done(json!({ "type": "InvalidRequest", "error_message": "no such table" })),
        _ if message.contains("write a SELECT") => {
            done(json!({ "type": "Success", "sql_query": "SELECT * FROM users" }))
        }
        _ => done(json!({ "type": "Success", "sql_query": "FETCH users" })),
    })
}

fn pydantic_output_with_a_validator() -> Port {
    sql("Users from yesterday?", "SELECT * FROM users")
}

fn pydantic_output_of_another_kind() -> Port {
    sql("The weather?", "no such table")
}
