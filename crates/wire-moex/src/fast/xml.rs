//! A reader of the XML subset that template files use: elements, attributes, comments, processing
//! instructions, the five named entities and character references. No document type, no CDATA; prefixes of
//! names are dropped. (Extensible Markup Language 1.0; Namespaces in XML 1.0 only as far as dropping prefixes
//! goes.)

use alloc::string::String;
use alloc::vec::Vec;

use super::error::{TemplateError, TemplateFault};

/// Deeper files are refused, so that no file can exhaust the stack.
const DEPTH_MAX: u32 = 32;

/// One element with all that is in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// Local name.
    pub(crate) name: String,
    /// Attributes: local name and value; `xmlns` declarations are left out.
    pub(crate) attributes: Vec<(String, String)>,
    /// Child elements; text between them must be white space.
    pub(crate) children: Vec<Element>,
    /// Line of the start tag.
    pub(crate) line: u32,
}

impl Element {
    /// The value of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }
}

/// Parses a document and gives its root element.
pub(crate) fn parse(text: &str) -> Result<Element, TemplateError> {
    let mut parser = Parser {
        rest: text.strip_prefix('\u{feff}').unwrap_or(text),
        line: 1,
    };
    parser.skip_misc()?;
    let root = parser.element(0)?;
    parser.skip_misc()?;
    if parser.rest.is_empty() {
        Ok(root)
    } else {
        parser.fail("text after the root element")
    }
}

struct Parser<'a> {
    rest: &'a str,
    line: u32,
}

impl<'a> Parser<'a> {
    fn fail<T>(&self, what: &'static str) -> Result<T, TemplateError> {
        Err(TemplateError {
            fault: TemplateFault::Syntax(what),
            line: self.line,
        })
    }

    /// Moves `n` bytes on; `n` is always a boundary found by a search in `rest`.
    fn advance(&mut self, n: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(n).unwrap_or((self.rest, ""));
        self.line = self
            .line
            .saturating_add(taken.bytes().filter(|&b| b == b'\n').count() as u32);
        self.rest = rest;
        taken
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest.starts_with(token);
        if found {
            self.advance(token.len());
        }
        found
    }

    fn skip_space(&mut self) -> bool {
        let n = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        self.advance(n);
        n > 0
    }

    /// Skips to behind `end`, which must come.
    fn skip_past(&mut self, end: &str, what: &'static str) -> Result<(), TemplateError> {
        match self.rest.find(end) {
            Some(at) => {
                self.advance(at + end.len());
                Ok(())
            }
            None => self.fail(what),
        }
    }

    /// White space, comments and processing instructions.
    fn skip_misc(&mut self) -> Result<(), TemplateError> {
        loop {
            self.skip_space();
            if self.take("<!--") {
                self.skip_past("-->", "comment without end")?;
            } else if self.take("<?") {
                self.skip_past("?>", "processing instruction without end")?;
            } else if self.rest.starts_with("<!") {
                return self.fail("document types and CDATA are not supported");
            } else {
                return Ok(());
            }
        }
    }

    fn name(&mut self) -> Result<&'a str, TemplateError> {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let n = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        if n == 0 {
            return self.fail("expected a name");
        }
        Ok(self.advance(n))
    }

    fn element(&mut self, depth: u32) -> Result<Element, TemplateError> {
        if depth == DEPTH_MAX {
            return self.fail("elements nested too deeply");
        }
        let line = self.line;
        if !self.take("<") {
            return self.fail("expected an element");
        }
        let full_name = self.name()?;
        let mut element = Element {
            name: local(full_name).into(),
            attributes: Vec::new(),
            children: Vec::new(),
            line,
        };
        loop {
            let spaced = self.skip_space();
            if self.take("/>") {
                return Ok(element);
            }
            if self.take(">") {
                break;
            }
            if !spaced {
                return self.fail("expected white space, '/>' or '>' in a tag");
            }
            let name = self.name()?;
            let value = self.attribute_value()?;
            if name == "xmlns" || name.starts_with("xmlns:") {
                continue;
            }
            // A foreign attribute such as scp:reset may share its local name with a plain one: the first one
            // counts.
            let name = local(name);
            if element.attribute(name).is_none() {
                element.attributes.push((name.into(), value));
            }
        }
        loop {
            self.skip_misc()?;
            if self.take("</") {
                if self.name()? != full_name {
                    return self.fail("end tag does not match its start tag");
                }
                self.skip_space();
                return if self.take(">") {
                    Ok(element)
                } else {
                    self.fail("expected '>'")
                };
            }
            if !self.rest.starts_with('<') {
                let what = if self.rest.is_empty() {
                    "element without end"
                } else {
                    "text where elements belong"
                };
                return self.fail(what);
            }
            let child = self.element(depth + 1)?;
            element.children.push(child);
        }
    }

    fn attribute_value(&mut self) -> Result<String, TemplateError> {
        self.skip_space();
        if !self.take("=") {
            return self.fail("expected '=' after an attribute's name");
        }
        self.skip_space();
        let quote = if self.take("\"") {
            '"'
        } else if self.take("'") {
            '\''
        } else {
            return self.fail("expected a quoted attribute value");
        };
        let Some(end) = self.rest.find(quote) else {
            return self.fail("attribute value without end");
        };
        let raw = self.advance(end);
        self.advance(1);
        self.unescape(raw)
    }

    fn unescape(&self, mut raw: &str) -> Result<String, TemplateError> {
        let mut out = String::with_capacity(raw.len());
        while let Some(at) = raw.find(['&', '<']) {
            let (before, from) = raw.split_at(at);
            out.push_str(before);
            let Some((entity, after)) = from.strip_prefix('&').and_then(|f| f.split_once(';')) else {
                return self.fail("'<' or a bare '&' in an attribute value");
            };
            match character(entity) {
                Some(c) => out.push(c),
                None => return self.fail("unknown entity"),
            }
            raw = after;
        }
        out.push_str(raw);
        Ok(out)
    }
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

fn character(entity: &str) -> Option<char> {
    match entity {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            code.ok().and_then(char::from_u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (u32, &'static str) {
        match parse(text) {
            Err(TemplateError {
                fault: TemplateFault::Syntax(what),
                line,
            }) => (line, what),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn elements_attributes_and_entities_are_read_and_prefixes_dropped() {
        let root = parse(
            "<?xml version='1.0'?>\n<!-- a -->\n<t:a xmlns:t='u' x='1&lt;&#65;&#x42;'>\n<b y=\"'\"/></t:a>\n",
        );
        let root = root.unwrap();
        assert_eq!(
            (root.name.as_str(), root.attribute("x"), root.line),
            ("a", Some("1<AB"), 3)
        );
        assert_eq!(
            (root.children[0].attribute("y"), root.children[0].line),
            (Some("'"), 4)
        );
    }

    #[test]
    fn faults_name_their_line() {
        assert_eq!(
            fault("<a>\n<b>\n</a>"),
            (3, "end tag does not match its start tag")
        );
        assert_eq!(
            fault("<a>\n\n<b"),
            (3, "expected white space, '/>' or '>' in a tag")
        );
        assert_eq!(fault("<a>\nx</a>"), (2, "text where elements belong"));
        assert_eq!(fault("<a>"), (1, "element without end"));
        assert_eq!(fault("<a b='&nope;'/>"), (1, "unknown entity"));
        assert_eq!(fault("<a b=c/>"), (1, "expected a quoted attribute value"));
        assert_eq!(
            fault("<!DOCTYPE a><a/>"),
            (1, "document types and CDATA are not supported")
        );
        assert_eq!(fault("<a/><b/>"), (1, "text after the root element"));
        assert_eq!(fault(&"<a>".repeat(40)), (1, "elements nested too deeply"));
    }
}
