//! The client of a request: behind a trusted proxy, the one that the proxy names.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::extract::ConnectInfo;
use axum::http::request::Parts;

/// A range of IP addresses: `10.0.0.0/8`, `fd00::/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpRange {
    network: IpAddr,
    bits: u8,
}

/// Error from parsing an [`IpRange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an IP address or a range such as 10.0.0.0/8")]
pub struct InvalidIpRange;

impl IpRange {
    /// Returns whether an address is in the range.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or_default();
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or_default();
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

impl FromStr for IpRange {
    type Err = InvalidIpRange;

    fn from_str(text: &str) -> Result<Self, InvalidIpRange> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let network = address.parse::<IpAddr>().map_err(|_| InvalidIpRange)?.to_canonical();
        let most = if network.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| InvalidIpRange)?;
        if bits > most { Err(InvalidIpRange) } else { Ok(Self { network, bits }) }
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

/// Returns the address of the client. `X-Forwarded-For` counts only as far as trusted proxies have written it: from its end
/// to the first address that is not one of theirs.
pub(crate) fn client_address(trusted: &[IpRange], parts: &Parts) -> Option<IpAddr> {
    let peer = peer(parts)?;
    if !is_trusted(trusted, peer) {
        return Some(peer);
    }
    let headers = parts.headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let listed: Vec<&str> = headers.flat_map(|value| value.split(',')).map(str::trim).collect();
    let mut client = peer;
    for text in listed.into_iter().rev() {
        let Some(address) = address_of(text) else { break };
        client = address;
        if !is_trusted(trusted, address) {
            break;
        }
    }
    Some(client)
}

/// Returns whether a trusted proxy says that the client reaches it over TLS.
pub(crate) fn is_tls(trusted: &[IpRange], parts: &Parts) -> bool {
    let last = parts.headers.get_all("x-forwarded-proto").iter().next_back();
    let scheme = last.and_then(|value| value.to_str().ok()?.rsplit(',').next()).map(str::trim);
    peer(parts).is_some_and(|peer| is_trusted(trusted, peer)) && scheme.is_some_and(|s| s.eq_ignore_ascii_case("https"))
}

/// Returns what of an address identifies a client: networks give a whole /64 to one.
pub(crate) fn client_prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

pub(crate) fn is_trusted(trusted: &[IpRange], address: IpAddr) -> bool {
    trusted.iter().any(|range| range.contains(address))
}

fn peer(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip().to_canonical())
}

/// Reads an address with or without a port.
fn address_of(text: &str) -> Option<IpAddr> {
    let address = text.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.or_else(|_| text.trim_matches(['[', ']']).parse()).ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn parts(peer: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 4000)));
        parts
    }

    #[test]
    fn ranges_contain_their_addresses() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("192.168.1.7", "192.168.1.7", "192.168.1.8"),
            ("0.0.0.0/0", "8.8.8.8", "::1"),
            ("fd00::/8", "fd12::1", "fe00::1"),
            ("127.0.0.1", "::ffff:127.0.0.1", "::1"),
        ] {
            let range: IpRange = range.parse().unwrap();
            assert!(range.contains(inside.parse().unwrap()) && !range.contains(outside.parse().unwrap()), "{range}");
        }
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/", "host/8"] {
            assert_eq!(text.parse::<IpRange>(), Err(InvalidIpRange), "{text}");
        }
    }

    #[test]
    fn only_trusted_proxies_name_the_client() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let client = |peer: &str, forwarded: &str| {
            client_address(&trusted, &parts(peer, &[("x-forwarded-for", forwarded)])).unwrap().to_string()
        };

        assert_eq!(client("9.9.9.9", "1.2.3.4"), "9.9.9.9", "a stranger");
        assert_eq!(client("10.0.0.1", "1.2.3.4"), "1.2.3.4");
        assert_eq!(client("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.2"), "1.2.3.4", "the client wrote the first one");
        assert_eq!(client("10.0.0.1", "[2001:db8::1]:443"), "2001:db8::1");
        assert_eq!(client("10.0.0.1", "1.2.3.4, unknown"), "10.0.0.1");
        assert_eq!(client_address(&trusted, &parts("10.0.0.1", &[])).unwrap().to_string(), "10.0.0.1");
    }

    #[test]
    fn only_trusted_proxies_say_that_the_client_uses_tls() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let tls = |peer, scheme| is_tls(&trusted, &parts(peer, &[("x-forwarded-proto", scheme)]));

        assert!(tls("10.0.0.1", "https") && tls("10.0.0.1", "http, HTTPS"));
        assert!(!tls("10.0.0.1", "https, http") && !tls("9.9.9.9", "https"));
    }

    #[test]
    fn clients_of_a_network_share_their_limits() {
        let prefix = |text: &str| client_prefix(text.parse().unwrap()).to_string();
        assert_eq!(
            (prefix("2001:db8::1:2"), prefix("::ffff:1.2.3.4")),
            ("2001:db8::".to_owned(), "1.2.3.4".to_owned())
        );
    }
}
