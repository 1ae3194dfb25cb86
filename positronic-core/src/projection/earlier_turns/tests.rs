//! Stored blocks: how many there are to read, how large they are, and that they contain the conversation.

use std::collections::HashMap;

use super::*;

/// The stored blocks by run.
#[derive(Default)]
struct Blocks(HashMap<RunId, String>);

fn id(run: usize) -> RunId {
    RunId::new(format!("c-{run}"))
}

fn said(run: usize) -> Turn {
    Turn::new(vec![Past::Said(vec![Message::user(format!("question {run}"))]), Past::Said(vec![answer(run)])])
}

fn answer(run: usize) -> Message {
    let text = format!("answer {run}");
    Message::assistant(vec![crate::record::Assistant::Text { text }])
}

fn summary(run: usize) -> Turn {
    let messages = vec![Message::user(format!("summary {run}"))];
    Turn::new(vec![Past::Compacted { standing: messages.clone(), messages, outputs: Arc::from([]) }])
}

impl Blocks {
    fn turn(&mut self, history: &History, run: usize, turn: Turn) -> History {
        let history = history.then(run.checked_sub(1).map(id), turn);
        self.0.insert(id(run), serde_json::to_string(history.last_block().unwrap()).unwrap());
        history.stored()
    }

    /// Reads the history up to a run, with the number of blocks.
    fn read(&self, run: usize) -> (History, usize) {
        let (mut blocks, mut next) = (Vec::new(), Some(id(run)));
        while let Some(run) = next {
            let block: TurnBlock = serde_json::from_str(&self.0[&run]).unwrap();
            next = block.before().cloned();
            blocks.push(block);
        }
        let count = blocks.len();
        (blocks.into_iter().rev().fold(History::default(), |history, block| history.with(block)), count)
    }
}

fn same(one: &History, other: &History) {
    assert_eq!(**one, **other);
    assert_eq!(one.dialogue().messages(), other.dialogue().messages());
    let by = |history: &History| history.messages_by(|outputs| Some(messages(outputs))).unwrap();
    assert_eq!(by(one), by(other));
}

#[test]
fn stored_blocks_are_few_and_contain_the_whole_conversation() {
    let (mut stored, mut history, mut most) = (Blocks::default(), History::default(), 0);
    for run in 0..1000 {
        history = stored.turn(&history, run, said(run));
        let (read, blocks) = stored.read(run);
        most = most.max(blocks);
        if run % 97 == 0 {
            same(&read, &history);
        }
    }

    assert_eq!(history.len(), 2000);
    // At 991 turns: 3 blocks of 256, 13 of 16, 15 of one, and at 767: 2, 15 and 15.
    assert_eq!(most, 2 + 15 + 15);
    let one = serde_json::to_string(&said(999)).unwrap().len();
    let all: usize = stored.0.values().map(String::len).sum();
    assert!(all < 4 * 1000 * one, "each turn is stored at most three times: {all} bytes for turns of {one}");
}

#[test]
fn conversation_that_continues_from_stored_blocks_is_the_same() {
    let (mut stored, mut history) = (Blocks::default(), History::default());
    for run in 0..300 {
        // Every process begins with what is stored.
        history = stored.turn(&history, run, said(run));
        let (read, _) = stored.read(run);
        same(&read, &history);
        history = read;
    }
}

#[test]
fn compaction_ends_what_is_read() {
    let (mut stored, mut history) = (Blocks::default(), History::default());
    for run in 0..50 {
        history = stored.turn(&history, run, if run == 40 { summary(run) } else { said(run) });
    }

    let (read, blocks) = stored.read(49);

    same(&read, &history);
    assert_eq!((blocks, read.len()), (10, 1 + 2 * 9));
    assert_eq!(read[0], Message::user("summary 40"));
}

#[test]
fn turns_that_are_not_stored_are_stored_with_the_next_one() {
    let mut history = History::default();
    for run in 0..100_usize {
        history = history.then(run.checked_sub(1).map(id), said(run));
    }
    let mut stored = Blocks::default();

    let history = stored.turn(&history, 100, said(100));

    let (read, blocks) = stored.read(100);
    same(&read, &history);
    assert_eq!(blocks, 1);
}

#[test]
fn large_blocks_are_not_merged() {
    let (mut stored, mut history) = (Blocks::default(), History::default());
    for run in 0..40 {
        let text = "x".repeat(300_000);
        history = stored.turn(&history, run, Turn::new(vec![Past::Said(vec![Message::user(text)])]));
    }

    assert_eq!(stored.read(39).1, 40);
    assert!(stored.0.values().all(|block| block.len() < LARGEST));
}

#[test]
fn histories_of_a_conversation_share_their_messages() {
    let before = History::default().then(None, said(0));
    let after = before.then(Some(id(0)), said(1));

    assert!(after.dialogue().extends(&before.dialogue()));
}
