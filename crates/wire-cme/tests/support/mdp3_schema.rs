//! A second decoder of MDP 3.0: reads the exchange's schema XML, or the table of the templates that have left
//! it, and looks fields up in it, one after the other.

use std::collections::BTreeMap;
use tickwire_testdata as testdata;

pub(crate) struct Schema {
    pub(crate) messages: Vec<Message>,
}

pub(crate) struct Message {
    pub(crate) id: u16,
    pub(crate) name: String,
    pub(crate) since: u16,
    /// The last version of the schema that has it.
    pub(crate) until: u16,
    pub(crate) block_length: u16,
    pub(crate) groups: Vec<Group>,
    fields: Vec<Field>,
}

pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) block_length: u16,
    pub(crate) since: u16,
    /// Bytes between block length and number of entries.
    pub(crate) padding: usize,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    offset: usize,
    since: u16,
    kind: Kind,
}

#[derive(Clone, Debug)]
struct Kind {
    primitive: String,
    length: usize,
    null: Option<i128>,
    decimals: Option<u32>,
    constant: bool,
    /// Parts of a composite: name and kind.
    parts: Vec<(String, Kind)>,
}

type Attributes = BTreeMap<String, String>;

impl Schema {
    pub(crate) fn read() -> Schema {
        let text = std::fs::read_to_string(testdata::specs("cme/mdp3-v13.xml")).unwrap();
        let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
        let mut messages: Vec<Message> = Vec::new();
        let (mut composite, mut in_group) = (None::<(String, Vec<(String, Kind)>)>, false);
        for (tag, attributes, content) in tags(&text) {
            let get = |key: &str| attributes.get(key).cloned().unwrap_or_default();
            let number = |key: &str| get(key).parse::<u16>().unwrap_or(0);
            match tag.trim_start_matches("ns2:") {
                "composite" => composite = Some((get("name"), Vec::new())),
                "/composite" => {
                    let (name, parts) = composite.take().unwrap();
                    kinds.insert(name, Kind::of_composite(parts));
                }
                "type" => {
                    let kind = Kind::of_type(&attributes, content);
                    match &mut composite {
                        Some((_, parts)) => parts.push((get("name"), kind)),
                        None => drop(kinds.insert(get("name"), kind)),
                    }
                }
                "enum" | "set" => {
                    let encoding = kinds[&get("encodingType")].clone();
                    kinds.insert(get("name"), encoding);
                }
                "message" => messages.push(Message {
                    id: number("id"),
                    name: get("name"),
                    since: number("sinceVersion"),
                    until: u16::MAX,
                    block_length: number("blockLength"),
                    groups: Vec::new(),
                    fields: Vec::new(),
                }),
                "group" => {
                    in_group = true;
                    messages.last_mut().unwrap().groups.push(Group {
                        name: get("name"),
                        block_length: number("blockLength"),
                        since: number("sinceVersion"),
                        padding: if get("dimensionType") == "groupSize8Byte" {
                            5
                        } else {
                            0
                        },
                        fields: Vec::new(),
                    });
                }
                "/group" => in_group = false,
                "field" => {
                    let message = messages.last_mut().unwrap();
                    let fields = match message.groups.last_mut() {
                        Some(group) if in_group => &mut group.fields,
                        _ => &mut message.fields,
                    };
                    let kind = kinds[&get("type")].clone();
                    if !kind.constant {
                        let end = fields.last().map_or(0, |f| f.offset + f.kind.length);
                        let offset = get("offset").parse().unwrap_or(end);
                        fields.push(Field {
                            name: get("name"),
                            offset,
                            since: number("sinceVersion"),
                            kind,
                        });
                    }
                }
                _ => {}
            }
        }
        messages.sort_by_key(|m| m.id);
        Schema { messages }
    }

    /// The templates of `mdp3_older.txt`, with prices of 7 decimals.
    pub(crate) fn older() -> Schema {
        const LAST: u16 = 9;
        let mut messages: Vec<Message> = Vec::new();
        let mut in_group = false;
        for line in include_str!("mdp3_older.txt")
            .lines()
            .filter(|l| !l.starts_with('#'))
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            let after = |key: &str| {
                let at = words.iter().position(|word| *word == key)?;
                Some(words[at + 1])
            };
            let since = after("since").unwrap().parse().unwrap();
            match words[..] {
                [id, name, block_length, ..] if !line.starts_with(' ') => {
                    in_group = false;
                    messages.push(Message {
                        id: id.parse().unwrap(),
                        name: name.to_string(),
                        since,
                        until: LAST,
                        block_length: block_length.parse().unwrap(),
                        groups: Vec::new(),
                        fields: Vec::new(),
                    });
                }
                ["group", name, block_length, ..] => {
                    in_group = true;
                    messages.last_mut().unwrap().groups.push(Group {
                        name: name.to_string(),
                        block_length: block_length.parse().unwrap(),
                        since,
                        padding: after("padding").unwrap().parse().unwrap(),
                        fields: Vec::new(),
                    });
                }
                [name, offset, kind, ..] => {
                    let message = messages.last_mut().unwrap();
                    let fields = match message.groups.last_mut() {
                        Some(group) if in_group => &mut group.fields,
                        _ => &mut message.fields,
                    };
                    let (primitive, length) = kind.split_once('*').unwrap_or((kind, "1"));
                    let attributes = [("primitiveType", primitive), ("length", length)];
                    let null = after("null").map(|null| ("nullValue", null));
                    let attributes = attributes.into_iter().chain(null);
                    let attributes = attributes.map(|(key, value)| (key.to_string(), value.to_string()));
                    let kind = Kind::of_type(&attributes.collect(), "");
                    fields.push(Field {
                        name: name.to_string(),
                        offset: offset.parse().unwrap(),
                        since,
                        kind: Kind {
                            decimals: after("decimals").map(|d| d.parse().unwrap()),
                            ..kind
                        },
                    });
                }
                _ => panic!("{line}"),
            }
        }
        Schema { messages }
    }
}

impl Message {
    /// The groups that a message of this version has.
    pub(crate) fn groups_in(&self, version: u16) -> impl Iterator<Item = &Group> {
        let version = version.min(self.until);
        self.groups.iter().filter(move |g| g.since <= version)
    }

    /// Every field that came after its template or group: the group's name if it is of one, its name, the
    /// version it came with, its offset and length.
    pub(crate) fn added(&self) -> Vec<(Option<&str>, &str, u16, usize, usize)> {
        let blocks = std::iter::once((None, &self.fields, self.since)).chain(
            self.groups
                .iter()
                .map(|g| (Some(&*g.name), &g.fields, g.since.max(self.since))),
        );
        blocks
            .flat_map(|(group, fields, since)| {
                let added = fields.iter().filter(move |f| f.since > since);
                added.map(move |f| (group, &*f.name, f.since, f.offset, f.kind.length))
            })
            .collect()
    }

    /// Name and value of every field, entries as `Group.0.Field`.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Vec<(String, String)> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let version = u16_at(6).min(self.until);
        let mut at = 8 + usize::from(u16_at(0));
        let mut shown = Vec::new();
        show(&self.fields, &bytes[8..at], version, "", &mut shown);
        for group in &self.groups {
            if group.since > version {
                shown.push((group.name.clone(), "0".to_string()));
                continue;
            }
            let length = usize::from(u16_at(at));
            let count = bytes[at + 2 + group.padding];
            at += 3 + group.padding;
            shown.push((group.name.clone(), count.to_string()));
            for index in 0..count {
                let path = format!("{}.{index}.", group.name);
                show(&group.fields, &bytes[at..at + length], version, &path, &mut shown);
                at += length;
            }
        }
        assert_eq!(at, bytes.len(), "{}", self.name);
        shown
    }

    /// Offset and bytes of the null of every field that has one.
    pub(crate) fn nulls(&self) -> Vec<(usize, Vec<u8>)> {
        nulls(&self.fields)
    }
}

impl Group {
    pub(crate) fn nulls(&self) -> Vec<(usize, Vec<u8>)> {
        nulls(&self.fields)
    }
}

fn nulls(fields: &[Field]) -> Vec<(usize, Vec<u8>)> {
    let null = |f: &Field| {
        f.kind
            .null
            .map(|null| (f.offset, null.to_le_bytes()[..f.kind.length].to_vec()))
    };
    fields.iter().filter_map(null).collect()
}

fn show(fields: &[Field], block: &[u8], version: u16, path: &str, shown: &mut Vec<(String, String)>) {
    for field in fields {
        let bytes = (field.since <= version).then(|| &block[field.offset..field.offset + field.kind.length]);
        if field.kind.parts.is_empty() {
            shown.push((format!("{path}{}", field.name), field.kind.value(bytes)));
            continue;
        }
        let mut at = 0;
        for (name, part) in &field.kind.parts {
            let value = part.value(bytes.map(|b| &b[at..at + part.length]));
            shown.push((format!("{path}{}.{name}", field.name), value));
            at += part.length;
        }
    }
}

impl Kind {
    fn of_type(attributes: &Attributes, content: &str) -> Kind {
        let get = |key: &str| attributes.get(key).map_or("", |v| v.as_str());
        let primitive = get("primitiveType").to_string();
        let size = match primitive.as_str() {
            "uint8" | "int8" | "char" => 1,
            "uint16" | "int16" => 2,
            "uint32" | "int32" => 4,
            "uint64" | "int64" => 8,
            other => panic!("the schema has a primitive {other}"),
        };
        Kind {
            length: size * get("length").parse().unwrap_or(1),
            null: get("nullValue").parse().ok(),
            // A constant part of a composite: the exponent.
            decimals: content.parse::<i32>().ok().map(i32::unsigned_abs),
            constant: get("presence") == "constant",
            primitive,
            parts: Vec::new(),
        }
    }

    fn of_composite(mut parts: Vec<(String, Kind)>) -> Kind {
        let decimals = parts
            .iter()
            .find(|(name, _)| name == "exponent")
            .and_then(|(_, kind)| kind.decimals);
        parts.retain(|(_, kind)| !kind.constant);
        if let (Some(_), [(_, mantissa)]) = (decimals, &parts[..]) {
            return Kind {
                decimals,
                ..mantissa.clone()
            };
        }
        let length = parts.iter().map(|(_, kind)| kind.length).sum();
        Kind {
            primitive: String::new(),
            length,
            null: None,
            decimals: None,
            constant: false,
            parts,
        }
    }

    /// As a decoder shows it; `None` for what the sender's version lacks.
    fn value(&self, bytes: Option<&[u8]>) -> String {
        let Some(bytes) = bytes else {
            return "null".to_string();
        };
        if self.primitive == "char" && self.length > 1 {
            let end = bytes
                .iter()
                .rposition(|b| *b != 0 && *b != b' ')
                .map_or(0, |last| last + 1);
            return bytes[..end].escape_ascii().to_string();
        }
        if self.primitive == "char" {
            return bytes.escape_ascii().to_string();
        }
        let unsigned = bytes.iter().rev().fold(0_i128, |n, b| n << 8 | i128::from(*b));
        let bits = 8 * bytes.len();
        let negative = self.primitive.starts_with("int") && unsigned >> (bits - 1) != 0;
        let number = if negative {
            unsigned - (1 << bits)
        } else {
            unsigned
        };
        match self.decimals {
            _ if self.null == Some(number) => "null".to_string(),
            None => number.to_string(),
            Some(decimals) => {
                let unit = 10_u128.pow(decimals);
                let (whole, part) = (number.unsigned_abs() / unit, number.unsigned_abs() % unit);
                let sign = if number < 0 { "-" } else { "" };
                format!("{sign}{whole}.{part:0width$}", width = decimals as usize)
            }
        }
    }
}

/// Every tag: its name (`/name` for an end), its attributes, the text after it.
fn tags(xml: &str) -> impl Iterator<Item = (&str, Attributes, &str)> {
    xml.split('<').skip(1).map(|chunk| {
        let (inside, text) = chunk.split_once('>').unwrap_or((chunk, ""));
        let (name, mut rest) = inside.split_once(' ').unwrap_or((inside, ""));
        let mut attributes = Attributes::new();
        while let Some((key, after)) = rest.split_once("=\"") {
            let (value, after) = after.split_once('"').expect("attributes are quoted");
            attributes.insert(key.trim().to_string(), value.to_string());
            rest = after;
        }
        (name.trim_end_matches('/'), attributes, text.trim())
    })
}
