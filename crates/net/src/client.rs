//! Asynchronous clients, by `reqwest`: the MCP SDK needs them.

use std::sync::Arc;

use reqwest::{Client, ClientBuilder, Proxy, Url};

use crate::roots::Verifier;
use crate::{NetError, Network};

impl Network {
    /// What all clients have in common. A variable that names no proxy is an error for every address: this library
    /// would go without it.
    pub fn client(&self) -> Result<ClientBuilder, NetError> {
        let tls = Verifier::client_config(Arc::clone(&self.verifier))?;
        let mut urls: Vec<(String, Url)> = Vec::new();
        for proxy in self.proxies.both()?.into_iter().flatten() {
            let url = Url::parse(&proxy.text).map_err(|_| proxy.refused())?;
            urls.push((proxy.text.clone(), url));
        }
        let proxies = Arc::clone(&self.proxies);
        let find = move |url: &Url| {
            let proxy = proxies.find(url.as_str()).ok()??;
            urls.iter().find(|(text, _)| *text == proxy.text).map(|(_, url)| url.clone())
        };
        Ok(Client::builder().tls_backend_preconfigured(tls).no_proxy().proxy(Proxy::custom(find)))
    }
}
