//! Sliding window of a rate limit: the requests of the last minute. It is pure: time is an input.

use std::collections::VecDeque;
use std::time::Duration;

use crate::record::WaitReason;

/// How long a request counts.
const MINUTE: Duration = Duration::from_mins(1);

/// The requests of the last minute, and a pause.
#[derive(Debug, Default)]
pub(super) struct Window {
    sent: VecDeque<SentRequest>,
    next: u64,
    tokens: u64,
    closed: Duration,
}

#[derive(Debug)]
struct SentRequest {
    id: u64,
    at: Duration,
    tokens: u64,
}

/// The limits per minute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ceiling {
    pub(super) requests: Option<u32>,
    pub(super) tokens: Option<u64>,
}

/// The reason why a request has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocked {
    /// When to retry at the latest; corrections of other requests can make it earlier.
    pub(super) until: Duration,
    pub(super) reason: WaitReason,
}

impl Window {
    /// Counts a request of so many tokens, unless it has to wait. One that exceeds the limit is admitted alone.
    pub(super) fn admit(&mut self, now: Duration, tokens: u64, most: Ceiling) -> Result<u64, Blocked> {
        while self.sent.front().is_some_and(|sent| sent.at.saturating_add(MINUTE) <= now) {
            let expired = self.sent.pop_front().map_or(0, |sent| sent.tokens);
            self.tokens = self.tokens.saturating_sub(expired);
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
        self.sent.push_back(SentRequest { id, at: now, tokens });
        Ok(id)
    }

    /// Replaces a request's estimated tokens by the real ones.
    pub(super) fn correct(&mut self, id: u64, tokens: u64) {
        if let Some(sent) = self.sent.iter_mut().find(|sent| sent.id == id) {
            self.tokens = self.tokens.saturating_sub(sent.tokens).saturating_add(tokens);
            sent.tokens = tokens;
        }
    }

    /// Blocks all requests until a time.
    pub(super) fn close(&mut self, until: Duration) {
        self.closed = self.closed.max(until);
    }

    /// Returns when another request fits, if it does not now.
    fn room_for_one(&self, most: usize) -> Option<Duration> {
        let last = self.sent.len().checked_sub(most)?;
        self.sent.get(last).map(|sent| sent.at.saturating_add(MINUTE))
    }

    /// Returns when so many more tokens fit, if they do not now.
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
    fn request_above_the_limit_is_admitted_alone() {
        let (mut window, most) = (Window::default(), Ceiling { requests: None, tokens: Some(100) });

        assert_eq!(window.admit(secs(0), 1000, most), Ok(0));
        assert_eq!(window.admit(secs(1), 1000, most), Err(Blocked { until: secs(60), reason: WaitReason::Tokens }));
        assert_eq!(window.admit(secs(60), 1000, most), Ok(1));
    }

    #[test]
    fn real_usage_replaces_the_estimate() {
        let (mut window, most) = (Window::default(), Ceiling { requests: None, tokens: Some(100) });
        let id = window.admit(secs(0), 90, most).unwrap();
        assert!(window.admit(secs(1), 20, most).is_err());

        window.correct(id, 80);
        assert!(window.admit(secs(1), 20, most).is_ok());
        assert!(window.admit(secs(2), 1, most).is_err());
        // An expired request is not corrected any more.
        assert!(window.admit(secs(61), 1, most).is_ok());
        window.correct(id, 1_000_000);
        assert!(window.admit(secs(61), 99, most).is_ok());
    }

    #[test]
    fn pause_blocks_all_requests() {
        let (mut window, most) = (Window::default(), Ceiling { requests: Some(5), tokens: None });

        window.close(secs(7));
        window.close(secs(3));

        assert_eq!(window.admit(secs(1), 0, most), Err(Blocked { until: secs(7), reason: WaitReason::RetryAfter }));
        assert_eq!(window.admit(secs(7), 0, most), Ok(0));
    }

    proptest! {
        #[test]
        fn no_minute_exceeds_the_limits_and_no_request_waits_forever(
            requests in 1_u32..6,
            tokens in 1_u64..200,
            wanted in prop::collection::vec((0_u64..20, 0_u64..150, prop::option::of(0_u64..150)), 1..60),
        ) {
            let most = Ceiling { requests: Some(requests), tokens: Some(tokens) };
            let (mut window, mut now) = (Window::default(), Duration::ZERO);
            // When each was sent, and its maximum counted tokens.
            let mut sent: Vec<(Duration, u64)> = Vec::new();
            for (pause, size, used) in wanted {
                now += secs(pause);
                let mut tries = 0;
                let id = loop {
                    match window.admit(now, size, most) {
                        Ok(id) => break id,
                        Err(blocked) => {
                            prop_assert!(blocked.until > now, "a retry would not progress");
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
