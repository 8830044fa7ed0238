//! Decides which addresses a hook may reach: public ones over TLS, and those that the user listed.

use std::net::{IpAddr, SocketAddr};

use ollm_net::{AddressKind, within};

/// Names with these endings exist only within one network.
const NOT_PUBLIC_NAMES: &[&str] =
    &["arpa", "corp", "home", "internal", "intranet", "lan", "local", "localdomain", "localhost", "private"];

/// Checks whether a hook may connect to an address of a host. The error says why not, and what to do.
pub(super) fn check(host: &str, address: SocketAddr, secure: bool, allowed: &[String]) -> Result<(), String> {
    let kind = AddressKind::of(address.ip());
    let listed = allowed.iter().any(|entry| lists(entry, host, address, kind));
    match (kind, listed) {
        (_, true) => Ok(()),
        (AddressKind::Public, false) if secure => Ok(()),
        (AddressKind::Public, false) => {
            Err(format!("http to {host} could be read on the way; use https, or list it in hooks.http.allow"))
        }
        (kind, false) => Err(format!(
            "{host} is {kind} ({}), which hooks may only reach when it is listed; add \"{}\" to hooks.http.allow of your own config.yaml if that is meant",
            address.ip(),
            address.ip()
        )),
    }
}

/// Whether a hook may reach a host through a proxy, which looks names up by itself. The host must be a public name over
/// TLS, or a listed name. An address in any notation is not a name.
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

/// Whether an entry of the list is about an address: `host`, `address` or `network/bits`, each with an optional port.
///
/// A host that is listed by name may be on this machine or in a private network. Further places (the metadata service
/// of a cloud, a multicast group) must be listed by address. The owner of the name decides where it leads.
fn lists(entry: &str, host: &str, address: SocketAddr, kind: AddressKind) -> bool {
    let (place, port) = split(entry);
    if port.is_some_and(|port| port.parse() != Ok(address.port())) {
        return false;
    }
    if let Some((net, bits)) = place.split_once('/') {
        return net.parse().is_ok_and(|net| bits.parse().is_ok_and(|bits| within(address.ip(), net, bits)));
    }
    match place.parse::<IpAddr>() {
        Ok(listed) => listed.to_canonical() == address.ip().to_canonical(),
        Err(_) => {
            place.eq_ignore_ascii_case(host)
                && matches!(
                    kind,
                    AddressKind::Public | AddressKind::ThisMachine | AddressKind::Private | AddressKind::Carrier
                )
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
