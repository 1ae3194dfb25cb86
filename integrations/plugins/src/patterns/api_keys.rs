//! Keys and tokens of well-known forms.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

#[expect(clippy::expect_used, reason = "a constant expression, which a test compiles")]
static KEYS: LazyLock<Regex> = LazyLock::new(|| Regex::new(FORMS).expect("a valid expression"));

/// The forms, one a line.
const FORMS: &str = r"(?x)
    # AWS access keys, lasting and temporary: IAM user guide, `Unique identifiers`.
    (?:AKIA|ASIA)[A-Z2-7]{16}
    # GitHub: `Authentication token format updates`, which allows up to 255 characters; fine-grained tokens: `GitHub credential types`.
  | gh[pousr]_[A-Za-z0-9_]{36,251}
  | github_pat_[A-Za-z0-9_]{22,244}
    # GitLab: `Token overview`, `Token prefixes`.
  | glpat-[A-Za-z0-9_.-]{20,300}
    # Google: 39 characters, as in the Cloud documentation of API keys.
  | AIza[A-Za-z0-9_-]{35}
    # Anthropic: the keys of the console, by their version; administration keys too.
  | sk-ant-[a-z]{2,12}[0-9]{2}-[A-Za-z0-9_-]{80,200}
    # OpenAI: each kind of key has the provider's name in Base64 in its middle.
  | sk-[A-Za-z0-9_-]{16,200}T3BlbkFJ[A-Za-z0-9_-]{16,200}
    # Stripe: secret and restricted keys, `API keys`.
  | (?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,250}
    # Slack: `Token types`.
  | (?:xox[abeprs]|xapp)(?:\.xox[bp])?-[A-Za-z0-9-]{10,300}
    # Private keys in PEM, to their end or that of the text: RFC 7468, sections 10 and 11.
  | -----BEGIN\x20(?:[A-Z0-9]+\x20)*PRIVATE\x20KEY(?:\x20BLOCK)?-----(?s:.*?)(?:-----END\x20[A-Z0-9\x20]*-----|\z)
";

/// Returns the places of keys.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    KEYS.find_iter(text).map(|key| key.range()).collect()
}
