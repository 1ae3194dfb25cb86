//! What was sent within the last minute: pure, its time comes in.

use std::collections::VecDeque;
use std::time::Duration;

use crate::record::WaitReason;

/// For how long a request counts.
const MINUTE: Duration = Duration::from_mins(1);

/// What was sent within the last minute, and until when nothing may be.
#[derive(Debug, Default)]
pub(super) struct Window {
    sent: VecDeque<Sent>,
    next: u64,
    tokens: u64,
    closed: Duration,
}

#[derive(Debug)]
struct Sent {
    id: u64,
    at: Duration,
    tokens: u64,
}

/// How much may be sent in any minute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    pub(super) requests: Option<u32>,
    pub(super) tokens: Option<u64>,
}

/// Why a request may not be sent yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocked {
    /// When to ask again at the latest; what others use less than was thought can make it earlier.
    pub(super) until: Duration,
    pub(super) reason: WaitReason,
}

impl Window {
    /// Counts a request of so many tokens, unless it has to wait. One that is larger than a minute's tokens goes alone.
    pub(super) fn admit(&mut self, now: Duration, tokens: u64, most: Most) -> Result<u64, Blocked> {
        while self.sent.front().is_some_and(|sent| sent.at.saturating_add(MINUTE) <= now) {
            let gone = self.sent.pop_front().map_or(0, |sent| sent.tokens);
            self.tokens = self.tokens.saturating_sub(gone);
        }
        let closed = (self.closed > now).then_some((self.closed, WaitReason::RetryAfter));
        let requests = most.requests.and_then(|most| self.room_for_one(usize::try_from(most).unwrap_or(usize::MAX)));
        let requests = requests.map(|until| (until, WaitReason::Requests));
        let room = most.tokens.and_then(|most| self.room_for(tokens, most)).map(|until| (until, WaitReason::Tokens));
        let last = [closed, requests, room].into_iter().flatten().max_by_key(|(until, _)| *until);
        if let Some((until, reason)) = last {
            return Err(Blocked { until, reason });
        }
        let id = self.next;
        self.next += 1;
        self.tokens = self.tokens.saturating_add(tokens);
        self.sent.push_back(Sent { id, at: now, tokens });
        Ok(id)
    }

    /// Counts what a request really used in the place of what it was thought to use.
    pub(super) fn correct(&mut self, id: u64, tokens: u64) {
        if let Some(sent) = self.sent.iter_mut().find(|sent| sent.id == id) {
            self.tokens = self.tokens.saturating_sub(sent.tokens).saturating_add(tokens);
            sent.tokens = tokens;
        }
    }

    /// Lets nothing be sent until then.
    pub(super) fn close(&mut self, until: Duration) {
        self.closed = self.closed.max(until);
    }

    /// Returns when there is room for one more request, where there is none now.
    fn room_for_one(&self, most: usize) -> Option<Duration> {
        let last = self.sent.len().checked_sub(most)?;
        self.sent.get(last).map(|sent| sent.at.saturating_add(MINUTE))
    }

    /// Returns when there is room for so many tokens more, where there is none now.
    fn room_for(&self, tokens: u64, most: u64) -> Option<Duration> {
        let mut used = self.tokens;
        let mut until = None;
        for sent in &self.sent {
            if used.saturating_add(tokens) <= most {
                break;
            }
            used = used.saturating_sub(sent.tokens);
            until = Some(sent.at.saturating_add(MINUTE));
        }
        until
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn a_request_that_is_larger_than_a_minute_goes_alone() {
        let (mut window, most) = (Window::default(), Most { requests: None, tokens: Some(100) });

        assert_eq!(window.admit(secs(0), 1000, most), Ok(0));
        assert_eq!(window.admit(secs(1), 1000, most), Err(Blocked { until: secs(60), reason: WaitReason::Tokens }));
        assert_eq!(window.admit(secs(60), 1000, most), Ok(1));
    }

    #[test]
    fn what_was_used_counts_in_the_place_of_what_was_thought() {
        let (mut window, most) = (Window::default(), Most { requests: None, tokens: Some(100) });
        let id = window.admit(secs(0), 90, most).unwrap();
        assert!(window.admit(secs(1), 20, most).is_err());

        window.correct(id, 80);
        assert!(window.admit(secs(1), 20, most).is_ok());
        assert!(window.admit(secs(2), 1, most).is_err());
        // What is gone from the window is not corrected any more.
        assert!(window.admit(secs(61), 1, most).is_ok());
        window.correct(id, 1_000_000);
        assert!(window.admit(secs(61), 99, most).is_ok());
    }

    #[test]
    fn what_the_provider_asks_for_holds_all() {
        let (mut window, most) = (Window::default(), Most { requests: Some(5), tokens: None });

        window.close(secs(7));
        window.close(secs(3));

        assert_eq!(window.admit(secs(1), 0, most), Err(Blocked { until: secs(7), reason: WaitReason::RetryAfter }));
        assert_eq!(window.admit(secs(7), 0, most), Ok(0));
    }

    proptest! {
        #[test]
        fn no_minute_holds_more_than_it_may_and_nobody_waits_for_ever(
            requests in 1_u32..6,
            tokens in 1_u64..200,
            wanted in prop::collection::vec((0_u64..20, 0_u64..150, prop::option::of(0_u64..150)), 1..60),
        ) {
            let most = Most { requests: Some(requests), tokens: Some(tokens) };
            let (mut window, mut now) = (Window::default(), Duration::ZERO);
            // When each was sent, and the most tokens that it ever counted for.
            let mut sent: Vec<(Duration, u64)> = Vec::new();
            for (pause, size, used) in wanted {
                now += secs(pause);
                let mut tries = 0;
                let id = loop {
                    match window.admit(now, size, most) {
                        Ok(id) => break id,
                        Err(blocked) => {
                            prop_assert!(blocked.until > now, "it would be asked again at once, for ever");
                            now = blocked.until;
                        }
                    }
                    tries += 1;
                    prop_assert!(tries < 3);
                };
                let minute = |at: Duration| at + MINUTE > now;
                let before: Vec<_> = sent.iter().filter(|(at, _)| minute(*at)).collect();
                prop_assert!(before.len() < usize::try_from(requests).unwrap());
                let counted: u64 = before.iter().map(|(_, tokens)| tokens).sum();
                prop_assert!(counted + size <= tokens || before.is_empty());
                if let Some(used) = used {
                    window.correct(id, used);
                }
                sent.push((now, used.unwrap_or(size)));
            }
        }
    }
}
