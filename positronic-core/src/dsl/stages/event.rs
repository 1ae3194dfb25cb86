//! Events of one type, which `or` puts together.

/// An event of a wait or a race that becomes an `E`: an `E`.
#[diagnostic::on_unimplemented(
    message = "`or` puts together what becomes one type: one side becomes `{E}`, the other one `{Self}`",
    label = "this becomes `{Self}`",
    note = "make variants of one enum of both, before `or`: `.to(Answer::Paid)`"
)]
pub trait SameEvent<E>: 'static {
    /// Returns the event.
    fn same(self) -> E;
}

impl<E: 'static> SameEvent<E> for E {
    fn same(self) -> E {
        self
    }
}
