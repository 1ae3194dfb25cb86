//! The cause of a failure, as a text that is the same for runs that failed alike.
//!
//! The message of a failure says where it happened, from the outermost brain inwards, and then what happened. The cause is the
//! last part, its first line only, with an ellipsis for what differs from run to run: numbers and ids, to the end of their word.
//! The status of an HTTP answer and the numbers in names of models stay.

/// The largest number of characters of a cause.
const LONGEST: usize = 200;
/// How many digits a part of a name may have, such as those of a model.
const DIGITS_IN_NAME: usize = 2;
/// What stands for a number or an id.
const GAP: char = '…';

/// Returns the cause in the message of a failure.
pub(super) fn cause(message: &str) -> String {
    let line = innermost(message.trim()).lines().next().unwrap_or_default().trim_end();
    let mut cause = String::with_capacity(line.len());
    let mut follows_status = false;
    for word in line.split_inclusive(|letter: char| letter.is_whitespace() || "/`'\"()[]{}=".contains(letter)) {
        let text = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let (before, after) = word.split_once(text).unwrap_or_default();
        let is_status = follows_status && text.bytes().all(|byte| byte.is_ascii_digit());
        let name = if is_status { text } else { before_number(text) };
        cause.extend([before, name]);
        if name.len() < text.len() {
            cause.push(GAP);
        }
        cause.push_str(after);
        follows_status = matches!(text, "HTTP" | "status" | "code");
    }
    cause.chars().take(LONGEST).collect()
}

/// Returns the part of a word before its first number or id.
fn before_number(word: &str) -> &str {
    let mut end = 0;
    for part in word.split_inclusive(['-', '_', '.', ':', ',']) {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        let is_in_name = end > 0 || part.starts_with(char::is_alphabetic);
        if digits > DIGITS_IN_NAME || digits > 0 && !is_in_name {
            break;
        }
        end += part.len();
    }
    word.get(..end).unwrap_or_default()
}

/// Returns a message without the brains, loops and steps around the failure.
fn innermost(mut message: &str) -> &str {
    while let Some(rest) = without_place(message) {
        message = rest;
    }
    message
}

/// Returns what follows "the step `Load` failed: " and the like.
fn without_place(message: &str) -> Option<&str> {
    let place = message.strip_prefix("`on_exit` of ").unwrap_or(message);
    let (before, rest) = place.split_once('`')?;
    let (_, rest) = rest.split_once('`')?;
    let (times, cause) = rest.strip_prefix(" failed")?.split_once(": ")?;
    let is_place = before.starts_with("the ") && !before.contains([':', '.', ',']);
    let is_count = times.is_empty() || times.ends_with(" times") && !times.contains('`');
    (is_place && is_count && !cause.trim().is_empty()).then_some(cause)
}

#[cfg(test)]
mod tests {
    use super::cause;

    #[test]
    fn cause_is_the_innermost_error() {
        for (message, expected) in [
            ("the step `Load` failed: Acme is closed", "Acme is closed"),
            ("the brain `Research` failed: the loop `Research/Read` failed: no such page", "no such page"),
            (
                "the brain `Trip/Plan` failed: the model of the loop `Trip/Plan/Chat` failed 4 times: rate limit reached",
                "rate limit reached",
            ),
            ("`on_exit` of the loop `Chat` failed: no title", "no title"),
            ("the arm of the branch `Sort` failed: the state has no kind\nsecond line", "the state has no kind"),
            ("the loop `Chat` used up its 20 iterations", "the loop `Chat` used up its … iterations"),
            ("the step `Load` failed: ", "the step `Load` failed:"),
            ("the server `web` failed to say why", "the server `web` failed to say why"),
            ("", ""),
        ] {
            assert_eq!(cause(message), expected, "{message}");
        }
    }

    #[test]
    fn cause_has_no_numbers_and_ids() {
        for (one, other, expected) in [
            (
                "no customer 4711 (request req_011CSHoEeqs5C35K2UUqR7Fy)",
                "no customer 8 (request req_9a8bXHoEeqs5C35K2UUqR7Fx)",
                "no customer … (request req_…)",
            ),
            ("limit of 1,024.5 s since 12:30:01", "limit of 7 s since 09:15:59", "limit of … s since …"),
            (
                "`/tmp/stock-4711.csv`: No such file (os error 2)",
                "`/tmp/stock-815.csv`: No such file (os error 2)",
                "`/tmp/stock-…`: No such file (os error …)",
            ),
            (
                "run 01a2180b-7c1d-7000-8000-000000000001 is locked after 300ms",
                "run 01a2180b-7c1d-7000-8000-00000000000f is locked after 1500ms",
                "run … is locked after …",
            ),
            (
                "claude-sonnet-4-5-20250929 is not available at localhost:4711",
                "claude-sonnet-4-5-20260101 is not available at localhost:815",
                "claude-sonnet-4-5-… is not available at localhost:…",
            ),
        ] {
            assert_eq!((cause(one).as_str(), cause(other).as_str()), (expected, expected));
        }
        for kept in [
            "rate limit reached for gpt-5-mini (HTTP 429)",
            "gemini-2.5-flash refuses the image: größer als erlaubt",
            "no customer `C-99`",
            "exit code 137, signal: killed",
        ] {
            assert_eq!(cause(kept), kept);
        }
        assert_ne!(cause("refused (HTTP 401)"), cause("refused (HTTP 500)"));
        assert_eq!(cause(&"word ".repeat(100)).chars().count(), 200);
    }
}
