//! From XML to tables. The format is QuickFIX's: `<fix>` with `<header>`, `<trailer>`, `<messages>`,
//! `<components>` and `<fields>`; within the first three `<field>`, `<group>` and `<component>` in their
//! order.

use super::layout::{ComponentDef, Item, Row};
use super::rule::ValueRule;
use super::{Bits, Dictionary, FieldDef, FieldKind, GroupDef, MessageDef, Part};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use roxmltree::{Document, Node};

/// The highest tag admitted; the table by tag has that many entries at most.
const TAG_MAX: u32 = 99_999;
/// How deep components and groups may lie within each other.
const DEPTH_MAX: usize = 32;
/// How many members are visited in all: a component counts wherever it is used, so that a few lines which use
/// each other twice could otherwise keep the loader busy for ever. FIX 5.0 SP2 takes fewer than 100,000.
const MEMBERS_MAX: usize = 5_000_000;

/// Why a text is not a dictionary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DictionaryError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong and what to do.
    pub what: String,
}

impl fmt::Display for DictionaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl core::error::Error for DictionaryError {}

fn wrong(node: Node<'_, '_>, what: String) -> DictionaryError {
    DictionaryError {
        line: node.document().text_pos_at(node.range().start).row,
        what,
    }
}

fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Result<&'a str, DictionaryError> {
    node.attribute(name).ok_or_else(|| {
        let tag = node.tag_name().name();
        wrong(node, format!("<{tag}> needs the attribute {name}"))
    })
}

fn children<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

fn section<'a, 'i>(root: Node<'a, 'i>, name: &str) -> Result<Node<'a, 'i>, DictionaryError> {
    children(root)
        .find(|n| n.has_tag_name(name))
        .ok_or_else(|| wrong(root, format!("there is no <{name}> in it")))
}

impl Dictionary {
    /// Reads a dictionary in the XML format of QuickFIX.
    pub fn parse(xml: &str) -> Result<Dictionary, DictionaryError> {
        let document = Document::parse(xml).map_err(|e| DictionaryError {
            line: e.pos().row,
            what: e.to_string(),
        })?;
        let root = document.root_element();
        if !root.has_tag_name("fix") {
            let name = root.tag_name().name();
            return Err(wrong(
                root,
                format!("the root is <{name}>; a dictionary begins with <fix>"),
            ));
        }
        let begin_string = begin_string(root)?;
        let is_old = matches!(&*begin_string, "FIX.4.0" | "FIX.4.1");
        let fields = fields(section(root, "fields")?, is_old)?;
        let mut by_tag = vec![0; fields.last().map_or(0, |f| f.tag as usize + 1)];
        for (n, field) in fields.iter().enumerate() {
            by_tag[field.tag as usize] = n as u16 + 1;
        }
        let mut loader = Loader {
            numbers: fields
                .iter()
                .enumerate()
                .map(|(n, f)| (&*f.name, n as u16))
                .collect(),
            components: BTreeMap::new(),
            groups: Vec::new(),
            known: BTreeMap::new(),
            definitions: Vec::new(),
            defined: BTreeMap::new(),
            words: fields.len().div_ceil(64),
            members_left: MEMBERS_MAX,
        };
        for node in children(root)
            .filter(|n| n.has_tag_name("components"))
            .flat_map(children)
        {
            if loader.components.insert(attribute(node, "name")?, node).is_some() {
                return Err(wrong(node, "a second component of this name".into()));
            }
        }
        let (header, header_rows) = loader.definition(section(root, "header")?)?;
        let (trailer, trailer_rows) = loader.definition(section(root, "trailer")?)?;
        let mut messages = Vec::new();
        for node in children(section(root, "messages")?) {
            let (body, rows) = loader.definition(node)?;
            messages.push(MessageDef {
                msg_type: attribute(node, "msgtype")?.as_bytes().into(),
                name: attribute(node, "name")?.into(),
                is_admin: node.attribute("msgcat") == Some("admin"),
                body,
                rows,
            });
        }
        messages.sort_by(|a, b| a.msg_type.cmp(&b.msg_type));
        if let Some(twice) = messages
            .windows(2)
            .find(|pair| pair[0].msg_type == pair[1].msg_type)
        {
            return Err(wrong(
                root,
                format!("two messages have the type of {}", twice[0].name),
            ));
        }
        let (groups, components) = (loader.groups, loader.definitions);
        Ok(Dictionary {
            number: hash(xml.as_bytes()),
            begin_string,
            by_tag,
            rules: fields.iter().map(ValueRule::of).collect(),
            fields,
            header,
            trailer,
            by_char: by_char(&messages),
            messages,
            groups,
            components,
            header_rows,
            trailer_rows,
        })
    }
}

/// `FIX.4.4`, `FIXT.1.1`, `FIX.5.0SP2` from the root's attributes.
fn begin_string(root: Node<'_, '_>) -> Result<Box<str>, DictionaryError> {
    let family = root.attribute("type").unwrap_or("FIX");
    let (major, minor) = (attribute(root, "major")?, attribute(root, "minor")?);
    let pack = match root.attribute("servicepack") {
        None | Some("0" | "") => String::new(),
        Some(pack) => format!("SP{pack}"),
    };
    Ok(format!("{family}.{major}.{minor}{pack}").into())
}

/// The fields, by rising tag.
fn fields(section: Node<'_, '_>, is_old: bool) -> Result<Vec<FieldDef>, DictionaryError> {
    let mut fields = Vec::new();
    for node in children(section) {
        let number = attribute(node, "number")?;
        let tag = number
            .parse()
            .ok()
            .filter(|tag| (1..=TAG_MAX).contains(tag))
            .ok_or_else(|| {
                wrong(
                    node,
                    format!("number {number:?} is not a tag from 1 to {TAG_MAX}"),
                )
            })?;
        let type_name = attribute(node, "type")?;
        let kind = match FieldKind::named(type_name) {
            // Before FIX 4.2, CHAR was the type of every text.
            FieldKind::Char if is_old => FieldKind::Text,
            kind => kind,
        };
        let mut field = FieldDef {
            tag,
            name: attribute(node, "name")?.into(),
            kind,
            type_name: type_name.into(),
            values: Vec::new(),
            short_values: [0; 2],
        };
        for value in children(node).filter(|n| n.has_tag_name("value")) {
            let text = attribute(value, "enum")?;
            if let &[c] = text.as_bytes() {
                // A single byte of UTF-8 is ASCII.
                field.short_values[c as usize / 64] |= 1 << (c % 64);
            }
            let description = value.attribute("description").unwrap_or(text);
            field.values.push((text.as_bytes().into(), description.into()));
        }
        field.values.sort();
        fields.push(field);
    }
    fields.sort_by_key(|f| f.tag);
    if let Some(twice) = fields.windows(2).find(|pair| pair[0].tag == pair[1].tag) {
        return Err(wrong(
            section,
            format!("two fields have the tag {}", twice[0].tag),
        ));
    }
    match fields.len() {
        0..=0xFFFE => Ok(fields),
        _ => Err(wrong(section, "more than 65,534 fields".into())),
    }
}

/// What is needed while messages are read.
struct Loader<'f, 'a, 'i> {
    numbers: BTreeMap<&'f str, u16>,
    components: BTreeMap<&'a str, Node<'a, 'i>>,
    groups: Vec<GroupDef>,
    /// Groups by where they stand in the text: a component's are the same wherever it is used.
    known: BTreeMap<usize, u32>,
    /// Components that are used, and by name which.
    definitions: Vec<ComponentDef>,
    defined: BTreeMap<&'a str, u32>,
    /// Words of a bit set of fields.
    words: usize,
    /// Members that may still be visited.
    members_left: usize,
}

impl<'a, 'i> Loader<'_, 'a, 'i> {
    /// Header, trailer or a message: the table to check it by, and what stands in it as written.
    fn definition(&mut self, node: Node<'a, 'i>) -> Result<(Part, Vec<Row>), DictionaryError> {
        let (part, _) = self.part_at(node, 0)?;
        Ok((part, self.rows(node, 0)?))
    }

    /// What stands within `node`, as written. Its names were looked up and its depth was checked by
    /// [`Loader::members`].
    fn rows(&mut self, node: Node<'a, 'i>, depth: usize) -> Result<Vec<Row>, DictionaryError> {
        let mut rows = Vec::new();
        for child in children(node) {
            let name = attribute(child, "name")?;
            let item = if child.has_tag_name("component") {
                Item::Component(self.component(child, name, depth)?)
            } else {
                let number = self.number(child, name)?;
                match child.has_tag_name("group") {
                    true => Item::Group(number, self.group(child, depth)?),
                    false => Item::Field(number),
                }
            };
            let is_required = child.attribute("required") == Some("Y");
            rows.push(Row { item, is_required });
        }
        Ok(rows)
    }

    fn component(
        &mut self,
        child: Node<'a, 'i>,
        name: &'a str,
        depth: usize,
    ) -> Result<u32, DictionaryError> {
        if let Some(known) = self.defined.get(name) {
            return Ok(*known);
        }
        let rows = self.rows(self.component_named(child, name)?, depth + 1)?;
        self.definitions.push(ComponentDef {
            name: name.into(),
            rows,
        });
        let number = self.definitions.len() as u32 - 1;
        self.defined.insert(name, number);
        Ok(number)
    }

    fn component_named(&self, child: Node<'a, 'i>, name: &str) -> Result<Node<'a, 'i>, DictionaryError> {
        let found = self.components.get(name).copied();
        found.ok_or_else(|| wrong(child, format!("there is no component {name}")))
    }

    fn number(&self, child: Node<'a, 'i>, name: &str) -> Result<u16, DictionaryError> {
        let found = self.numbers.get(name).copied();
        found.ok_or_else(|| wrong(child, format!("there is no field {name}; define it in <fields>")))
    }

    /// What stands within `node`, and in which order.
    fn part_at(&mut self, node: Node<'a, 'i>, depth: usize) -> Result<(Part, Vec<u16>), DictionaryError> {
        let mut part = Part {
            bits: vec![Bits::default(); self.words],
            ..Part::default()
        };
        let mut order = Vec::new();
        self.members(node, true, depth, &mut part, &mut order)?;
        part.groups.sort_unstable();
        for &(count, _) in &part.groups {
            part.bits[count as usize / 64].counts |= 1 << (count % 64);
        }
        Ok((part, order))
    }

    /// Adds what stands within `node` to a part. Of an optional component nothing is required.
    fn members(
        &mut self,
        node: Node<'a, 'i>,
        is_required: bool,
        depth: usize,
        part: &mut Part,
        order: &mut Vec<u16>,
    ) -> Result<(), DictionaryError> {
        if depth > DEPTH_MAX {
            return Err(wrong(node, "components lie within each other without end".into()));
        }
        for child in children(node) {
            self.members_left = self.members_left.checked_sub(1).ok_or_else(|| {
                let what = format!("more than {MEMBERS_MAX} members: components use each other too often");
                wrong(child, what)
            })?;
            let name = attribute(child, "name")?;
            let needed = is_required && child.attribute("required") == Some("Y");
            if child.has_tag_name("component") {
                let component = self.component_named(child, name)?;
                self.members(component, needed, depth + 1, part, order)?;
                continue;
            }
            let number = self.number(child, name)?;
            part.bits[number as usize / 64].allowed |= 1 << (number % 64);
            order.push(number);
            if needed && !part.needs(number) {
                part.required.push(number);
                part.bits[number as usize / 64].needed |= 1 << (number % 64);
            }
            if child.has_tag_name("group") {
                let group = self.group(child, depth)?;
                part.groups.push((number, group));
            }
        }
        Ok(())
    }

    fn group(&mut self, node: Node<'a, 'i>, depth: usize) -> Result<u32, DictionaryError> {
        if let Some(known) = self.known.get(&node.range().start) {
            return Ok(*known);
        }
        let (part, order) = self.part_at(node, depth + 1)?;
        if order.is_empty() {
            return Err(wrong(node, "a group without fields".into()));
        }
        let rows = self.rows(node, depth + 1)?;
        self.groups.push(GroupDef { order, part, rows });
        let group = self.groups.len() as u32 - 1;
        self.known.insert(node.range().start, group);
        Ok(group)
    }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The table of message types of one character.
fn by_char(messages: &[MessageDef]) -> [u16; 128] {
    let mut table = [0; 128];
    for (message, place) in messages.iter().zip(1..) {
        if let [c @ ..128] = *message.msg_type {
            table[usize::from(c)] = place;
        }
    }
    table
}
