//! Services: the dependencies of a brain's code.

use std::any::{TypeId, type_name};
use std::sync::Arc;

use crate::definition::AnyServices;
use crate::error::{Error, Result};

/// A type for the dependencies of a brain's code. It is never stored.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the services of a brain",
    label = "services are shared between tasks",
    note = "a service has to be `Send + Sync + 'static`; put what is not behind a mutex"
)]
pub trait Services: Send + Sync + 'static {}

impl<T: Send + Sync + 'static> Services for T {}

/// Marks a brain that declares no services, or is bound to its own. Such a brain can run, and can be nested in every other one.
///
/// It is never a value. In the code of a brain that declares no services, `cx.services` is a `()`. If the compiler reports
/// `()` where your own services are expected, declare those before the first stage:
///
/// ```
/// use positronic_core::prelude::*;
///
/// struct Database;
///
/// fn count(_: &Database) -> u32 {
///     7
/// }
///
/// let report = brain("Report").services::<Database>().step("Count", async |cx| Ok(count(&cx.services)));
/// # let _ = report;
/// ```
#[derive(Debug)]
pub struct NoServices {
    /// Makes the type unsized, as no type of services is, so that the implementations for both do not overlap.
    _unsized: [()],
}

/// The services that a brain needs: a type of [`Services`], or [`NoServices`].
pub trait Requirement: sealed::Sealed + 'static {
    /// The services of the brain's code; `()` for [`NoServices`].
    type Services: Services;
}

impl<V: Services> Requirement for V {
    type Services = V;
}

impl Requirement for NoServices {
    type Services = ();
}

/// The services of a brain that can run.
#[diagnostic::on_unimplemented(
    message = "this brain needs its services, `{Self}`, before it can run",
    label = "this brain is not bound to its services",
    note = "call `.bind(…)` on the brain, with a value of `{Self}` or an `Arc` of one"
)]
pub trait Bound: sealed::Sealed {}

impl Bound for NoServices {}

mod sealed {
    /// Prevents further requirements.
    pub trait Sealed {}

    impl Sealed for super::NoServices {}
    impl<V: super::Services> Sealed for V {}
}

/// A value of the services type `V`, or an `Arc` of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the services of this brain, which are `{V}`",
    label = "the brain's services are `{V}`",
    note = "a brain with the services `()` declares none; declare them before its first stage: `brain(…).services::<…>()`"
)]
pub trait IntoServices<V> {
    /// Returns the services.
    fn into_services(self) -> Arc<V>;
}

impl<V> IntoServices<V> for V {
    fn into_services(self) -> Arc<V> {
        Arc::new(self)
    }
}

impl<V> IntoServices<V> for Arc<V> {
    fn into_services(self) -> Self {
        self
    }
}

/// Ensures that a brain with these needs can be nested in one with the services `V`.
#[diagnostic::on_unimplemented(
    message = "a brain with the services `{Self}` does not fit into one with the services `{V}`",
    label = "this brain has other services than the one around",
    note = "give it its own services with `.provide(|around: &{V}| …)`"
)]
pub trait Within<V>: Requirement {}

impl<V> Within<V> for NoServices {}
impl<V: Services> Within<V> for V {}

/// Services that provide another service. A plugin requires it: `V: Provides<Mailer>`.
///
/// ```
/// use positronic_core::dsl::Provides;
///
/// struct Mailer;
/// struct Acme { mailer: Mailer }
///
/// impl Provides<Mailer> for Acme {
///     fn provided(&self) -> &Mailer {
///         &self.mailer
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the services `{Self}` do not provide `{T}`",
    label = "a `{T}` is needed here",
    note = "write `impl Provides<{T}> for {Self}`, or give the brain services that hold one with `.services::<…>()`"
)]
pub trait Provides<T>: Services {
    /// Returns the service.
    fn provided(&self) -> &T;
}

impl<T: Services> Provides<T> for T {
    fn provided(&self) -> &T {
        self
    }
}

/// Returns the typed services of a brain.
pub(super) fn services<V: Services>(services: &AnyServices) -> Result<Arc<V>> {
    // A brain without services may be nested in one with services, and then gets those.
    let given =
        if TypeId::of::<V>() == TypeId::of::<()>() { Arc::new(()) as AnyServices } else { Arc::clone(services) };
    given.downcast().map_err(|_| Error::new(format!("the brain was given other services than `{}`", type_name::<V>())))
}
