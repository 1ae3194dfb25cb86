//! A list of messages in which those of one role in a row are one message with several blocks.

/// Writes the list of messages of an API that alternates between two roles.
///
/// ```
/// use positronic_model_http::Turns;
///
/// let mut turns = Turns::new("parts");
/// turns.add("user", r#"[{"text":"Hi."}]"#);
/// turns.add("user", r#"[{"text":"Are you there?"}]"#);
/// turns.add("model", "[]");
/// assert_eq!(turns.end(), r#"[{"role":"user","parts":[{"text":"Hi."},{"text":"Are you there?"}]}]"#);
/// ```
#[derive(Debug)]
pub struct Turns {
    out: String,
    field: &'static str,
    role: Option<&'static str>,
}

impl Turns {
    /// Begins a list of messages whose blocks are in `field`.
    #[must_use]
    pub const fn new(field: &'static str) -> Self {
        Self { out: String::new(), field, role: None }
    }

    /// Adds an encoded list of blocks to the last message if it has the same role, else to a new one. An empty list adds nothing.
    pub fn add(&mut self, role: &'static str, blocks: &str) {
        let Some(blocks) = blocks.strip_prefix('[').and_then(|blocks| blocks.strip_suffix(']')) else { return };
        if blocks.is_empty() {
            return;
        }
        if self.role == Some(role) {
            self.out.push(',');
        } else {
            self.out.push_str(if self.role.is_some() { "]}," } else { "[" });
            self.out.extend([r#"{"role":""#, role, r#"",""#, self.field, r#"":["#]);
            self.role = Some(role);
        }
        self.out.push_str(blocks);
    }

    /// Returns the encoded list.
    #[must_use]
    pub fn end(mut self) -> String {
        self.out.push_str(if self.role.is_some() { "]}]" } else { "[]" });
        self.out
    }
}
