//! Ids of calls that every API accepts.
//!
//! A provider's id goes back as it came, if it can. It cannot if it is empty, longer than the 40 characters that chat completions
//! accept ("Invalid 'messages[1].tool_calls[0].id': string too long", 64 in the Responses API), or another call of the
//! dialogue has it: some servers give every answer's first call the id `call_0`, or two calls of one answer the same id. Such a
//! call gets an id of nine letters and digits, which Mistral requires and all others accept; its results get the same. The id
//! follows from the messages before, so a request that is rebuilt has it again.
//!
//! An adapter whose API takes fewer characters than those of the provider encodes them.

use smallvec::SmallVec;

use crate::record::{Assistant, Message, Transcript};

/// The maximum length of an id.
const LONGEST: usize = 40;

/// Gives the calls of a dialogue their ids, message by message.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    /// The ids of the last answer's calls that have no result yet: the given ones, and those that are sent. Empty if all are sent
    /// as given.
    open: Vec<(String, String)>,
}

impl CallIds {
    /// Gives ids to the calls of the next message of a dialogue, or to its result.
    pub(super) fn name(&mut self, dialogue: &Transcript, message: &mut Message) {
        match message {
            Message::Assistant { parts, .. } => self.name_calls(dialogue, parts),
            Message::Tool { call, .. } => {
                if let Some(at) = self.open.iter().position(|(given, _)| given == call) {
                    *call = self.open.remove(at).1;
                }
            }
            Message::User { .. } => {}
        }
    }

    fn name_calls(&mut self, dialogue: &Transcript, parts: &mut [Assistant]) {
        self.open.clear();
        let mut own: SmallVec<[&str; 8]> = SmallVec::new();
        let calls = || parts.iter().filter_map(id);
        let all_fit = calls().all(|id| {
            let fits = is_sendable(id) && !own.contains(&id) && !dialogue.has_call(id);
            own.push(id);
            fits
        });
        drop(own);
        if all_fit {
            return;
        }
        let mut named: Vec<(String, String)> = Vec::new();
        let given: Vec<String> = calls().map(str::to_owned).collect();
        for (at, id) in given.iter().enumerate() {
            let is_taken = |name: &str| dialogue.has_call(name) || named.iter().any(|(_, taken)| taken == name);
            let sent = if is_sendable(id) && !is_taken(id) {
                id.clone()
            } else {
                let mut names = (dialogue.len() + at..).map(|number| format!("call{number:05}"));
                names.find(|name| !is_taken(name) && !given.contains(name)).unwrap_or_default()
            };
            named.push((id.clone(), sent));
        }
        let calls = parts.iter_mut().filter_map(|part| match part {
            Assistant::Call { call, .. } => Some(call),
            _ => None,
        });
        calls.zip(&named).for_each(|(call, (_, sent))| call.clone_from(sent));
        self.open = named;
    }
}

fn id(part: &Assistant) -> Option<&str> {
    match part {
        Assistant::Call { call, .. } => Some(call),
        _ => None,
    }
}

fn is_sendable(id: &str) -> bool {
    id.len() <= LONGEST && !id.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::normalize_messages::dialogue;

    fn answer(ids: &[&str]) -> Message {
        let call = |id: &&str| Assistant::Call {
            call: (*id).to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
            data: None,
        };
        Message::assistant(ids.iter().map(call).collect())
    }

    fn result(id: &str, text: &str) -> Message {
        Message::Tool { call: id.to_owned(), name: "look".to_owned(), text: text.to_owned(), files: Vec::new() }
    }

    /// Sends answers, each with its results, and returns the ids of calls and the texts of their results.
    fn sent(answers: &[&[&str]]) -> Vec<(String, String)> {
        let turn = |(turn, ids): (usize, &&[&str])| {
            let results = ids.iter().enumerate().map(move |(at, id)| result(id, &format!("{turn}.{at}")));
            [answer(ids)].into_iter().chain(results).collect::<Vec<_>>()
        };
        let messages: Vec<_> = answers.iter().enumerate().flat_map(turn).collect();
        let dialogue = dialogue([Message::user("Look.")].into_iter().chain(messages)).messages();
        assert_eq!(
            crate::projection::normalize_messages::dialogue(dialogue.clone()).messages(),
            dialogue,
            "it is stable"
        );
        let texts = dialogue.iter().filter_map(|message| match message {
            Message::Tool { call, text, .. } => Some((call.clone(), text.clone())),
            _ => None,
        });
        let results: Vec<_> = texts.collect();
        let calls = dialogue.iter().flat_map(|message| match message {
            Message::Assistant { parts, .. } => parts.iter().filter_map(id).map(str::to_owned).collect(),
            _ => Vec::new(),
        });
        assert!(calls.eq(results.iter().map(|(id, _)| id.clone())), "{results:?}");
        results
    }

    #[test]
    fn id_that_every_api_accepts_stays() {
        let kimi = "functions.get_weather:0";

        assert_eq!(
            sent(&[&["call_1", kimi]]),
            [("call_1".to_owned(), "0.0".to_owned()), (kimi.to_owned(), "0.1".to_owned())]
        );
    }

    #[test]
    fn each_call_has_an_id_of_its_own_and_its_own_result() {
        let long = "call_".repeat(21);
        for answers in [
            vec![&["call_1", "call_1"][..]],
            vec![&["call_0"][..], &["call_0"], &["call_0", "call_1"]],
            vec![&["", ""][..], &[" "]],
            vec![&[long.as_str()][..], &[long.as_str()]],
            vec![&["call00002", "call00002"][..], &["call00004", ""]],
        ] {
            let results = sent(&answers);
            let mut ids: Vec<_> = results.iter().map(|(id, _)| id.as_str()).collect();
            assert!(ids.iter().all(|id| is_sendable(id)), "{ids:?}");
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), results.len(), "{results:?}");
            assert!(results.is_sorted_by_key(|(_, text)| text.clone()), "{results:?}");
        }
    }
}
