//! DNS resolution with address checks, and HTTP clients that use it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use derive_where::derive_where;
use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, redirect};
use url::{Host, Url};

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
pub struct AddressGuard {
    #[derive_where(skip)]
    resolver: Arc<dyn HostResolver>,
    private: PrivateAddresses,
}

/// The error for a host without allowed addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{host}` is at {addresses}, which is not in the public internet")]
pub struct NotPublic {
    host: String,
    addresses: String,
}

impl AddressGuard {
    /// Creates a guard.
    #[must_use]
    pub fn new(resolver: Arc<dyn HostResolver>, private: PrivateAddresses) -> Self {
        Self { resolver, private }
    }

    /// Creates the builder of an HTTP client that connects to allowed addresses only. A URL with an address instead of a
    /// name is not resolved: [`AddressGuard::check`] it before each request. Redirects are not followed.
    pub fn client(&self) -> ClientBuilder {
        ClientBuilder::new()
            .dns_resolver(Arc::new(self.clone()))
            // The target of a redirect has to be checked like a request of its own.
            .redirect(redirect::Policy::none())
            // A proxy would connect to unchecked addresses.
            .no_proxy()
            // The DNS name of a pooled connection may have changed since the check.
            .pool_max_idle_per_host(0)
    }

    /// Checks a URL whose host is an address.
    ///
    /// # Errors
    ///
    /// [`NotPublic`] if the address is not allowed. A name is checked when it is resolved.
    pub fn check(&self, url: &Url) -> Result<(), NotPublic> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        self.keep(&address.to_string(), &[address]).map(|_| ())
    }

    /// Returns the allowed addresses.
    fn keep(&self, host: &str, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, NotPublic> {
        let allowed = |address: &&IpAddr| self.private == PrivateAddresses::Allow || is_public(**address);
        let kept: Vec<_> = addresses.iter().filter(allowed).copied().collect();
        if kept.is_empty() && !addresses.is_empty() {
            let addresses: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
            return Err(NotPublic { host: host.to_owned(), addresses: addresses.join(", ") });
        }
        Ok(kept)
    }
}

impl NotPublic {
    /// Returns the cause if a request failed because its host is not public.
    #[must_use]
    pub fn cause_of<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }
}

impl Resolve for AddressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let found = guard.resolver.resolve(name.as_str()).await?;
            let kept = guard.keep(name.as_str(), &found)?;
            // The caller sets the port.
            let addresses: Addrs = Box::new(kept.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
