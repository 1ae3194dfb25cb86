//! Files that commands read and write.

mod atomic_write;
mod attach;
mod flag_input;
mod names;
mod output_file;
mod saved;
mod table;

pub(crate) use atomic_write::replace_file;
pub(crate) use attach::{attachment, attachments, message, store_attachments};
pub(crate) use flag_input::{flag_json, flag_text};
pub(crate) use names::{numbered_name, safe_file_name};
pub(crate) use output_file::{output_path, write_file};
pub(crate) use saved::Folder;
pub(crate) use table::read_table;
