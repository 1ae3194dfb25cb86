//! The macro `brains!`: the brains of a project as one typed value, which its services hold.

use std::sync::Arc;

use serde_json::Value;

use crate::dsl::brain::{Brain, IntoBrain};
use crate::dsl::services::{Services, Within};

/// A brain of a project without its types, bound to the project's services.
pub type BoundBrain = Brain<Value, Value>;

/// Binds a brain to the services of its project, for the macro [`brains!`](crate::brains).
pub fn bound<B: IntoBrain<Services: Within<V>>, V: Services>(brain: &B, services: &Arc<V>) -> BoundBrain {
    let services = Arc::clone(services);
    Brain::<Value, Value>::of(brain.definition()).provided(move |_| Arc::clone(&services) as _)
}

/// Makes a struct of the brains of a project, so that their code finds each other by field and type.
///
/// The struct is part of the project's [services](crate::dsl::Services), after `for`; without `for` it is all of them. `new()` builds the
/// brains, and `bind(&services)` returns them bound, for [`Runner::brains`](crate::runner::Runner::brains). A loop takes a brain from
/// `cx.services`, when an iteration begins; so two brains can have each other as tools:
///
/// ```
/// use std::sync::Arc;
///
/// use positronic_core::prelude::*;
/// use positronic_core::runner::Runner;
/// # use positronic_core::model::scripted::{Reply, ScriptedModel};
///
/// positronic_core::brains! {
///     /// The brains of the shop.
///     pub struct ShopBrains for Shop {
///         support: Brain<(), (), Shop> = support(),
///         refunds: Brain<(), (), Shop> = refunds(),
///     }
/// }
///
/// struct Shop {
///     brains: ShopBrains,
///     currency: &'static str,
/// }
///
/// fn support() -> Brain<(), (), Shop> {
///     brain("Support")
///         .services::<Shop>()
///         .r#loop("Chat", |cx| cx.system("Help.").brain("refund", &cx.services.brains.refunds))
///         .build()
/// }
///
/// fn refunds() -> Brain<(), (), Shop> {
///     brain("Refunds")
///         .services::<Shop>()
///         .r#loop("Decide", |cx| {
///             cx.system(format!("Refund in {}.", cx.services.currency)).brain("ask_support", &cx.services.brains.support)
///         })
///         .build()
/// }
///
/// let shop = Arc::new(Shop { brains: ShopBrains::new(), currency: "EUR" });
/// # let model = ScriptedModel::from_fn(|_| Reply::text("Done."));
/// let runner = Runner::new(model).brains(shop.brains.bind(&shop));
/// assert_eq!(runner.definitions().count(), 2);
/// ```
///
/// A field that does not exist, or with other types than its brain, does not compile:
///
/// ```compile_fail,E0609
/// # use positronic_core::prelude::*;
/// positronic_core::brains! {
///     struct Shop { refunds: Brain<(), u32> = brain("Refunds").step("Pay", async |_| Ok(7)) }
/// }
///
/// let support = brain("Support").services::<Shop>().r#loop("Chat", |cx| {
///     cx.system("Help.").brain("refund", &cx.services.refund)
/// });
/// ```
///
/// ```compile_fail,E0308
/// # use positronic_core::prelude::*;
/// positronic_core::brains! {
///     struct Shop { refunds: Brain<(), String> = brain("Refunds").step("Pay", async |_| Ok(7)) }
/// }
/// ```
#[macro_export]
macro_rules! brains {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        $crate::brains! { $(#[$meta])* $vis struct $name for $name { $($fields)* } }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident for $services:ty {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $brain:ty = $value:expr),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $brain),*
        }

        impl $name {
            /// Builds the brains.
            #[must_use]
            $vis fn new() -> Self {
                Self { $($field: $crate::dsl::IntoBrain::into_brain($value)),* }
            }

            /// Returns the brains bound to the services of the project, in the order of the fields.
            #[must_use]
            $vis fn bind(
                &self,
                services: &::std::sync::Arc<$services>,
            ) -> ::std::vec::Vec<$crate::dsl::BoundBrain> {
                ::std::vec![$($crate::dsl::bound(&self.$field, services)),*]
            }
        }

        impl ::std::default::Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}
