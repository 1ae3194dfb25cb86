use positronic_core::model::cassette::Cassette;
use positronic_core::record::Message;
use positronic_core::runner::{Runner, Settled};
use positronic_core::testing::Lockstep as _;
use positronic_examples::kitchen::{CASSETTE, kitchen};

#[tokio::test(start_paused = true)]
async fn cassette_is_a_conversation() {
    let cassette = std::sync::Arc::new(Cassette::replay(CASSETTE).unwrap());
    let runner = Runner::new(std::sync::Arc::clone(&cassette)).lockstep(true);
    let chat = runner.conversation("c").user("ann");

    chat.send(&kitchen(), (), "What can I cook tonight?").await.unwrap().result().await.unwrap();
    let run = chat.send(&kitchen(), (), "Please order the cheese.").await.unwrap();
    let Settled::Waiting(pending) = run.settled().await else { panic!("the order costs more than ten euros") };
    run.approve(&pending[0].call, "ann").await.unwrap();
    assert_eq!(run.result().await.unwrap().ordered, ["a piece of mountain cheese"]);
    let last = chat.send(&kitchen(), (), "Thank you!").await.unwrap();
    last.result().await.unwrap();

    assert_eq!(cassette.unused(), Vec::<String>::new());
    let history = runner.client().history(last.id()).await.unwrap();
    let said: Vec<&str> = history
        .iter()
        .map(|message| match message {
            Message::User { .. } => "user",
            Message::Assistant { .. } => "model",
            Message::Tool { .. } => "tool",
        })
        .collect();
    assert_eq!(said, ["user", "model", "tool", "model", "tool", "model", "user", "model", "tool", "model"]);
    insta::assert_snapshot!("transcript", transcript(&runner).await);
}

async fn transcript(runner: &Runner) -> String {
    let mut text = String::new();
    for row in runner.client().conversations().runs("c").await.unwrap().into_iter().rev() {
        let log = runner.client().events(&row.run, positronic_core::record::Seq(0)).await.unwrap();
        let timeline = positronic_core::projection::timeline::Timeline::of(log.iter().map(|event| &**event));
        text.push_str(&positronic_core::projection::transcript(&timeline));
    }
    text
}
