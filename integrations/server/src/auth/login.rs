//! One-use codes, with which a browser gets a session.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use positronic_core::record::Timestamp;
use subtle::ConstantTimeEq as _;

use super::secret::{hash_of, secret};

/// How long a code is valid.
const VALID: Duration = Duration::from_mins(15);

/// Issues the one-use codes of a router. A command prints one in a URL's fragment, which browsers do not send; the page
/// exchanges it for a session. Clones share the codes.
#[derive(Debug, Clone, Default)]
pub struct Login {
    codes: Arc<Mutex<Vec<IssuedCode>>>,
    person: Option<Arc<str>>,
}

#[derive(Debug)]
struct IssuedCode {
    hash: String,
    expires: Timestamp,
}

impl Login {
    /// Creates one that logs in a person; the log names that person.
    pub fn of(person: impl Into<Arc<str>>) -> Self {
        Self { person: Some(person.into()), ..Self::default() }
    }

    /// Returns the name of the person in the log.
    pub(crate) fn person(&self) -> &str {
        self.person.as_deref().unwrap_or("local")
    }

    /// Issues a code that logs one browser in, within 15 minutes from `now` on, with all scopes and for all users' runs.
    ///
    /// # Errors
    ///
    /// An error if the system has no source of randomness.
    pub fn code(&self, now: Timestamp) -> Result<String, getrandom::Error> {
        let code = secret()?;
        self.codes.lock().push(IssuedCode { hash: hash_of(&code), expires: now.after(VALID) });
        Ok(code)
    }

    /// Uses a code up, and returns whether it was valid.
    pub(crate) fn redeem(&self, code: &str, now: Timestamp) -> bool {
        let hash = hash_of(code);
        let mut codes = self.codes.lock();
        codes.retain(|issued| issued.expires > now);
        let before = codes.len();
        codes.retain(|issued| !bool::from(issued.hash.as_bytes().ct_eq(hash.as_bytes())));
        codes.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_works_once_and_expires() {
        let login = Login::default();
        let (first, second) = (login.code(Timestamp(0)).unwrap(), login.clone().code(Timestamp(0)).unwrap());

        assert!(login.redeem(&first, Timestamp(1)));
        assert!(!login.redeem(&first, Timestamp(1)));
        assert!(!login.redeem("", Timestamp(1)));
        assert!(!login.redeem(&second, Timestamp(0).after(VALID)));
    }
}
