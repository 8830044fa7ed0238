//! Asynchronous clients, with `reqwest`, because the MCP SDK needs them.

use std::sync::Arc;

use reqwest::{Client, ClientBuilder, Proxy, Url};

use crate::roots::Verifier;
use crate::{NetError, Network};

impl Network {
    /// The settings that all clients share. A variable with an invalid proxy is an error for every address, because
    /// this library would otherwise connect without a proxy.
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
