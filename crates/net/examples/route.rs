//! Says which addresses are reached through a proxy.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use ollm_net::Network;

fn main() -> Result<(), ollm_net::NetError> {
    let network = Network::from_variables(|name| match name {
        "https_proxy" => Some("http://proxy:3128".into()),
        "no_proxy" => Some("internal.example".into()),
        _ => None,
    });
    for address in ["https://example.com/", "https://internal.example/", "https://localhost:8443/"] {
        println!("{address} through a proxy: {}", network.uses_proxy(address)?);
    }
    assert!(network.uses_proxy("https://example.com/")?);
    assert!(!network.uses_proxy("https://internal.example/")?);
    Ok(())
}
