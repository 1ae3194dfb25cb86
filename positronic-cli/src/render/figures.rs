//! Numbers as people read them: durations, counts, amounts of money and of limits, sizes.

use std::time::Duration;

use positronic_core::record::{LimitKind, Money, Usage};

/// Writes a duration: `120 ms`, `1.2 s`, `2 min 5 s`, `1 h 2 min`.
pub(crate) fn duration(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds}.{} s", millis / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Writes a duration that is still running, in whole seconds, so that it does not flicker.
pub(crate) fn seconds(length: Duration) -> String {
    if length.as_secs() < 60 { format!("{} s", length.as_secs()) } else { duration(length) }
}

/// Writes the time up to a deadline, to the nearest second: a deadline is computed a moment before its event.
pub(crate) fn until_due(left: Duration) -> String {
    seconds(left.saturating_add(Duration::from_millis(500)))
}

/// Writes how long ago something was, or how long it takes, in the largest unit that fits: `12s`, `3m`, `5h`, `2d`.
pub(crate) fn age(length: Duration) -> String {
    let seconds = length.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Writes how long until something happens, in its two largest units and rounded up, so that of three days `3d` are left at
/// once: `2d 23h`, `5m 30s`, `1s`.
pub(crate) fn left(length: Duration) -> String {
    const UNITS: [(u128, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let seconds = length.as_micros().div_ceil(1_000_000);
    let largest = UNITS.iter().position(|(size, _)| seconds >= *size).unwrap_or(UNITS.len() - 1);
    let smallest = UNITS.get(largest + 1).map_or(1, |(size, _)| *size);
    let mut rest = seconds.next_multiple_of(smallest);
    let mut parts = Vec::new();
    for (size, unit) in UNITS {
        if rest >= size || (size == 1 && parts.is_empty()) {
            parts.push(format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    parts.join(" ")
}

/// Writes a number with a comma between groups of three digits.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Writes a number of things.
pub(crate) fn many(number: impl TryInto<u64>, one: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    if number == 1 { format!("1 {one}") } else { format!("{} {one}s", count(number)) }
}

/// Writes an amount of money, in its currency where that is known: `0.30 EUR`, `0.30`. Parts of a unit have two decimals or more.
pub(crate) fn money(nanos: u64, currency: Option<&str>) -> String {
    let written = Money::of_nanos(nanos).to_string();
    let (whole, parts) = written.split_once('.').unwrap_or((&written, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    let parts = if parts.is_empty() { String::new() } else { format!(".{parts:0<2}") };
    let currency = currency.map_or_else(String::new, |currency| format!(" {currency}"));
    format!("{whole}{parts}{currency}")
}

/// Writes an amount of money for a list: in cents, or with two digits that are not zero.
pub(crate) fn rounded_money(nanos: u64, currency: &str) -> String {
    const CENT: u64 = 10_000_000;
    // Two digits of a small amount, and cents of a large one.
    let mut unit = CENT;
    while unit > 1 && nanos < unit * 10 {
        unit /= 10;
    }
    let rounded = nanos.saturating_add(unit / 2) / unit * unit;
    money(rounded, Some(currency))
}

/// Writes what a limit allows; money in its currency, where that is known.
pub(crate) fn amount(kind: LimitKind, limit: u64, currency: Option<&str>) -> String {
    match kind {
        LimitKind::Tokens => many(limit, "token"),
        LimitKind::Money if currency.is_none() => format!("{} in money", money(limit, None)),
        LimitKind::Money => money(limit, currency),
        LimitKind::Iterations => many(limit, "iteration"),
        LimitKind::Time => duration(Duration::from_micros(limit)),
        LimitKind::Failures => format!("{} in a row", many(limit, "failure")),
    }
}

/// Writes what is granted: `20 tokens more`, `2.50 EUR more`, `2.50 more in money`.
pub(crate) fn more(kind: LimitKind, amount: u64, currency: Option<&str>) -> String {
    match (kind, currency) {
        (LimitKind::Money, None) => format!("{} more in money", money(amount, None)),
        _ => format!("{} more", self::amount(kind, amount, currency)),
    }
}

/// Writes how much of a limit was used: `20 of 30 tokens`, `0.33 of 0.30 EUR`.
pub(crate) fn used_of(kind: LimitKind, used: u64, limit: u64, currency: Option<&str>) -> String {
    let used = match kind {
        LimitKind::Tokens | LimitKind::Iterations | LimitKind::Failures => count(used),
        LimitKind::Money => money(used, None),
        LimitKind::Time => duration(Duration::from_micros(used)),
    };
    format!("{used} of {}", amount(kind, limit, currency))
}

/// Writes how many tokens went in and out.
pub(crate) fn tokens(usage: &Usage) -> String {
    format!("{} tokens in, {} out", count(usage.input), count(usage.output))
}

/// Writes a size in bytes.
pub(crate) fn size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    // What would round up to 1,024 KiB is a MiB.
    match bytes {
        0..KIB => many(bytes, "byte"),
        _ if bytes < MIB - KIB / 2 => format!("{} KiB", in_units(bytes, KIB)),
        _ => format!("{} MiB", in_units(bytes, MIB)),
    }
}

/// Counts in units, rounded: with a decimal where there are fewer than ten, and it is not zero.
fn in_units(bytes: u64, unit: u64) -> String {
    let (bytes, unit) = (u128::from(bytes), u128::from(unit));
    let tenths = (bytes * 10 + unit / 2) / unit;
    match (tenths / 10, tenths % 10) {
        (whole @ 0..10, tenth @ 1..10) => format!("{whole}.{tenth}"),
        _ => count(u64::try_from((bytes + unit / 2) / unit).unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(duration(Duration::from_micros(120_900)), "120 ms");
        assert_eq!(duration(Duration::from_millis(59_999)), "59.9 s");
        assert_eq!(duration(Duration::from_secs(3_725)), "1 h 2 min");
        assert_eq!(
            [0, 59, 60, 7_300, 190_000].map(|seconds| age(Duration::from_secs(seconds))),
            ["0s", "59s", "1m", "2h", "2d"]
        );
        let hour = 3_600_000;
        assert_eq!(
            [72 * hour - 400, 71 * hour, 24 * hour - 1, 330_000, 59_001, 1, 0]
                .map(|millis| left(Duration::from_millis(millis))),
            ["3d", "2d 23h", "1d", "5m 30s", "1m", "1s", "0s"]
        );
        assert_eq!([count(0), count(999), count(1_000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        let amounts = [300_000_000, 330_000_000_000, 1_000_000_000_000, 15_000];
        assert_eq!(
            amounts.map(|nanos| money(nanos, Some("EUR"))),
            ["0.30 EUR", "330 EUR", "1,000 EUR", "0.000015 EUR"]
        );
        assert_eq!(
            [0, 1_234_567_890, 123_456_789, 12_345_678, 1_234_567, 7].map(|nanos| rounded_money(nanos, "USD")),
            ["0 USD", "1.23 USD", "0.12 USD", "0.012 USD", "0.0012 USD", "0.000000007 USD"]
        );
        assert_eq!(
            [Some("EUR"), None].map(|currency| more(LimitKind::Money, 2_500_000_000, currency)),
            ["2.50 EUR more", "2.50 more in money"]
        );
        assert_eq!(
            [Some("EUR"), None].map(|currency| used_of(LimitKind::Money, 330_000_000, 300_000_000, currency)),
            ["0.33 of 0.30 EUR", "0.33 of 0.30 in money"]
        );
        assert_eq!([many(1, "iteration"), many(2, "iteration")], ["1 iteration", "2 iterations"]);
        assert_eq!([size(12), size(2_048), size(3_000_000)], ["12 bytes", "2 KiB", "2.9 MiB"]);
        assert_eq!([size(1_023), size(1_024), size(1_536)], ["1,023 bytes", "1 KiB", "1.5 KiB"]);
        assert_eq!([size(10_188), size(10_189), size(20_000)], ["9.9 KiB", "10 KiB", "20 KiB"]);
        assert_eq!([size(1_048_000), size(1_048_575), size(5_242_880)], ["1,023 KiB", "1 MiB", "5 MiB"]);
        assert_eq!([size(20_447_232), size(2_000_000_000)], ["20 MiB", "1,907 MiB"]);
    }
}
