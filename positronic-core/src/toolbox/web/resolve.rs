//! DNS resolution with address checks.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use derive_where::derive_where;
use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::{PrivateAddresses, is_public};

/// Resolves host names.
pub trait HostResolver: Send + Sync + 'static {
    /// Returns all addresses of the host.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl HostResolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|found| found.ip()).collect()) })
    }
}

/// Filters the addresses of a host. Connections only use the remaining ones.
#[derive(Clone)]
#[derive_where(Debug)]
pub(super) struct Checked {
    #[derive_where(skip)]
    pub(super) resolver: Arc<dyn HostResolver>,
    pub(super) private: PrivateAddresses,
}

/// The error for a host without allowed addresses.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{host}` is at {addresses}, which is not in the public internet")]
pub(super) struct NotPublic {
    host: String,
    addresses: String,
}

impl Checked {
    /// Returns the allowed addresses.
    pub(super) fn keep(&self, host: &str, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, NotPublic> {
        let allowed = |address: &&IpAddr| self.private == PrivateAddresses::Allow || is_public(**address);
        let kept: Vec<_> = addresses.iter().filter(allowed).copied().collect();
        if kept.is_empty() && !addresses.is_empty() {
            let addresses: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
            return Err(NotPublic { host: host.to_owned(), addresses: addresses.join(", ") });
        }
        Ok(kept)
    }
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let checked = self.clone();
        Box::pin(async move {
            let found = checked.resolver.resolve(name.as_str()).await?;
            let kept = checked.keep(name.as_str(), &found)?;
            // The caller sets the port.
            let addresses: Addrs = Box::new(kept.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
