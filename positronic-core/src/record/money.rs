//! Amounts of money.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The number of decimal places of an amount.
const PLACES: usize = 9;

/// The number of parts of a currency's unit.
const NANOS: u64 = 1_000_000_000;

/// An amount of money in billionths of a currency's unit, so sums are exact.
///
/// It is formatted and parsed as a decimal number: `1.25`, `"0.000001"`.
///
/// ```
/// use positronic_core::record::Money;
///
/// let price: Money = "1.25".parse()?;
/// assert_eq!((price.nanos(), price.to_string()), (1_250_000_000, "1.25".to_owned()));
/// # Ok::<(), positronic_core::record::MoneyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Money(pub(super) u64);

/// Error from parsing an amount of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid amount of money: use a non-negative number such as 1.25 with at most 9 decimal places")]
pub struct MoneyError(String);

impl Money {
    /// Creates an amount of billionths.
    #[must_use]
    pub const fn of_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the billionths.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }
}

impl Money {
    /// Parses an author's amount.
    #[track_caller]
    #[expect(clippy::panic, reason = "an author's mistake, reported at its source before anything runs")]
    pub(crate) fn written<M: TryInto<Self, Error: Into<MoneyError>>>(amount: M) -> Self {
        match amount.try_into() {
            Ok(amount) => amount,
            Err(error) => panic!("{}", error.into()),
        }
    }
}

impl TryFrom<&str> for Money {
    type Error = MoneyError;

    fn try_from(text: &str) -> Result<Self, MoneyError> {
        text.parse()
    }
}

impl From<std::convert::Infallible> for MoneyError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl std::ops::AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, parts) = (self.0 / NANOS, self.0 % NANOS);
        let text = if parts == 0 { whole.to_string() } else { format!("{whole}.{parts:09}") };
        let text = if parts == 0 { &text } else { text.trim_end_matches('0') };
        f.pad(text)
    }
}

impl FromStr for Money {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let error = || MoneyError(text.to_owned());
        let (whole, parts) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(parts) || parts.len() > PLACES {
            return Err(error());
        }
        let parts = format!("{parts:0<PLACES$}").parse::<u64>().map_err(|_| error())?;
        let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(NANOS));
        whole.and_then(|whole| whole.checked_add(parts)).map(Self).ok_or_else(error)
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MoneyVisitor;

        impl de::Visitor<'_> for MoneyVisitor {
            type Value = Money;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount of money such as 1.25")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Money, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Money, E> {
                self.visit_str(&whole.to_string())
            }

            fn visit_i64<E: de::Error>(self, whole: i64) -> Result<Money, E> {
                self.visit_str(&whole.to_string())
            }

            // The shortest text of a number is the one in the file; no arithmetic is done on it.
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Money, E> {
                self.visit_str(&number.to_string())
            }
        }

        deserializer.deserialize_any(MoneyVisitor)
    }
}

/// The cost of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The amount.
    pub amount: Money,
    /// Its currency.
    pub currency: String,
    /// The date of the prices; `None` if the provider reported the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_exact_decimals() {
        for (text, nanos) in [("0", 0), ("1.25", 1_250_000_000), ("10.000000001", 10_000_000_001), ("0.1", 100_000_000)]
        {
            let money: Money = text.parse().unwrap();
            assert_eq!((money.nanos(), money.to_string().as_str()), (nanos, text));
        }
        for text in ["", ".", "1.", ".5", "-1", "1e3", "1,5", "1.0000000001", "99999999999", "NaN", "+1", "1 "] {
            assert!(text.parse::<Money>().is_err(), "{text:?}");
        }
        let read = |document| serde_json::from_value::<Money>(document).map(Money::nanos);
        assert_eq!(read(json!(0.1)).unwrap(), 100_000_000);
        assert_eq!(read(json!(1e-9)).unwrap(), 1);
        assert_eq!(read(json!(2)).unwrap(), 2_000_000_000);
        assert!(read(json!(-2)).is_err() && read(json!(1e-10)).is_err() && read(json!(null)).is_err());
    }
}
