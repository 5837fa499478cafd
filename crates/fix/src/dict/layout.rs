//! What a definition says in which order: fields, groups and components as they stand in the dictionary. The
//! tables of the validator forget the components; who writes code or documents from a dictionary needs them.

use super::{Dictionary, FieldDef, MessageDef};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// One line of a definition, by numbers into the dictionary's tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) item: Item,
    pub(super) is_required: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// A field number.
    Field(u16),
    /// The field number of the count, the group.
    Group(u16, u32),
    Component(u32),
}

/// A named list of fields, groups and components that several definitions share.
#[derive(Clone, Debug)]
pub(super) struct ComponentDef {
    pub(super) name: Box<str>,
    pub(super) rows: Vec<Row>,
}

/// The members of a message, component, header, trailer, or of the entries of a group, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'d> {
    dictionary: &'d Dictionary,
    rows: &'d [Row],
}

/// One member of a [`Layout`].
#[derive(Clone, Copy, Debug)]
pub struct Member<'d> {
    /// What it is.
    pub kind: MemberKind<'d>,
    /// Whether it must be there; what a component requires counts only where the component itself is
    /// required.
    pub is_required: bool,
}

/// What a [`Member`] is.
#[derive(Clone, Copy, Debug)]
pub enum MemberKind<'d> {
    /// A field.
    Field(&'d FieldDef),
    /// A repeating group: the field that counts its entries, and what stands in each.
    Group(&'d FieldDef, Layout<'d>),
    /// A component: its name and what it stands for.
    Component(&'d str, Layout<'d>),
}

impl<'d> Layout<'d> {
    /// The members in their order.
    pub fn members(self) -> impl Iterator<Item = Member<'d>> {
        self.rows.iter().map(move |row| Member {
            kind: self.kind(row.item),
            is_required: row.is_required,
        })
    }

    /// The fields in their order, components put in their places, counts of groups among them but not their
    /// entries.
    pub fn fields(self) -> Vec<&'d FieldDef> {
        let mut out = Vec::new();
        for member in self.members() {
            match member.kind {
                MemberKind::Field(field) | MemberKind::Group(field, _) => out.push(field),
                MemberKind::Component(_, inner) => out.append(&mut inner.fields()),
            }
        }
        out
    }

    fn kind(self, item: Item) -> MemberKind<'d> {
        let d = self.dictionary;
        let layout = |rows| Layout { dictionary: d, rows };
        match item {
            Item::Field(number) => MemberKind::Field(&d.fields[number as usize]),
            Item::Group(count, group) => {
                MemberKind::Group(&d.fields[count as usize], layout(&d.groups[group as usize].rows))
            }
            Item::Component(number) => {
                let component = &d.components[number as usize];
                MemberKind::Component(&component.name, layout(&component.rows))
            }
        }
    }
}

impl Dictionary {
    /// What stands in the body of a message of this dictionary.
    pub fn layout<'d>(&'d self, message: &'d MessageDef) -> Layout<'d> {
        self.rows(&message.rows)
    }

    /// What stands in the standard header.
    pub fn header(&self) -> Layout<'_> {
        self.rows(&self.header_rows)
    }

    /// What stands in the standard trailer.
    pub fn trailer(&self) -> Layout<'_> {
        self.rows(&self.trailer_rows)
    }

    fn rows<'d>(&'d self, rows: &'d [Row]) -> Layout<'d> {
        Layout {
            dictionary: self,
            rows,
        }
    }
}
