//! Classification of public IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether connections to non-public addresses are allowed: those of this machine, of private networks,
/// and of the link-local metadata services of clouds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrivateAddresses {
    /// They are refused.
    #[default]
    Refuse,
    /// They are allowed, for instance for a listed server in the author's own network.
    Allow,
}

/// Returns whether an address is public.
///
/// Reserved addresses are not, nor IPv6 addresses that embed such an IPv4 address.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let set_aside = match address.octets() {
        // This network, private networks, this machine, link-local addresses (and the metadata of clouds).
        [0 | 10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [169, 254, ..] => true,
        // Carriers' own networks, protocol assignments, documentation, 6to4 relays, benchmarks.
        [100, 64..=127, ..] | [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => true,
        [192, 88, 99, _] | [198, 18 | 19, ..] => true,
        // Groups, reserved, broadcast.
        [224..=255, ..] => true,
        _ => false,
    };
    !set_aside
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [high, low] = [6, 7].map(|part: usize| address.segments().get(part).copied().unwrap_or_default());
    let last = || Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // IPv4-mapped addresses, and those behind a translator.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(last()),
        // 6to4: the second and third part are the IPv4 address.
        [0x2002, one, two, ..] => is_public_v4(Ipv4Addr::from((u32::from(one) << 16) | u32::from(two))),
        // Teredo and other protocols, and documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Global unicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_global_unicast_addresses_are_public() {
        for public in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::101:101"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "127.0.0.1",
            "127.8.8.8",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "::127.0.0.1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }
}
