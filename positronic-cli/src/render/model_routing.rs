//! Routing of a request in words: what the wrappers of models did with it.

use positronic_core::record::{ResponseMetadata, RoutingStep, WaitReason};

use super::figures::duration;

/// Renders the routing steps of an answer, and the answering model if it was not the requested one.
pub(crate) fn routing_summary(metadata: &ResponseMetadata) -> Option<String> {
    let mut said: Vec<String> = metadata.via.iter().filter_map(describe).collect();
    if said.is_empty() {
        return None;
    }
    if failed_over(metadata) {
        said.push(format!(
            "answered by {}/{}",
            metadata.provider,
            metadata.answered_by.as_ref().unwrap_or(&metadata.model)
        ));
    }
    Some(said.join("; "))
}

/// Returns whether another model answered after a failure.
pub(crate) fn failed_over(metadata: &ResponseMetadata) -> bool {
    metadata.via.iter().any(|step| matches!(step, RoutingStep::Failed { .. } | RoutingStep::Resting { .. }))
}

fn describe(step: &RoutingStep) -> Option<String> {
    Some(match step {
        RoutingStep::Routed { rule, model } => format!("sent to {model} by the rule `{rule}`"),
        RoutingStep::Failed { model, message, .. } => format!("{model} failed: {message}"),
        RoutingStep::Resting { model, .. } => format!("{model} is skipped for now after a failure"),
        RoutingStep::Waited { reason, time } => {
            let reason = match reason {
                WaitReason::Requests => "for the limit of requests per minute",
                WaitReason::Tokens => "for the limit of tokens per minute",
                WaitReason::RetryAfter => "as the provider requested",
                WaitReason::Slots => "for a free slot",
                _ => "to be sent",
            };
            format!("waited {} {reason}", duration(*time))
        }
        RoutingStep::Cached { .. } => "from the development cache".to_owned(),
        RoutingStep::CacheFailed { message } => message.clone(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use positronic_core::record::{ModelErrorKind, Usage};

    use super::*;

    fn metadata(via: Vec<RoutingStep>) -> ResponseMetadata {
        ResponseMetadata { provider: "groq".to_owned(), model: "llama".to_owned(), via, ..ResponseMetadata::default() }
    }

    #[test]
    fn routing_steps_and_the_fallback_are_shown() {
        let (model, kind) = ("openai/gpt-5".to_owned(), ModelErrorKind::RateLimited);
        let failed = RoutingStep::Failed { model: model.clone(), kind, message: "too many requests".to_owned() };
        let waited = RoutingStep::Waited { reason: WaitReason::Tokens, time: Duration::from_millis(2100) };
        let cached = RoutingStep::Cached { key: "0".to_owned(), usage: Usage::default() };
        let routed = RoutingStep::Routed { rule: "no tools".to_owned(), model: model.clone() };
        let resting = RoutingStep::Resting { model, kind, left: Duration::from_micros(7) };

        for (via, said) in [
            (vec![], None),
            (
                vec![failed, waited],
                Some(
                    "openai/gpt-5 failed: too many requests; waited 2.1 s for the limit of tokens per minute; answered by groq/llama",
                ),
            ),
            (vec![resting], Some("openai/gpt-5 is skipped for now after a failure; answered by groq/llama")),
            (vec![cached], Some("from the development cache")),
            (vec![routed], Some("sent to openai/gpt-5 by the rule `no tools`")),
        ] {
            assert_eq!(routing_summary(&metadata(via)).as_deref(), said);
        }
    }
}
