//! From a dictionary's layouts to the text of a module.

use crate::Quantities;
use crate::names::{doc, screaming, snake, type_name, variant, without_no};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use tickwire_fix::dict::{Dictionary, FieldDef, FieldKind, Layout, MemberKind, MessageDef};

/// Method names that generated types have for themselves.
const RESERVED: &[&str] = &["read", "write", "message", "fields", "header"];
/// How many required fields one place may have: a bit each.
const REQUIRED_MAX: usize = 64;

/// The whole module; or what is wrong with a definition.
pub(crate) fn module(
    dictionary: &Dictionary,
    messages: &[&MessageDef],
    name: &str,
    source: &Path,
    quantities: Quantities,
) -> Result<String, String> {
    let mut e = Emitter {
        dictionary,
        quantities,
        out: String::new(),
        fields: BTreeMap::new(),
        components: BTreeMap::new(),
        types: BTreeSet::from(["AnyMessage".to_owned(), "Header".to_owned()]),
        component_types: BTreeMap::new(),
    };
    // Whichever messages are wanted, types have the same names.
    let all = dictionary.messages();
    e.types.extend(all.iter().map(|m| type_name(&m.name)));
    for message in messages {
        e.message(message)?;
    }
    e.any(messages);
    e.header();
    let mut done = BTreeSet::new();
    while let Some((&component, &layout)) = e.components.iter().find(|(c, _)| !done.contains(*c)) {
        done.insert(component);
        e.component(component, layout)?;
    }
    e.values();
    e.names();
    let file = source.file_name().unwrap_or_default().to_string_lossy();
    let version = dictionary.begin_string();
    let mut out = format!(
        "// Written by tickwire-fixgen from {file}. Do not edit: it is written anew by every build.\n\n"
    );
    let _ = write!(
        out,
        "/// Typed messages of {version}, as {} defines them. See `tickwire_fix::typed` for how views and writers behave.\n\
         #[allow(dead_code, unused_imports, unused_mut, unused_variables, non_camel_case_types, clippy::all)]\n\
         #[rustfmt::skip]\n\
         pub mod {name} {{\n\
         use ::core::marker::PhantomData;\n\
         use ::tickwire_fix::typed::{{self, Entries, Entry, FieldError, FieldName, Form, Nanos, OPTIONAL, Outside, Price, Qty, Scope, Source, TagSet, WriteError}};\n\
         use ::tickwire_fix::{{Encoder, Fields, Message, RepeatingGroup, Stamp}};\n\n\
         /// What the dictionary calls itself.\n\
         pub const BEGIN_STRING: &str = {version:?};\n\n",
        doc(&file),
    );
    out.push_str(&e.out);
    out.push_str("}\n");
    Ok(out)
}

struct Emitter<'d> {
    dictionary: &'d Dictionary,
    quantities: Quantities,
    out: String,
    /// Fields that have been named.
    fields: BTreeMap<u32, &'d FieldDef>,
    /// Components that have been named.
    components: BTreeMap<&'d str, Layout<'d>>,
    types: BTreeSet<String>,
    component_types: BTreeMap<&'d str, String>,
}

/// A member of a definition and its place in it.
struct Row<'d> {
    kind: MemberKind<'d>,
    is_required: bool,
    /// How many fields stand before it, those of components counted one by one.
    rank: usize,
    /// Its bit among the required ones, or of its first one if it is a component.
    bit: usize,
    method: String,
    /// Of data: the field before it that says its length.
    length: Option<&'d FieldDef>,
    /// The length of data that follows.
    is_length: bool,
}

/// What a definition is of.
#[derive(Clone, Copy)]
enum Of<'a> {
    Message(&'a str),
    Entry(&'a FieldDef),
    Component(&'a str),
}

impl<'d> Row<'d> {
    /// The fields it requires, if it is required itself.
    fn requires(&self) -> Vec<&'d FieldDef> {
        match self.kind {
            _ if !self.is_required || self.is_length => Vec::new(),
            MemberKind::Field(f) | MemberKind::Group(f, _) => vec![f],
            MemberKind::Component(_, inner) => required(inner),
        }
    }
}

/// The fields that one place must have, in their order.
fn required(layout: Layout<'_>) -> Vec<&FieldDef> {
    rows(layout).iter().flat_map(Row::requires).collect()
}

/// The members of a definition; what stands in it twice, once.
fn rows(layout: Layout<'_>) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let (mut rank, mut names) = (0, BTreeSet::new());
    for member in layout.members() {
        let (name, len) = match member.kind {
            MemberKind::Field(f) | MemberKind::Group(f, _) => (&*f.name, 1),
            MemberKind::Component(name, inner) => (name, inner.fields().len()),
        };
        let is_component = matches!(member.kind, MemberKind::Component(..));
        if names.insert((name, is_component)) {
            rows.push(Row {
                kind: member.kind,
                is_required: member.is_required,
                rank,
                bit: 0,
                method: String::new(),
                length: None,
                is_length: false,
            });
        }
        rank += len;
    }
    for at in 1..rows.len() {
        let (before, behind) = rows.split_at_mut(at);
        let (length, data) = (&mut before[at - 1], &mut behind[0]);
        if let (MemberKind::Field(l), MemberKind::Field(d)) = (length.kind, data.kind)
            && l.kind == FieldKind::Count
            && d.kind == FieldKind::Data
            && data.rank == length.rank + 1
        {
            (data.length, length.is_length) = (Some(l), true);
        }
    }
    let mut bit = 0;
    for row in &mut rows {
        row.bit = bit;
        bit += row.requires().len();
    }
    name_methods(&mut rows);
    rows
}

/// Fields have their names; groups are called after what they hold and components after themselves, unless
/// that is taken.
fn name_methods(rows: &mut [Row<'_>]) {
    let mut taken: BTreeSet<String> = RESERVED.iter().map(|&name| name.to_owned()).collect();
    let mut give = |row: &mut Row<'_>, wanted: String| {
        let mut name = wanted;
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        row.method = name;
    };
    for row in rows.iter_mut() {
        if let MemberKind::Field(f) = row.kind {
            give(row, snake(&f.name));
        }
    }
    for row in rows.iter_mut() {
        match row.kind {
            MemberKind::Field(_) => {}
            MemberKind::Group(count, _) => give(row, snake(without_no(&count.name))),
            MemberKind::Component(name, _) => give(row, snake(name)),
        }
    }
}

/// Every tag of an entry: those of groups within it as well.
fn all_tags(layout: Layout<'_>, tags: &mut BTreeSet<u32>) {
    for member in layout.members() {
        match member.kind {
            MemberKind::Field(f) => {
                tags.insert(f.tag);
            }
            MemberKind::Group(count, entry) => {
                tags.insert(count.tag);
                all_tags(entry, tags);
            }
            MemberKind::Component(_, inner) => all_tags(inner, tags),
        }
    }
}

/// Every group of a place with the name of who defines it, those within components included.
fn groups<'d>(
    layout: Layout<'d>,
    owner: &str,
    component_type: &impl Fn(&str) -> String,
) -> Vec<(String, &'d FieldDef, Layout<'d>)> {
    let mut out = Vec::new();
    for member in layout.members() {
        match member.kind {
            MemberKind::Field(_) => {}
            MemberKind::Group(count, entry) => out.push((entry_type(owner, count), count, entry)),
            MemberKind::Component(name, inner) => {
                out.append(&mut groups(inner, &component_type(name), component_type))
            }
        }
    }
    out
}

fn entry_type(owner: &str, count: &FieldDef) -> String {
    let owner = owner.strip_suffix("Entry").unwrap_or(owner);
    format!("{owner}{}Entry", type_name(without_no(&count.name)))
}

impl<'d> Emitter<'d> {
    fn message(&mut self, message: &'d MessageDef) -> Result<(), String> {
        let name = type_name(&message.name);
        let layout = self.dictionary.layout(message);
        let msg_type = String::from_utf8_lossy(&message.msg_type).into_owned();
        let title = format!(
            "{} (35={msg_type}) of {}",
            doc(&message.name),
            self.dictionary.begin_string()
        );
        let header = match self.dictionary.header().members().next() {
            Some(_) => {
                "    /// The standard header.\n    #[inline]\n    pub fn header(&self) -> Header<'m, Message<'m>> { Header(self.0, PhantomData) }\n"
            }
            None => "",
        };
        let _ = write!(
            self.out,
            "/// {title}, received.\n\
             #[derive(Clone, Copy, Debug)]\n\
             pub struct {name}<'m>(Message<'m>);\n\n\
             impl<'m> {name}<'m> {{\n    \
                 /// MsgType (35).\n    \
                 pub const MSG_TYPE: &'static [u8] = b{msg_type:?};\n\n    \
                 /// A view of a message; `None` if it is of another type.\n    \
                 #[inline]\n    \
                 pub fn read(message: &Message<'m>) -> Option<Self> {{ (message.msg_type() == Self::MSG_TYPE).then_some(Self(*message)) }}\n\n    \
                 /// The message.\n    \
                 #[inline]\n    \
                 pub fn message(&self) -> Message<'m> {{ self.0 }}\n\n    \
                 /// Writes the body: what follows the header and MsgType. `fill` calls the setters in their order.\n    \
                 #[inline]\n    \
                 pub fn write<'b>(encoder: &mut Encoder<'b>, stamp: &mut Stamp, fill: impl FnOnce(&mut {name}Writer<'_, '_, 'b>)) -> Result<(), WriteError> {{\n        \
                     typed::write(encoder, stamp, &{name}Writer::FORM, |scope| fill(&mut {name}Writer(scope)))\n    \
                 }}\n{header}"
        );
        self.definition(Of::Message(&title), &name, layout)
    }

    fn component(&mut self, component: &'d str, layout: Layout<'d>) -> Result<(), String> {
        let name = self.component_type(component);
        let _ = write!(
            self.out,
            "/// The component {} of {}, received: a part of a message or of an entry of a group.\n\
             #[derive(Clone, Copy, Debug)]\n\
             pub struct {name}<'m, S>(S, PhantomData<&'m ()>);\n\n\
             impl<'m, S: Source<'m>> {name}<'m, S> {{\n",
            doc(component),
            self.dictionary.begin_string()
        );
        self.definition(Of::Component(component), &name, layout)
    }

    /// The standard header: getters only, for the session writes it.
    fn header(&mut self) {
        let layout = self.dictionary.header();
        if layout.members().next().is_none() {
            return;
        }
        self.out.push_str(
            "/// The standard header, received.\n#[derive(Clone, Copy, Debug)]\npub struct Header<'m, S>(S, PhantomData<&'m ()>);\n\n\
             impl<'m, S: Source<'m>> Header<'m, S> {\n",
        );
        for row in rows(layout) {
            if let MemberKind::Field(field) = row.kind {
                self.getter(&row, field, "self.0");
            }
        }
        self.out.push_str("}\n\n");
    }

    /// Getters, then the writer, then the entries of its groups.
    fn definition(&mut self, of: Of<'_>, name: &str, layout: Layout<'d>) -> Result<(), String> {
        let rows = rows(layout);
        let needed = required(layout);
        if needed.len() > REQUIRED_MAX {
            return Err(format!("{name} requires more than {REQUIRED_MAX} fields"));
        }
        let inner = self.inner_tags(layout);
        let ambiguous = |field: &FieldDef| inner.contains(&field.tag);
        if of_place(of) && layout.fields().iter().any(|f| ambiguous(f)) {
            self.outside(name, layout, &rows, &inner)?;
        }
        for row in &rows {
            match row.kind {
                MemberKind::Field(field) => {
                    let source = match of_place(of) && ambiguous(field) {
                        true => "Outside { fields: self.0.all(), groups: Self::GROUPS }",
                        false => "self.0",
                    };
                    self.getter(row, field, source);
                }
                MemberKind::Group(count, _) => self.group_getter(row, name, count),
                MemberKind::Component(component, inner) => self.component_getter(of, row, component, inner),
            }
        }
        self.out.push_str("}\n\n");
        self.writer(of, name, layout, &rows, &needed);
        for row in &rows {
            if let MemberKind::Group(count, entry) = row.kind {
                self.entry(name, count, entry)?;
            }
        }
        Ok(())
    }

    /// The tags of the entries of a place's groups.
    fn inner_tags(&self, layout: Layout<'d>) -> BTreeSet<u32> {
        let mut inner = BTreeSet::new();
        for (_, _, entry) in groups(layout, "", &|_| String::new()) {
            all_tags(entry, &mut inner);
        }
        inner
    }

    /// The table that tells a place's own fields from those of its groups that have the same tags.
    fn outside(
        &mut self,
        name: &str,
        layout: Layout<'d>,
        rows: &[Row<'d>],
        inner: &BTreeSet<u32>,
    ) -> Result<(), String> {
        for row in rows {
            if let MemberKind::Component(component, members) = row.kind
                && let Some(field) = members.fields().iter().find(|f| inner.contains(&f.tag))
            {
                return Err(format!(
                    "{name}: {} ({}) of the component {component} is also in a repeating group of the same message, so that a \
                     lookup could find either: put the field itself in the place of the component",
                    field.name, field.tag
                ));
            }
        }
        self.name_components(layout);
        let components = &self.component_types;
        let component_type = |c: &str| components.get(c).cloned().unwrap_or_default();
        let _ = write!(
            self.out,
            "    const GROUPS: &'static [typed::CountAndMembers] = &["
        );
        let all = groups(layout, name, &component_type);
        for (entry, count, _) in all {
            let _ = write!(
                self.out,
                "({}, <{entry}<'static> as RepeatingGroup>::has), ",
                count.tag
            );
        }
        self.out.push_str("];\n");
        Ok(())
    }

    /// Gives every component of a place its type's name.
    fn name_components(&mut self, layout: Layout<'d>) {
        for member in layout.members() {
            if let MemberKind::Component(name, inner) = member.kind {
                self.component_type(name);
                self.name_components(inner);
            }
        }
    }

    fn getter(&mut self, row: &Row<'d>, field: &'d FieldDef, source: &str) {
        let constant = self.field(field);
        let (read, _) = self.types_of(field);
        let note = self.note(field, row.is_required);
        let (method, of) = (
            &row.method,
            match row.is_required {
                true => ("required", read.clone()),
                false => ("optional", format!("Option<{read}>")),
            },
        );
        let _ = write!(
            self.out,
            "\n    /// {note}\n    #[inline]\n    pub fn {method}(&self) -> Result<{}, FieldError> {{ {source}.{}({constant}) }}\n",
            of.1, of.0
        );
    }

    fn group_getter(&mut self, row: &Row<'d>, owner: &str, count: &'d FieldDef) {
        self.field(count);
        let call = if row.is_required {
            "required_entries"
        } else {
            "entries"
        };
        let _ = write!(
            self.out,
            "\n    /// The entries behind {}\n    #[inline]\n    pub fn {}(&self) -> Result<Entries<'m, {}<'m>>, FieldError> {{ self.0.{call}() }}\n",
            self.note(count, row.is_required),
            row.method,
            entry_type(owner, count)
        );
    }

    fn component_getter(&mut self, of: Of<'_>, row: &Row<'d>, component: &'d str, inner: Layout<'d>) {
        let name = self.component_type(component);
        self.components.insert(component, inner);
        let source = match of {
            Of::Message(_) => "Message<'m>",
            Of::Entry(_) => "Fields<'m>",
            Of::Component(_) => "S",
        };
        let first = required(inner).first().copied().filter(|_| !row.is_required);
        let (of, body, there) = match first {
            // What it requires, it requires only if it is there.
            Some(field) => (
                format!("Option<{name}<'m, {source}>>"),
                format!(
                    "self.0.lookup({}).map(|_| {name}(self.0, PhantomData))",
                    field.tag
                ),
                format!("; it is there if {} ({}) is", doc(&field.name), field.tag),
            ),
            None => (
                format!("{name}<'m, {source}>"),
                format!("{name}(self.0, PhantomData)"),
                String::new(),
            ),
        };
        let _ = write!(
            self.out,
            "\n    /// The component {}{there}.\n    #[inline]\n    pub fn {}(&self) -> {of} {{ {body} }}\n",
            doc(component),
            row.method
        );
    }

    fn writer(
        &mut self,
        of: Of<'_>,
        name: &str,
        layout: Layout<'d>,
        rows: &[Row<'d>],
        needed: &[&'d FieldDef],
    ) {
        let title = match of {
            Of::Message(title) => format!("{title}, being written"),
            Of::Entry(count) => format!(
                "An entry behind {} ({}), being written",
                doc(&count.name),
                count.tag
            ),
            Of::Component(component) => format!("The component {}, being written", doc(component)),
        };
        let _ = write!(
            self.out,
            "/// {title}: setters in the order in which they may be called.\n\
             #[derive(Debug)]\n\
             pub struct {name}Writer<'s, 'w, 'b>(Scope<'s, 'w, 'b>);\n\n\
             impl<'s, 'w, 'b> {name}Writer<'s, 'w, 'b> {{\n"
        );
        if of_place(of) {
            let constants: Vec<String> = needed.iter().map(|f| self.field(f)).collect();
            let first = match layout.fields().first() {
                Some(field) => self.field(field),
                // A message without fields has no first one, and nothing asks for it.
                None => "FieldName { tag: 0, name: \"\" }".to_owned(),
            };
            let _ = writeln!(
                self.out,
                "    const FORM: Form = Form {{ required: &[{}], first: {first} }};",
                constants.join(", ")
            );
        }
        for row in rows.iter().filter(|row| !row.is_length) {
            let bit = match row.requires().is_empty() {
                true => "OPTIONAL".to_owned(),
                false => row.bit.to_string(),
            };
            match row.kind {
                MemberKind::Field(field) => self.setter(row, field, &bit),
                MemberKind::Group(count, _) => self.group_setter(row, name, count, &bit),
                MemberKind::Component(component, _) => {
                    let of = self.component_type(component);
                    let _ = write!(
                        self.out,
                        "\n    /// The component {}.\n    #[inline]\n    pub fn {}(&mut self) -> {of}Writer<'_, 'w, 'b> {{ {of}Writer(self.0.component({}, {bit})) }}\n",
                        doc(component),
                        row.method,
                        row.rank
                    );
                }
            }
        }
        self.out.push_str("}\n\n");
    }

    fn setter(&mut self, row: &Row<'d>, field: &'d FieldDef, bit: &str) {
        let constant = self.field(field);
        let (_, put) = self.types_of(field);
        let note = self.note(field, row.is_required);
        let body = match row.length {
            Some(length) => {
                let of = self.field(length);
                format!("self.0.data({}, {bit}, {of}, {constant}, value)", row.rank - 1)
            }
            None => format!("self.0.put({}, {bit}, {constant}, value)", row.rank),
        };
        let with = row.length.map_or(String::new(), |length| {
            format!(
                " Its length, {} ({}), is written before it.",
                doc(&length.name),
                length.tag
            )
        });
        let _ = write!(
            self.out,
            "\n    /// {note}{with}\n    #[inline]\n    pub fn {}(&mut self, value: {put}) -> &mut Self {{ {body}; self }}\n",
            row.method
        );
    }

    fn group_setter(&mut self, row: &Row<'d>, owner: &str, count: &'d FieldDef, bit: &str) {
        let constant = self.field(count);
        let entry = entry_type(owner, count);
        let note = self.note(count, row.is_required);
        let _ = write!(
            self.out,
            "\n    /// One entry for each item, written by `fill`; their number in {note} Nothing if there are no items.\n    #[inline]\n    \
             pub fn {}<I: IntoIterator<IntoIter: ExactSizeIterator>>(&mut self, items: I, mut fill: impl FnMut(&mut {entry}Writer<'_, 'w, 'b>, I::Item)) -> &mut Self {{\n        \
             self.0.group({}, {bit}, {constant}, &{entry}Writer::FORM, items, |scope, item| fill(&mut {entry}Writer(scope), item));\n        self\n    }}\n",
            row.method, row.rank
        );
    }

    fn entry(&mut self, owner: &str, count: &'d FieldDef, layout: Layout<'d>) -> Result<(), String> {
        let name = entry_type(owner, count);
        if !self.types.insert(name.clone()) {
            return Err(format!(
                "two types would be called {name}: rename the message, component or group of {}",
                count.name
            ));
        }
        let mut tags = BTreeSet::new();
        all_tags(layout, &mut tags);
        let first = layout.fields()[0]; // the loader refuses groups without fields
        if self.inner_tags(layout).contains(&first.tag) {
            return Err(format!(
                "{} ({}) begins the entries of {} and is also in a group within them, so that it could not be told where an \
                 entry ends",
                first.name, first.tag, count.name
            ));
        }
        let tags: Vec<String> = tags.iter().map(u32::to_string).collect();
        let (first, constant) = (self.field(first), self.field(count));
        let _ = write!(
            self.out,
            "/// An entry behind {} ({}), received.\n\
             #[derive(Clone, Copy, Debug)]\n\
             pub struct {name}<'m>(Fields<'m>);\n\n\
             impl RepeatingGroup for {name}<'_> {{\n    \
                 const COUNT: u32 = {};\n    \
                 #[inline]\n    \
                 fn has(tag: u32) -> bool {{\n        \
                     static TAGS: TagSet = TagSet::entry(&[{}], &KNOWN);\n        \
                     TAGS.has(tag)\n    \
                 }}\n\
             }}\n\n\
             impl<'m> Entry<'m> for {name}<'m> {{\n    \
                 const NAME: FieldName = {constant};\n    \
                 const FIRST: FieldName = {first};\n    \
                 #[inline]\n    \
                 fn of(fields: Fields<'m>) -> Self {{ Self(fields) }}\n\
             }}\n\n\
             impl<'m> {name}<'m> {{\n    \
                 /// Its fields, those of groups within it included.\n    \
                 #[inline]\n    \
                 pub fn fields(&self) -> Fields<'m> {{ self.0 }}\n",
            doc(&count.name),
            count.tag,
            count.tag,
            tags.join(", ")
        );
        self.definition(Of::Entry(count), &name, layout)
    }

    /// Any of the messages.
    fn any(&mut self, messages: &[&'d MessageDef]) {
        self.out.push_str(
            "/// A message of any of the types of this module.\n#[derive(Clone, Copy, Debug)]\n#[allow(missing_docs)]\n\
             pub enum AnyMessage<'m> {\n",
        );
        let names: Vec<String> = messages.iter().map(|m| type_name(&m.name)).collect();
        for name in &names {
            let _ = writeln!(self.out, "    {name}({name}<'m>),");
        }
        self.out.push_str(
            "}\n\nimpl<'m> AnyMessage<'m> {\n    /// By MsgType (35); `None` if it is none of them.\n    \
             pub fn read(message: &Message<'m>) -> Option<Self> {\n        Some(match message.msg_type() {\n",
        );
        for name in &names {
            let _ = writeln!(
                self.out,
                "            {name}::MSG_TYPE => Self::{name}({name}(*message)),"
            );
        }
        self.out
            .push_str("            _ => return None,\n        })\n    }\n}\n\n");
    }

    /// The enumerations of the fields that were named.
    fn values(&mut self) {
        self.out
            .push_str("/// Fields with listed values.\npub mod values {\n");
        let fields: Vec<&FieldDef> = self.fields.values().copied().collect();
        for field in fields.into_iter().filter(|f| is_listed(f)) {
            let _ = write!(
                self.out,
                "::tickwire_fix::field_values! {{\n    /// {} ({}), {}.\n    {} {{\n",
                doc(&field.name),
                field.tag,
                field.type_name,
                type_name(&field.name)
            );
            let mut taken = BTreeSet::new();
            for (value, description) in &field.values {
                let text = value.escape_ascii();
                let variant = variant(description, value, &mut taken);
                let _ = writeln!(
                    self.out,
                    "        /// `{text}`: {}.\n        {variant} = b\"{text}\",",
                    doc(description)
                );
            }
            self.out.push_str("    }\n}\n");
        }
        self.out.push_str("}\n\n");
    }

    /// The names of the fields, and which tags the dictionary knows.
    fn names(&mut self) {
        self.out
            .push_str("/// Names and tags of the fields, as errors tell them.\npub mod fields {\n    use super::FieldName;\n");
        for field in self.fields.values() {
            let _ = writeln!(
                self.out,
                "    /// {} ({}), {}.\n    pub const {}: FieldName = FieldName {{ tag: {}, name: {:?} }};",
                doc(&field.name),
                field.tag,
                field.type_name,
                screaming(&field.name),
                field.tag,
                field.name
            );
        }
        let known: Vec<String> = self
            .dictionary
            .fields()
            .iter()
            .map(|f| f.tag.to_string())
            .collect();
        let _ = writeln!(
            self.out,
            "}}\n\n/// What ends an entry of a group that does not have it.\nconst KNOWN: TagSet = TagSet::new(&[{}]);",
            known.join(", ")
        );
    }

    /// The constant that names a field.
    fn field(&mut self, field: &'d FieldDef) -> String {
        self.fields.insert(field.tag, field);
        format!("fields::{}", screaming(&field.name))
    }

    fn component_type(&mut self, component: &'d str) -> String {
        if let Some(known) = self.component_types.get(component) {
            return known.clone();
        }
        let mut name = type_name(component);
        while !self.types.insert(name.clone()) {
            name.push_str("Component");
        }
        self.component_types.insert(component, name.clone());
        name
    }

    /// Name, tag, type, required or not.
    fn note(&self, field: &FieldDef, is_required: bool) -> String {
        let several = match field.kind {
            FieldKind::Texts => " Several values are separated by spaces: `typed::several`.",
            _ => "",
        };
        format!(
            "{} ({}), {}, {}.{several}",
            doc(&field.name),
            field.tag,
            field.type_name,
            if is_required { "required" } else { "optional" }
        )
    }

    /// What a getter gives and what a setter takes.
    fn types_of(&self, field: &FieldDef) -> (String, String) {
        if is_listed(field) && field.kind != FieldKind::Texts {
            let name = format!("values::{}", type_name(&field.name));
            return (name.clone(), name);
        }
        let is_qty = matches!(&*field.type_name, "QTY" | "QUANTITY");
        let name = match field.kind {
            FieldKind::Int => "i64",
            FieldKind::Count | FieldKind::DayOfMonth => "u64",
            FieldKind::Decimal if is_qty && self.quantities == Quantities::Whole => "Qty",
            FieldKind::Decimal => "Price",
            FieldKind::Char => "u8",
            FieldKind::Boolean => "bool",
            FieldKind::Timestamp => "Nanos",
            _ => return ("&'m [u8]".to_owned(), "&[u8]".to_owned()),
        };
        (name.to_owned(), name.to_owned())
    }
}

/// Whether a field gets an enumeration.
fn is_listed(field: &FieldDef) -> bool {
    let has_own_type = matches!(
        field.kind,
        FieldKind::Boolean | FieldKind::Data | FieldKind::Decimal | FieldKind::Count | FieldKind::Timestamp
    );
    !field.values.is_empty() && !has_own_type
}

/// A place of its own, not a part of one.
fn of_place(of: Of<'_>) -> bool {
    !matches!(of, Of::Component(_))
}
