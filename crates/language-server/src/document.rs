//! A text that is open: its lines, what is wrong with it, where its places are for an editor.

use std::path::PathBuf;

use serde_json::{Value, json};
use tickwire_language::{Diagnostic, Interpreter, Program, Span, compile, run_test};

/// See the module's description.
pub(crate) struct Document {
    pub(crate) text: String,
    /// Where each line begins.
    lines: Vec<usize>,
    /// What it is, or what is wrong with it.
    pub(crate) compiled: Result<Program, Vec<Diagnostic>>,
}

impl Document {
    pub(crate) fn new(uri: &str, text: &str) -> Document {
        let folder = path_of(uri).and_then(|path| path.parent().map(PathBuf::from));
        let compiled = compile(text, &|name| match &folder {
            Some(folder) => std::fs::read_to_string(folder.join(name)).map_err(|e| e.to_string()),
            None => Err("the strategy is in no folder yet".to_owned()),
        });
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Document {
            text: text.to_owned(),
            lines: std::iter::once(0).chain(ends).collect(),
            compiled,
        }
    }

    /// A byte as line and UTF-16 unit, both from 0. Places between the bytes of a character are its
    /// beginning; those behind the text its end.
    pub(crate) fn position(&self, at: u32) -> Value {
        let at = self.floor(at as usize);
        let line = self.lines.partition_point(|from| *from <= at).saturating_sub(1);
        let before = &self.text[self.lines[line]..at];
        json!({ "line": line, "character": before.encode_utf16().count() })
    }

    pub(crate) fn range(&self, span: Span) -> Value {
        json!({ "start": self.position(span.from), "end": self.position(span.to) })
    }

    /// The whole text.
    pub(crate) fn everything(&self) -> Value {
        self.range(Span {
            from: 0,
            to: u32::try_from(self.text.len()).unwrap_or(u32::MAX),
        })
    }

    /// The byte of a position; what is beyond a line or the text is its end, as the protocol says.
    pub(crate) fn byte(&self, position: &Value) -> Result<u32, String> {
        let number = |name: &str| {
            let number = position[name].as_u64();
            number.ok_or_else(|| format!("no position: its {name} is {}", position[name]))
        };
        let (line, character) = (number("line")?, number("character")?);
        let line = usize::try_from(line).unwrap_or(usize::MAX);
        let Some(from) = self.lines.get(line) else {
            return Ok(self.text.len() as u32);
        };
        let text = self.text[*from..].split('\n').next().unwrap_or_default();
        let mut units = 0;
        for (at, c) in text.char_indices() {
            if units >= character {
                return Ok((from + at) as u32);
            }
            units += c.len_utf16() as u64;
        }
        Ok((from + text.len()) as u32)
    }

    fn floor(&self, at: usize) -> usize {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }

    /// What is wrong with it; of a text that is right, the tests that fail.
    pub(crate) fn diagnostics(&self, uri: &str) -> Value {
        let shown = |source: &str, found: &Diagnostic| {
            let lines = [Some(&found.message), Some(&found.label), found.help.as_ref()];
            let lines = lines.into_iter().flatten().filter(|line| !line.is_empty());
            let lines: Vec<&str> = lines.map(String::as_str).collect();
            let related = found.also.iter().map(|(span, label)| {
                json!({ "location": { "uri": uri, "range": self.range(*span) }, "message": label })
            });
            json!({
                "range": self.range(found.span),
                "severity": 1,
                "source": source,
                "message": lines.join("\n"),
                "relatedInformation": related.collect::<Vec<Value>>(),
            })
        };
        let all: Vec<Value> = match &self.compiled {
            Err(wrong) => wrong.iter().map(|found| shown("tickwire", found)).collect(),
            Ok(program) => {
                let failed = program.tests.iter().filter_map(|test| {
                    let found = run_test(program, test, Interpreter::new).err()?;
                    Some(shown(&format!("test \"{}\"", test.name), &found))
                });
                failed.collect()
            }
        };
        Value::Array(all)
    }
}

/// The path that a `file:` address names (RFC 8089), if it is one.
fn path_of(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    // Without a host, or with our own.
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = after.split_first_chunk::<2>()?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    let path = PathBuf::from(String::from_utf8(bytes).ok()?);
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_units_of_utf_16() {
        let document = Document::new("untitled:1", "# ä😀x\r\nstrategy s");
        let text = &document.text;
        for (at, _) in text.char_indices().filter(|(_, c)| *c != '\n') {
            let position = document.position(at as u32);
            assert_eq!(document.byte(&position), Ok(at as u32), "{position}");
        }
        assert_eq!(document.position(9), json!({ "line": 0, "character": 6 }));
        // Within a character, behind a line, behind the text.
        assert_eq!(document.position(3), json!({ "line": 0, "character": 2 }));
        assert_eq!(document.byte(&json!({ "line": 0, "character": 99 })), Ok(10));
        let end = text.len() as u32;
        assert_eq!(
            document.byte(&json!({ "line": u64::MAX, "character": u64::MAX })),
            Ok(end)
        );
        assert_eq!(document.position(u32::MAX), document.position(end));
        assert!(document.byte(&json!({ "line": -1, "character": 0 })).is_err());
        assert!(document.byte(&json!(null)).is_err());
    }

    #[test]
    fn a_file_is_found_by_its_address() {
        let path = |uri| path_of(uri).map(|path| path.display().to_string());
        assert_eq!(path("file:///a%20b/s.tw").as_deref(), Some("/a b/s.tw"));
        assert_eq!(path("file://localhost/s.tw").as_deref(), Some("/s.tw"));
        for no_file in [
            "untitled:1",
            "file://elsewhere/s.tw",
            "file:///%",
            "file:///%zz",
            "file:///%ff",
            "file://",
        ] {
            assert_eq!(path(no_file), None, "{no_file}");
        }
    }
}
