//! Who counts as one client where the server shares out what it has.

use std::net::IpAddr;

/// An IPv4 address, or the first 64 bits of an IPv6 address: what one customer of a network
/// provider usually has. Whoever has one IPv6 address has all 2^64 with the same beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    V4(u32),
    V6(u64),
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_of_64_bits_are_one_peer_and_so_is_an_ipv4_address_in_either_form() {
        let peer = |address: &str| Peer::from(address.parse::<IpAddr>().unwrap());
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff::2"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("192.0.2.1"), peer("::ffff:192.0.2.1"));
        assert_ne!(peer("0.0.0.1"), peer("::1"));
    }
}
