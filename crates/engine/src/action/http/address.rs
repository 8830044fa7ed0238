//! Which addresses may be reached: public ones over TLS, and whatever else the user listed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Networks that are no part of the public Internet.
const NOT_PUBLIC_4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::UNSPECIFIED, 8, "an unspecified address"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private address"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a carrier's internal address"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "this machine"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local address"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private address"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "a reserved address"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "a documentation address"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a reserved address"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private address"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "a benchmarking address"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "a documentation address"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "a documentation address"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved address"),
];

/// Networks inside `2000::/3` that are no part of the public Internet.
const NOT_PUBLIC_6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "a reserved address"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "a documentation address"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "a tunnel address"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "a documentation address"),
];

/// Names that end so are known in one network only.
const NOT_PUBLIC_NAMES: &[&str] =
    &["arpa", "corp", "home", "internal", "intranet", "lan", "local", "localdomain", "localhost", "private"];

/// Whether a connection to an address of a host may be made; otherwise why not, and the way out.
pub(super) fn check(host: &str, address: SocketAddr, secure: bool, allowed: &[String]) -> Result<(), String> {
    let kind = kind(address.ip());
    let listed = allowed.iter().any(|entry| lists(entry, host, address, kind));
    match (kind, listed) {
        (_, true) => Ok(()),
        (Some(kind), false) => Err(format!(
            "{host} is {kind} ({}), which hooks may only reach when it is listed; add \"{}\" to hooks.http.allow of your own config.yaml if that is meant",
            address.ip(),
            address.ip()
        )),
        (None, false) if secure => Ok(()),
        (None, false) => {
            Err(format!("http to {host} could be read on the way; use https, or list it in hooks.http.allow"))
        }
    }
}

/// Whether a host may be reached through a proxy, which looks names up by itself: a public name over TLS, or a name that
/// is listed. Addresses are not names, in whatever notation.
pub(super) fn may_be_proxied(host: &str, port: u16, secure: bool, allowed: &[String]) -> bool {
    let (above, last) = host.trim_end_matches('.').rsplit_once('.').unwrap_or(("", host));
    if host.contains(':') || last.starts_with(|letter: char| letter.is_ascii_digit()) {
        return false;
    }
    let listed = |entry: &String| {
        let (place, only) = split(entry);
        place.eq_ignore_ascii_case(host) && only.is_none_or(|only| only.parse() == Ok(port))
    };
    let public = !above.is_empty() && !NOT_PUBLIC_NAMES.contains(&last);
    allowed.iter().any(listed) || public && secure
}

/// What an address is if it is not public.
fn kind(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => {
            let found = NOT_PUBLIC_4.iter().find(|(net, bits, _)| same_4(*net, address, *bits));
            found.map(|(_, _, kind)| *kind)
        }
        IpAddr::V6(address) => kind_6(address),
    }
}

fn kind_6(address: Ipv6Addr) -> Option<&'static str> {
    let inside = |net: Ipv6Addr, bits| same_6(net, address, bits);
    // An IPv4 address in disguise is what it is without it.
    let [.., high, low] = address.segments();
    let disguised = Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    let is_disguise = address.to_ipv4_mapped().is_some() || inside(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);
    match () {
        () if address.is_unspecified() => Some("an unspecified address"),
        () if address.is_loopback() => Some("this machine"),
        () if is_disguise => kind(disguised.into()),
        () if inside(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10) => Some("a link-local address"),
        () if inside(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7) => Some("a private address"),
        () if inside(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8) => Some("a multicast address"),
        () if !inside(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3) => Some("a reserved address"),
        () => NOT_PUBLIC_6.iter().find(|(net, bits, _)| inside(*net, *bits)).map(|(_, _, kind)| *kind),
    }
}

/// Whether an entry of the list is about an address: `host`, `address` or `network/bits`, each with a port if it likes.
///
/// A host that is listed by name may be on this machine or in a private network; what lies beyond (the metadata service of
/// a cloud, a multicast group) must be listed by address, because whoever owns the name decides where it leads.
fn lists(entry: &str, host: &str, address: SocketAddr, kind: Option<&str>) -> bool {
    let (place, port) = split(entry);
    if port.is_some_and(|port| port.parse() != Ok(address.port())) {
        return false;
    }
    if let Some((net, bits)) = place.split_once('/') {
        return net.parse().is_ok_and(|net| bits.parse().is_ok_and(|bits| within(net, bits, address.ip())));
    }
    match place.parse::<IpAddr>() {
        Ok(listed) => listed.to_canonical() == address.ip().to_canonical(),
        Err(_) => {
            place.eq_ignore_ascii_case(host)
                && matches!(kind, None | Some("this machine" | "a private address" | "a carrier's internal address"))
        }
    }
}

/// An entry without its port; an IPv6 address with a port stands in brackets.
fn split(entry: &str) -> (&str, Option<&str>) {
    let entry = entry.trim();
    if let Some((inside, rest)) = entry.strip_prefix('[').and_then(|entry| entry.split_once(']')) {
        return (inside, rest.strip_prefix(':'));
    }
    match entry.rsplit_once(':') {
        Some((place, port)) if !place.contains(':') => (place, Some(port)),
        _ => (entry, None),
    }
}

fn within(net: IpAddr, bits: u32, address: IpAddr) -> bool {
    match (net, address.to_canonical()) {
        (IpAddr::V4(net), IpAddr::V4(address)) => bits <= 32 && same_4(net, address, bits),
        (IpAddr::V6(net), IpAddr::V6(address)) => bits <= 128 && same_6(net, address, bits),
        _ => false,
    }
}

fn same_4(one: Ipv4Addr, other: Ipv4Addr, bits: u32) -> bool {
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
    u32::from(one) & mask == u32::from(other) & mask
}

fn same_6(one: Ipv6Addr, other: Ipv6Addr, bits: u32) -> bool {
    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
    u128::from(one) & mask == u128::from(other) & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(host: &str, address: &str, secure: bool, allowed: &[&str]) -> bool {
        let ip: IpAddr = address.parse().unwrap();
        let allowed: Vec<String> = allowed.iter().map(|&entry| entry.to_owned()).collect();
        check(host, SocketAddr::new(ip, 8080), secure, &allowed).is_ok()
    }

    /// D4
    #[test]
    fn only_public_addresses_are_reached_without_being_listed() {
        for address in ["1.1.1.1", "93.184.216.34", "100.63.0.1", "100.128.0.1", "172.32.0.1", "2606:4700::1111"] {
            assert!(may("x", address, true, &[]), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(!may("x", address, true, &[]), "{address}");
        }
    }

    #[test]
    fn only_names_go_through_a_proxy_public_ones_over_tls_and_others_when_they_are_listed() {
        let goes = |host: &str, secure, allowed: &[&str]| {
            let allowed: Vec<String> = allowed.iter().map(|&entry| entry.to_owned()).collect();
            may_be_proxied(host, 8080, secure, &allowed)
        };
        for host in ["hooks.example.com", "hooks.example.com.", "xn--bcher-kva.example"] {
            assert!(goes(host, true, &[]), "{host}");
            assert!(!goes(host, false, &[]), "{host} without TLS");
            assert!(goes(host, false, &[host]), "{host} listed");
            assert!(goes(host, false, &[&format!("{host}:8080")]), "{host} listed with its port");
            assert!(!goes(host, false, &[&format!("{host}:9")]), "{host} listed with another port");
        }
        for host in
            ["box", "db.corp", "metadata.google.internal", "printer.local", "a.localhost", "1.0.0.10.in-addr.arpa"]
        {
            assert!(!goes(host, true, &[]), "{host}");
            assert!(goes(host, true, &[host]), "{host} listed");
        }
        for host in
            ["127.0.0.1", "10.1.2.3", "1.1.1.1", "2130706433", "0x7f.1", "0x7f000001", "::1", "fd00::1", "127.1."]
        {
            assert!(!goes(host, true, &[host]), "{host}");
        }
    }

    #[test]
    fn what_is_listed_is_reached_also_without_tls() {
        for (entry, address) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1:8080", "127.0.0.1"),
            ("127.0.0.1", "::ffff:127.0.0.1"),
            ("[::1]:8080", "::1"),
            ("::1", "::1"),
            ("10.0.0.0/8", "10.9.8.7"),
            ("10.0.0.0/8:8080", "10.9.8.7"),
            ("fd00::/8", "fd12::1"),
            ("Hooks.corp", "10.0.0.1"),
            ("hooks.corp:8080", "127.0.0.1"),
            ("169.254.169.254", "169.254.169.254"),
            ("hooks.corp", "1.1.1.1"),
        ] {
            assert!(may("hooks.corp", address, false, &[entry]), "{entry} {address}");
        }
        for (entry, address) in [
            ("127.0.0.1:9", "127.0.0.1"),
            ("127.0.0.2", "127.0.0.1"),
            ("10.0.0.0/8", "11.0.0.1"),
            ("10.0.0.0/99", "10.0.0.1"),
            ("other.corp", "127.0.0.1"),
            ("hooks.corp", "169.254.169.254"),
            ("hooks.corp", "fe80::1"),
            ("", "127.0.0.1"),
            ("/", "127.0.0.1"),
        ] {
            assert!(!may("hooks.corp", address, false, &[entry]), "{entry} {address}");
        }
        assert!(!may("x", "1.1.1.1", false, &[]), "plain http in public");
    }
}
