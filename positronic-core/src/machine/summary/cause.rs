//! The cause of a failure, as a text that is the same for runs that failed alike.
//!
//! The message of a failure says where it happened, from the outermost brain inwards, and then what happened. The cause is the
//! last part, its first line only, with an ellipsis for what differs from run to run: numbers and ids. The status of an
//! HTTP answer and the numbers in names of models stay.

/// The largest number of characters of a cause.
const LONGEST: usize = 200;
/// How long a part of a word with letters and digits must be to count as an id, and how many digits it must have.
const ID: usize = 6;
const ID_DIGITS: usize = 2;
/// How long a word of hexadecimal digits and dashes must be to count as an id.
const HEX_ID: usize = 16;
/// How many digits after a dash are not part of a name, such as that of a model.
const NUMBER_IN_NAME: usize = 2;
/// What stands for a number or an id.
const GAP: char = '…';

/// Returns the cause in the message of a failure.
pub(super) fn cause(message: &str) -> String {
    let line = innermost(message.trim()).lines().next().unwrap_or_default().trim_end();
    let mut cause = String::with_capacity(line.len());
    let mut before = "";
    for word in words(line) {
        if word.starts_with(is_in_word) {
            let is_status = matches!(before, "HTTP" | "status" | "code");
            push_word(&mut cause, word, is_status);
            before = word;
        } else {
            if word.trim() != "" {
                before = "";
            }
            cause.push_str(word);
        }
    }
    joined(&cause).chars().take(LONGEST).collect()
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
    let (before, rest) = message.split_once('`')?;
    let (_, rest) = rest.split_once('`')?;
    let is_place = before.starts_with("the ") && !before.contains([':', '.', ',']);
    let rest = if is_place {
        rest.strip_prefix(" failed")?
    } else if message.starts_with("`on_exit` of the loop `") {
        let (_, rest) = rest.strip_prefix(" of the loop `")?.split_once('`')?;
        rest.strip_prefix(" failed")?
    } else {
        return None;
    };
    let (times, cause) = rest.split_once(": ")?;
    let is_count = times.is_empty() || times.ends_with(" times") && !times.contains('`');
    (is_count && !cause.trim().is_empty()).then_some(cause)
}

const fn is_in_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.') || !letter.is_ascii() && letter != GAP
}

/// Splits a line into words and what is between them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let is_word = rest.chars().next().map(is_in_word)?;
        let end = rest.find(|letter| is_in_word(letter) != is_word).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// Writes a word without its numbers and ids.
fn push_word(cause: &mut String, word: &str, is_status: bool) {
    let digits = |part: &str| part.bytes().filter(u8::is_ascii_digit).count();
    let id = word.trim_end_matches('.');
    let is_hex = id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if is_hex && id.len() >= HEX_ID && digits(id) > 0 {
        cause.push(GAP);
        cause.push_str(word.get(id.len()..).unwrap_or_default());
        return;
    }
    let mut is_first = true;
    let mut name = false;
    for part in word.split_inclusive(['-', '_', '.']) {
        let text = part.trim_end_matches(['-', '_', '.']);
        let separator = part.get(text.len()..).unwrap_or_default();
        let count = digits(text);
        let is_number = count > 0 && text.len() - count <= 2 && text.starts_with(|first: char| first.is_ascii_digit());
        let keeps = match is_number {
            true => is_first && is_status || name && count <= NUMBER_IN_NAME,
            false => text.chars().count() < ID || count < ID_DIGITS,
        };
        if keeps {
            cause.push_str(text);
        } else {
            cause.push(GAP);
        }
        cause.push_str(separator);
        name |= text.starts_with(|first: char| first.is_alphabetic());
        is_first = false;
    }
}

/// Makes one gap of several with only signs between them, such as those of `1,024.5`.
fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        joined.push(letter);
        if letter != GAP {
            continue;
        }
        let mut ahead = letters.clone();
        while matches!(ahead.peek(), Some('.' | ',' | ':' | '-' | '_')) && {
            ahead.next();
            ahead.peek() == Some(&GAP)
        } {
            ahead.next();
            letters = ahead.clone();
        }
    }
    joined
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
                "`/tmp/stock-….csv`: No such file (os error …)",
            ),
            (
                "run 01a2180b-7c1d-7000-8000-000000000001 is locked after 300ms",
                "run 01a2180b-7c1d-7000-8000-00000000000f is locked after 1500ms",
                "run … is locked after …",
            ),
        ] {
            assert_eq!((cause(one).as_str(), cause(other).as_str()), (expected, expected));
        }
        for kept in [
            "rate limit reached for gpt-5-mini (HTTP 429)",
            "gemini-2.5-flash refuses the image: größer als erlaubt",
            "no customer `C-99`",
        ] {
            assert_eq!(cause(kept), kept);
        }
        assert_ne!(cause("refused (HTTP 401)"), cause("refused (HTTP 500)"));
        assert_eq!(cause(&"word ".repeat(100)).chars().count(), 200);
    }
}
