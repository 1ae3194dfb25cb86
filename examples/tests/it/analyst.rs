use positronic_core::projection::{Prompts, request_at};
use positronic_core::record::{EventKind, ModelRequest, OutputKind};
use positronic_core::testing::{Story, Test};
use positronic_examples::analyst::{CASSETTE, analyst};

/// The sent requests, rebuilt from the log.
fn requests(story: &Story) -> Vec<ModelRequest> {
    let asked = story.log().iter().filter(|event| matches!(event.kind, EventKind::LoopModelCall { .. }));
    asked.map(|event| request_at(story.log().iter().map(|event| &**event), event.seq).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, analyst(), ()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_json_snapshot!("state", story.state());
}

#[tokio::test(start_paused = true)]
async fn every_request_has_the_tools_and_context_of_its_iteration() {
    let story = Test::play(CASSETTE, analyst(), ()).await;

    let seen = requests(&story).into_iter().map(|request| {
        let tools: Vec<_> = request.tools.tools().iter().map(|tool| tool.id.as_str().to_owned()).collect();
        let desk = request.context.iter().find(|item| item.name == "desk").unwrap();
        format!("{} | {}", tools.join(" "), desk.text)
    });

    insta::assert_snapshot!("iterations", seen.collect::<Vec<_>>().join("\n"));
}

#[tokio::test(start_paused = true)]
async fn people_see_the_chart_and_file_and_the_model_reads_a_summary() {
    let story = Test::play(CASSETTE, analyst(), ()).await;

    let record = Prompts::of(story.log().iter().map(|event| &**event));
    let kinds = record.iter().flat_map(|prompt| &prompt.output).map(|output| match &output.kind {
        OutputKind::Widget(widget) => format!("widget: {}", widget.fallback),
        OutputKind::File(output) => {
            format!("file: {} {} {}", output.file.name, output.file.media_type, output.file.size)
        }
        OutputKind::Tool(call) => format!("tool: {}", call.tool),
        _ => "answer".to_owned(),
    });
    insta::assert_snapshot!("record", kinds.collect::<Vec<_>>().join("\n"));
    let last = requests(&story).pop().unwrap();
    let read = format!("{:?}", last.messages);
    assert!(!read.contains("bar_chart") && !read.contains("thousands of euros: Q1"), "{read}");
    assert_eq!(read.matches("2026.md").count(), 4, "the call, its result, the line about the file, the mail: {read}");
}
