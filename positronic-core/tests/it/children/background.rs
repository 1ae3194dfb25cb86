//! Child runs that a loop starts in the background.

use super::*;

/// A desk whose loop starts [`slow`] in the background. Its model answers with what `says` makes of the last message.
fn desk(says: impl Fn(&str) -> Reply + Send + Sync + 'static) -> (Test, Brain<(), ()>) {
    let model = ScriptedModel::from_fn(move |request| match request.messages.messages().pop() {
        Some(Message::User { text, .. } | Message::Tool { text, .. }) => says(&text),
        other => panic!("{other:?}"),
    });
    let desk = brain("Desk").r#loop("Chat", |cx| {
        cx.system("Start what takes long in the background.")
            .input("Hello")
            .tool("post", |t| t.background(slow()))
            .tool("stop", |t| t.exit().execute(async |_: NoArgs, _| Ok("stopped")))
    });
    (Test::new(model), desk.build())
}

fn starts(text: &str) -> Reply {
    match text {
        "Hello" => Reply::call("post", json!({ "value": "letter" })),
        started if started.contains("started") => Reply::text("I have asked for it."),
        end => Reply::text(format!("Here: {end}")),
    }
}

fn messages(log: &[Arc<Event>]) -> Vec<String> {
    let message = |event: &Arc<Event>| match &event.kind {
        EventKind::LoopMessage { text, from: Speaker::Child, .. } => Some(text.clone()),
        _ => None,
    };
    log.iter().filter_map(message).collect()
}

#[tokio::test(start_paused = true)]
async fn loop_waits_for_a_run_in_the_background_and_reads_its_end_as_a_message() {
    let (test, desk) = desk(starts);
    let run = test.start(desk, ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("{:?}", run.settled().await) };
    assert_eq!(pending.iter().map(|pending| pending.call.as_str()).collect::<Vec<_>>(), ["Chat"]);
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    let why = positronic_core::machine::why(&run.state()).unwrap();
    assert!(why.sentence.contains(&format!("the end of the run `{child}` at `Chat`")), "{}", why.sentence);
    test.runner().client().webhook(&child, "post", "letter", json!("Dear Ann")).await.unwrap();
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let reported = format!("`post` ({child}) is done: Dear Ann");
    assert_eq!(messages(&log), std::slice::from_ref(&reported));
    let transcript = Story::of(&run).await.transcript();
    assert!(transcript.contains(&format!("Here: {reported}")), "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn guards_of_results_see_the_start_of_a_run_in_the_background_and_not_its_end() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let model = ScriptedModel::from_fn(|request| match request.messages.messages().pop() {
        Some(Message::User { text, .. } | Message::Tool { text, .. }) => starts(&text),
        other => panic!("{other:?}"),
    });
    let noted = Arc::clone(&seen);
    let desk = brain("Desk").r#loop("Chat", move |cx| {
        let seen = Arc::clone(&noted);
        cx.system("Start what takes long in the background.")
            .input("Hello")
            .tool("post", |t| t.background(slow()))
            .guard_result("Note", move |_, tool: String, result: Arc<Value>| {
                seen.lock().unwrap().push(format!("{tool}: {}", result["started"].is_string()));
                async { Verdict::Pass }
            })
    });
    let test = Test::new(model);
    let run = test.start(desk, ()).await;
    run.settled().await;
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    test.runner().client().webhook(&child, "post", "letter", json!("Dear Ann")).await.unwrap();
    run.result().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["post: true"]);
}

#[tokio::test(start_paused = true)]
async fn exit_tool_does_not_wait_for_a_run_in_the_background() {
    let (test, desk) = desk(|text| match text {
        "Hello" => Reply::call("post", json!({ "value": "letter" })),
        _ => Reply::call("stop", json!({})),
    });
    let run = test.start(desk, ()).await;
    run.result().await.unwrap();
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    assert_eq!(status(test.runner(), &child).await, Status::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn run_in_the_background_that_ends_in_a_pause_is_read_after_it() {
    let (test, desk) = desk(starts);
    let run = test.start(desk, ()).await;
    run.settled().await;
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    let client = test.runner().client();
    client.pause(run.id()).await.unwrap();
    client.webhook(&child, "post", "letter", json!("Dear Ann")).await.unwrap();
    test.runner().open(&child).await.unwrap().settled().await;
    assert_eq!(status(test.runner(), run.id()).await, Status::Paused);
    client.resume(run.id()).await.unwrap();
    run.result().await.unwrap();
    assert_eq!(messages(&run.events(Seq(0)).await.unwrap()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn message_of_a_person_does_not_end_the_wait_for_a_run_in_the_background() {
    let (test, desk) = desk(|text| match text {
        "How long?" => Reply::text("A minute."),
        text => starts(text),
    });
    let run = test.start(desk, ()).await;
    run.settled().await;
    run.message("How long?", "ann").await.unwrap();
    let Settled::Waiting(_) = run.settled().await else { panic!("{:?}", run.settled().await) };
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    test.runner().client().webhook(&child, "post", "letter", json!("Dear Ann")).await.unwrap();
    run.result().await.unwrap();
}
