//! Translation of a reasoning effort into the settings of Anthropic and Gemini.

use positronic_anthropic::Thinking;

/// The efforts that a number of tokens can express.
pub(crate) const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The fewest tokens of thinking that Anthropic accepts.
pub(crate) const LEAST_BUDGET: u32 = 1024;

/// An effort that a model does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EffortError {
    Unknown,
    /// The maximum of output tokens is too low.
    NoRoom,
}

/// The settings of Anthropic's adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claude {
    pub(crate) thinking: Thinking,
    pub(crate) effort: Option<String>,
}

/// Translates an effort for a model of Anthropic. Models since Claude 4.6 decide themselves how much they think, guided by the
/// effort; earlier ones have a budget.
pub(crate) fn claude(model: &str, reasoning: &str, max_output_tokens: u32) -> Result<Claude, EffortError> {
    if reasoning == "none" {
        return Ok(Claude { thinking: Thinking::Disabled, effort: None });
    }
    if version(model).is_none_or(|version| version >= (4, 6)) {
        let effort = if reasoning == "minimal" { "low" } else { reasoning };
        return Ok(Claude { thinking: Thinking::Adaptive, effort: Some(effort.to_owned()) });
    }
    let budget = match reasoning {
        "minimal" => LEAST_BUDGET,
        "low" => 2048,
        "medium" => 6144,
        "high" | "xhigh" | "max" => 12_288,
        _ => return Err(EffortError::Unknown),
    };
    let budget_tokens = budget.min(max_output_tokens / 4 * 3);
    if budget_tokens < LEAST_BUDGET {
        return Err(EffortError::NoRoom);
    }
    Ok(Claude { thinking: Thinking::Enabled { budget_tokens }, effort: None })
}

/// The settings of Gemini's adapter, of which a model has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GeminiReasoning {
    Level(String),
    Budget(i32),
}

/// Translates an effort for a model of Google. Models since Gemini 3 have levels; earlier ones have a budget.
pub(crate) fn gemini(model: &str, reasoning: &str) -> Result<GeminiReasoning, EffortError> {
    let is_pro = model.contains("pro");
    if version(model).is_none_or(|version| version >= (3, 0)) {
        let level = match reasoning {
            "none" | "minimal" if is_pro => "low",
            "none" => "minimal",
            "xhigh" | "max" => "high",
            other => other,
        };
        return Ok(GeminiReasoning::Level(level.to_owned()));
    }
    Ok(GeminiReasoning::Budget(match reasoning {
        "none" if is_pro => 128,
        "none" => 0,
        "minimal" | "low" => 1024,
        "medium" => 8192,
        "high" | "xhigh" | "max" => 24_576,
        _ => return Err(EffortError::Unknown),
    }))
}

/// Returns the version in a model's name: `claude-haiku-4-5-20251001` is 4.5, `gemini-3.8-flash` is 3.8, and
/// `claude-3-7-sonnet` is 3.7. Dates are not versions.
fn version(model: &str) -> Option<(u32, u32)> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let mut numbers =
        name.split(['-', '.', '@']).skip_while(|part| !is_version(part)).take_while(|part| is_version(part));
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    Some((major, minor))
}

fn is_version(part: &str) -> bool {
    part.len() <= 2 && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_the_name() {
        for (model, found) in [
            ("claude-haiku-5-5", Some((5, 5))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-3-7-sonnet-latest", Some((3, 7))),
            ("claude-opus-4-5@20251101", Some((4, 5))),
            ("models/gemini-2.5-flash-lite", Some((2, 5))),
            ("gemini-3-pro-preview", Some((3, 0))),
            ("my-proxy", None),
        ] {
            assert_eq!(version(model), found, "{model}");
        }
    }

    #[test]
    fn effort_becomes_effort_or_budget_of_claude() {
        let adaptive = |effort: &str| Ok(Claude { thinking: Thinking::Adaptive, effort: Some(effort.to_owned()) });
        let budget = |budget_tokens| Ok(Claude { thinking: Thinking::Enabled { budget_tokens }, effort: None });
        let off = Ok(Claude { thinking: Thinking::Disabled, effort: None });
        let max = 16_384;

        for model in ["claude-opus-4-6", "claude-sonnet-5-5", "claude-haiku-5-5", "my-proxy"] {
            assert_eq!(claude(model, "none", max), off);
            assert_eq!(claude(model, "minimal", max), adaptive("low"));
            assert_eq!(claude(model, "xhigh", max), adaptive("xhigh"));
        }
        for model in ["claude-sonnet-4-5", "claude-haiku-4-5-20251001", "claude-3-7-sonnet-20250219"] {
            assert_eq!(claude(model, "none", max), off);
            assert_eq!(claude(model, "low", max), budget(2048));
            assert_eq!(claude(model, "medium", max), budget(6144));
            assert_eq!(claude(model, "max", max), budget(12_288));
            assert_eq!(claude(model, "high", 4000), budget(3000));
            assert_eq!(claude(model, "low", 1000), Err(EffortError::NoRoom));
            assert_eq!(claude(model, "much", max), Err(EffortError::Unknown));
        }
    }

    #[test]
    fn effort_becomes_level_or_budget_of_gemini() {
        let level = |level: &str| Ok(GeminiReasoning::Level(level.to_owned()));
        for (reasoning, flash, pro) in [
            ("none", "minimal", "low"),
            ("minimal", "minimal", "low"),
            ("medium", "medium", "medium"),
            ("max", "high", "high"),
        ] {
            assert_eq!(gemini("gemini-3.8-flash", reasoning), level(flash));
            assert_eq!(gemini("gemini-3.1-pro-preview", reasoning), level(pro));
        }
        for (reasoning, flash, pro) in
            [("none", 0, 128), ("low", 1024, 1024), ("medium", 8192, 8192), ("high", 24_576, 24_576)]
        {
            assert_eq!(gemini("gemini-2.5-flash", reasoning), Ok(GeminiReasoning::Budget(flash)));
            assert_eq!(gemini("gemini-2.5-pro", reasoning), Ok(GeminiReasoning::Budget(pro)));
        }
        assert_eq!(gemini("gemini-2.5-pro", "much"), Err(EffortError::Unknown));
    }
}
