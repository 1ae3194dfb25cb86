//! Faults of a model's answer that make it useless.

use serde::{Deserialize, Serialize};

use super::model_response::Finish;
use crate::record::prompt::part::Part;

/// The reason why an answer without calls is useless, or its calls are incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerFault {
    /// The model refused to answer.
    Refused,
    /// The provider's content filter stopped the answer.
    Filtered,
    /// The answer was cut off at the token limit.
    Length {
        /// The request's limit; `None` if the model's own limit or its context applied.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_output_tokens: Option<u32>,
    },
    /// The answer has neither text nor calls.
    Empty {
        /// The provider's finish reason, if it is an unknown one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl AnswerFault {
    /// Finds the fault of an answer, from its parts and its finish reason. `max_output_tokens` is the request's limit.
    #[must_use]
    pub fn of(parts: &[Part], finish: &Finish, max_output_tokens: Option<u32>) -> Option<Self> {
        let calls = parts.iter().any(|part| matches!(part, Part::Call { .. }));
        let refuses = || parts.iter().any(|part| matches!(part, Part::Refusal { .. }));
        match finish {
            Finish::Filtered => Some(Self::Filtered),
            Finish::Length => Some(Self::Length { max_output_tokens }),
            _ if calls => None,
            Finish::Paused => None,
            Finish::Refused => Some(Self::Refused),
            _ if refuses() => Some(Self::Refused),
            // An item that only its provider understands is not an answer.
            Finish::Other(_)
                if parts.iter().any(|part| matches!(part, Part::Text { text } if !text.trim().is_empty())) =>
            {
                None
            }
            Finish::Other(reason) => Some(Self::Empty { reason: Some(reason.clone()) }),
            _ if parts.iter().any(Part::says_something) => None,
            _ => Some(Self::Empty { reason: None }),
        }
    }

    /// Describes the fault and what to do, for the answer of `whose`: `the model of the loop `Chat``.
    #[must_use]
    pub fn sentence(&self, whose: &str) -> String {
        match self {
            Self::Refused => format!("{whose} refused to answer"),
            Self::Filtered => format!("the content filter of the provider stopped the answer of {whose}"),
            Self::Length { max_output_tokens: Some(limit) } => format!(
                "the answer of {whose} was cut off at its limit: `max_output_tokens` is {limit}; raise it, or ask for less"
            ),
            Self::Length { max_output_tokens: None } => format!(
                "the answer of {whose} was cut off at a limit of tokens that the loop does not set: the model's own, or \
                 `max_output_tokens` of its configuration; raise it there, ask for less, shorten the history, or choose a \
                 model with a larger limit"
            ),
            Self::Empty { reason: Some(reason) } => {
                format!("{whose} gave an empty answer, and stopped with `{reason}`")
            }
            Self::Empty { reason: None } => format!("{whose} gave an empty answer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::Text { text: text.to_owned() }
    }

    #[test]
    fn each_finish_reason_has_its_fault() {
        let refusal = Part::Refusal { text: "I cannot.".to_owned() };
        let call = Part::Call { index: 0 };
        let other = Finish::Other("MALFORMED_FUNCTION_CALL".to_owned());
        let cases = [
            (vec![text("Hi.")], Finish::Stop, None),
            (vec![call.clone()], Finish::Calls, None),
            (vec![call.clone()], other.clone(), None),
            (vec![refusal], Finish::Stop, Some(AnswerFault::Refused)),
            (vec![text("No.")], Finish::Refused, Some(AnswerFault::Refused)),
            (vec![text("Hi")], Finish::Filtered, Some(AnswerFault::Filtered)),
            (vec![call], Finish::Filtered, Some(AnswerFault::Filtered)),
            (vec![text("Hi")], Finish::Length, Some(AnswerFault::Length { max_output_tokens: Some(9) })),
            (vec![text(" ")], Finish::Stop, Some(AnswerFault::Empty { reason: None })),
            (vec![], Finish::Paused, None),
            (vec![], other, Some(AnswerFault::Empty { reason: Some("MALFORMED_FUNCTION_CALL".to_owned()) })),
        ];
        for (parts, finish, fault) in cases {
            assert_eq!(AnswerFault::of(&parts, &finish, Some(9)), fault, "{parts:?} {finish:?}");
        }
    }
}
