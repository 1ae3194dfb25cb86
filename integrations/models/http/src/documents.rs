//! Splitter of a body of JSON documents into its objects: one object, the elements of an array, or objects one after the other.

use super::scan::find_either;

/// Splits bytes into the objects at the top of a body. It does no I/O and does not check the JSON.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// The bytes of the unfinished object, or between two objects.
    open: Vec<u8>,
    /// The number of these bytes that were examined.
    seen: usize,
    depth: usize,
    in_string: bool,
    after_backslash: bool,
    /// The first object, as long as it may be the only one.
    first: Option<String>,
    is_array: bool,
    count: usize,
}

/// The end of a body of documents.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DocumentsEnd {
    /// It was one object.
    Only(String),
    /// Its objects were returned before, the last one may be incomplete.
    Nothing,
    /// It has no object.
    Text(String),
}

impl Documents {
    /// Returns the number of bytes that wait for more.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Adds bytes and returns the objects that they complete, except for the first one if it may be the only one.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        self.open.extend_from_slice(bytes);
        let mut objects = Vec::new();
        while let Some(end) = self.end_of_object() {
            let rest = self.open.split_off(end);
            let object = std::mem::replace(&mut self.open, rest);
            let object = without_separator(object);
            self.count += 1;
            objects.extend(self.first.take());
            if self.count == 1 && !self.is_array {
                self.first = Some(object);
            } else {
                objects.push(object);
            }
        }
        objects
    }

    /// Scans the new bytes up to the end of a top-level object, and returns the position after it. Every byte of every answer
    /// passes through this loop, so it works on local variables.
    fn end_of_object(&mut self) -> Option<usize> {
        let (mut depth, mut in_string, mut after_backslash) = (self.depth, self.in_string, self.after_backslash);
        let (mut end, mut place) = (None, self.seen);
        while let Some(byte) = self.open.get(place) {
            if std::mem::take(&mut after_backslash) {
                place += 1;
            } else if in_string {
                let Some(found) = find_either(self.open.get(place..).unwrap_or_default(), [b'"', b'\\']) else { break };
                place += found;
                in_string = self.open.get(place) != Some(&b'"');
                after_backslash = in_string;
                place += 1;
            } else {
                place += 1;
                match byte {
                    b'"' => in_string = depth > 0,
                    b'[' if depth == 0 => self.is_array = true,
                    b'{' => depth += 1,
                    b'}' if depth > 0 => {
                        depth -= 1;
                        if depth == 0 {
                            end = Some(place);
                            break;
                        }
                    }
                    _ => {}
                }
            }
        }
        (self.depth, self.in_string, self.after_backslash) = (depth, in_string, after_backslash);
        self.seen = if end.is_some() { 0 } else { self.open.len() };
        end
    }

    /// Ends the body.
    pub(super) fn finish(self) -> DocumentsEnd {
        match (self.first, self.count) {
            (Some(only), _) => DocumentsEnd::Only(only),
            (None, 0) => DocumentsEnd::Text(String::from_utf8_lossy(&self.open).into_owned()),
            (None, _) => DocumentsEnd::Nothing,
        }
    }
}

/// Returns an object without what separates it from the one before.
fn without_separator(object: Vec<u8>) -> String {
    let text = String::from_utf8(object);
    let mut text = text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let begin = text.find('{').unwrap_or(text.len());
    if begin > 0 {
        text.drain(..begin);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(body: &str, size: usize) -> (Vec<String>, DocumentsEnd) {
        let mut documents = Documents::default();
        let objects = body.as_bytes().chunks(size).flat_map(|bytes| documents.feed(bytes)).collect();
        (objects, documents.finish())
    }

    #[test]
    fn one_object_is_the_whole_answer() {
        let body = " {\"a\": [{\"b\": \"} \\\" {\"}]}\n";
        for size in 1..body.len() {
            assert_eq!(split(body, size), (vec![], DocumentsEnd::Only(body.trim().to_owned())), "{size}");
        }
    }

    #[test]
    fn elements_of_an_array_and_objects_in_a_row_are_returned_as_they_come() {
        let objects = ["{\"a\":\"[{\"}", "{\"ü\":{}}", "{\"c\":[1]}"];
        for body in
            [format!("[{}]", objects.join(",\n")), objects.join("\n"), format!("\r\n[\n{}\n]\n", objects.join(" , "))]
        {
            for size in 1..body.len() {
                assert_eq!(
                    split(&body, size),
                    (objects.map(str::to_owned).to_vec(), DocumentsEnd::Nothing),
                    "{body} {size}"
                );
            }
        }
        assert_eq!(split("[{\"a\":1}]", 3), (vec!["{\"a\":1}".to_owned()], DocumentsEnd::Nothing));
    }

    #[test]
    fn a_body_without_an_object_is_text() {
        for body in ["[]", "[1, \"{\"", "{\"a\": 1", "<html>{", ""] {
            assert_eq!(split(body, 2), (vec![], DocumentsEnd::Text(body.to_owned())), "{body}");
        }
    }
}
