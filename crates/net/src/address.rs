//! Classifies addresses: public, on this machine, or known only in some network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of an address. An IPv4 address inside an IPv6 one counts as the IPv4 address.
///
/// ```
/// use ollm_net::AddressKind;
/// assert_eq!(AddressKind::of("1.1.1.1".parse().unwrap()), AddressKind::Public);
/// assert_eq!(AddressKind::of("::ffff:10.0.0.1".parse().unwrap()), AddressKind::Private);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    /// Part of the public Internet.
    Public,
    /// This machine.
    ThisMachine,
    /// Known in one network only.
    Private,
    /// Known inside a carrier's network only.
    Carrier,
    /// Known on one link only; clouds keep their metadata there.
    LinkLocal,
    /// No address that a program can connect to.
    Unspecified,
    /// For examples in documents.
    Documentation,
    /// For measurements between networks.
    Benchmarking,
    /// A group of machines.
    Multicast,
    /// The end of a tunnel.
    Tunnel,
    /// For something else.
    Reserved,
}

use AddressKind::{Benchmarking, Carrier, Documentation, LinkLocal, Multicast, Private, Public, Reserved};
use AddressKind::{ThisMachine, Tunnel, Unspecified};

const KINDS_4: &[(Ipv4Addr, u32, AddressKind)] = &[
    (Ipv4Addr::UNSPECIFIED, 8, Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Carrier),
    (Ipv4Addr::new(127, 0, 0, 0), 8, ThisMachine),
    (Ipv4Addr::new(169, 254, 0, 0), 16, LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Documentation),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Benchmarking),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Documentation),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Documentation),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Multicast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Reserved),
];

/// Kinds by network; the first network that holds an address counts. Outside `2000::/3` no address is public.
const KINDS_6: &[(Ipv6Addr, u32, AddressKind)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, Unspecified),
    (Ipv6Addr::LOCALHOST, 128, ThisMachine),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, LinkLocal),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Private),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Multicast),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Documentation),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, Reserved),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, Tunnel),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Documentation),
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, Public),
];

/// The prefix under which IPv6-only networks place IPv4 addresses.
const NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);

impl AddressKind {
    /// The kind of an address.
    pub fn of(address: IpAddr) -> AddressKind {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let found = KINDS_4.iter().find(|(net, bits, _)| within(address.into(), (*net).into(), *bits));
                found.map_or(Public, |(_, _, kind)| *kind)
            }
            IpAddr::V6(address) if within(address.into(), NAT64.into(), 96) => {
                let [.., high, low] = address.segments();
                AddressKind::of(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)).into())
            }
            IpAddr::V6(address) => {
                let found = KINDS_6.iter().find(|(net, bits, _)| within(address.into(), (*net).into(), *bits));
                found.map_or(Reserved, |(_, _, kind)| *kind)
            }
        }
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Public => "a public address",
            ThisMachine => "this machine",
            Private => "a private address",
            Carrier => "a carrier's internal address",
            LinkLocal => "a link-local address",
            Unspecified => "an unspecified address",
            Documentation => "a documentation address",
            Benchmarking => "a benchmarking address",
            Multicast => "a multicast address",
            Tunnel => "a tunnel address",
            Reserved => "a reserved address",
        })
    }
}

/// Whether an address begins with the first `bits` bits of a network. With more bits than an address has, nothing
/// matches.
pub fn within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address.to_canonical(), network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if bits <= 32 => {
            (address.to_bits() ^ network.to_bits()).checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if bits <= 128 => {
            (address.to_bits() ^ network.to_bits()).checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}
