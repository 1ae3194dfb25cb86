//! Cache of a converted output format.

use std::sync::Arc;

use parking_lot::Mutex;
use positronic_core::record::OutputFormat;

/// The output format of an adapter's last request in the form of its API: the requests of a loop have the same one.
#[derive(Debug)]
pub struct FormatCache<T>(Mutex<Option<(OutputFormat, Arc<T>)>>);

impl<T> FormatCache<T> {
    /// Returns the converted format.
    pub fn get(&self, format: &OutputFormat, convert: impl FnOnce(&OutputFormat) -> T) -> Arc<T> {
        let mut cached = self.0.lock();
        match &*cached {
            Some((known, converted)) if known == format => Arc::clone(converted),
            _ => {
                let converted = Arc::new(convert(format));
                *cached = Some((format.clone(), Arc::clone(&converted)));
                converted
            }
        }
    }
}

impl<T> Default for FormatCache<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}
