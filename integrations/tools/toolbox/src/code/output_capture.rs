//! Capture of a program's output, with a cut in the middle if it is too long.

use std::io::Read;
use std::sync::mpsc::{Receiver, channel};

/// Reads all output of a program, and stores the beginning and the end.
pub(super) fn kept(from: Option<impl Read + Send + 'static>, limit: usize) -> Receiver<String> {
    let (sender, receiver) = channel();
    let read = move || {
        let text = from.map(|from| beginning_and_end(from, limit)).unwrap_or_default();
        // The receiver may have given up.
        _ = sender.send(text);
    };
    // Without a thread the sender is dropped, and the result is that of a process that holds its output open.
    _ = std::thread::Builder::new().name("positronic-code-output".to_owned()).spawn(read);
    receiver
}

fn beginning_and_end(mut from: impl Read, limit: usize) -> String {
    let half = limit / 2;
    let (mut beginning, mut end, mut left_out) = (Vec::new(), std::collections::VecDeque::new(), 0_u64);
    let mut part = vec![0; 16 << 10];
    loop {
        let read = match from.read(&mut part) {
            Ok(0) => break,
            Ok(read) => part.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let (first, rest) = read.split_at(read.len().min(half - beginning.len()));
        beginning.extend_from_slice(first);
        end.extend(rest);
        let more = end.len().saturating_sub(limit - half);
        left_out += more as u64;
        end.drain(..more);
    }
    if left_out == 0 {
        beginning.extend(end);
        return String::from_utf8_lossy(&beginning).into_owned();
    }
    let end: Vec<u8> = end.into();
    let (beginning, end) = (String::from_utf8_lossy(&beginning), String::from_utf8_lossy(&end));
    format!("{beginning}\n[cut: {left_out} bytes are left out here; the limit is {limit}]\n{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_complete_up_to_the_limit_and_then_cut_in_the_middle() {
        assert_eq!(beginning_and_end("0123456789".as_bytes(), 10), "0123456789");
        assert_eq!(
            beginning_and_end("0123456789a".as_bytes(), 10),
            "01234\n[cut: 1 bytes are left out here; the limit is 10]\n6789a"
        );
        let long = "x".repeat(100_000);
        assert!(beginning_and_end(long.as_bytes(), 11).contains("[cut: 99989 bytes"));
    }
}
