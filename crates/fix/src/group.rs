//! Repeating groups where they lie. FIX 4.4, volume 1, "Repeating Groups": a count, then that many entries,
//! each of which begins with the same field and has no field twice, save those of groups within it.

use crate::fields::{Field, Fields};
use crate::reject::{Fault, SessionRejectReason};
use core::marker::PhantomData;

/// What the decoder must know of a group to see where it ends. Generated code has one type for every group.
pub trait RepeatingGroup {
    /// The tag of its count, of type NumInGroup.
    const COUNT: u32;

    /// Whether a field may be in an entry: the fields of groups within it included, and their counts.
    fn has(tag: u32) -> bool;
}

/// The entries of one repeating group, one after the other; nothing is copied. The field behind the count
/// begins every entry, whichever of the group it is (whether it is the right one is for
/// [`Validator`](crate::dict::Validator)).
///
/// Entries that the count claims and the message has not are not given: see [`Group::check`]. Neither are
/// those that the message has beyond the count.
#[derive(Clone, Debug)]
pub struct Group<'a, G> {
    message: Fields<'a>,
    /// What has not been given, up to the end of message or entry around.
    rest: &'a [Field],
    count: Field,
    /// How many entries are still to come.
    left: u64,
    is_number: bool,
    of: PhantomData<G>,
}

impl<'a, G: RepeatingGroup> Group<'a, G> {
    /// The group whose count is field `at`.
    #[inline]
    pub(crate) fn new(around: Fields<'a>, at: usize) -> Group<'a, G> {
        let count = around.fields()[at];
        let claimed = around.unsigned(count);
        Group {
            message: around,
            rest: &around.fields()[at + 1..],
            count,
            left: claimed.unwrap_or(0),
            is_number: claimed.is_ok(),
            of: PhantomData,
        }
    }

    /// How many entries the count claims are still to come: any number, as the message says it. 0 when it is
    /// no number.
    #[inline]
    pub fn claimed(&self) -> u64 {
        self.left
    }

    /// The count's value, and what follows it up to the end of message or entry around.
    #[inline]
    pub(crate) fn open(&self) -> Result<(u64, Fields<'a>), Fault> {
        match self.is_number {
            true => Ok((self.left, self.message.others(self.rest))),
            false => Err(Fault::format(self.count.tag)),
        }
    }

    /// Whether the entries still to come are as many as the count says: walks over all of them.
    pub fn check(mut self) -> Result<(), Fault> {
        if !self.is_number {
            return Err(Fault::format(self.count.tag));
        }
        let first = self.rest.first().map(|f| f.tag);
        while self.next().is_some() {}
        let has_more = self
            .rest
            .first()
            .is_some_and(|f| Some(f.tag) == first && G::has(f.tag));
        match self.left == 0 && !has_more {
            true => Ok(()),
            false => Err(Fault::new(
                SessionRejectReason::IncorrectNumInGroup,
                self.count.tag,
            )),
        }
    }
}

impl<'a, G: RepeatingGroup> Iterator for Group<'a, G> {
    type Item = Fields<'a>;

    #[inline]
    fn next(&mut self) -> Option<Fields<'a>> {
        let first = self
            .rest
            .first()
            .map(|f| f.tag)
            .filter(|&tag| self.left > 0 && G::has(tag))?;
        let ends = |f: &Field| f.tag == first || !G::has(f.tag);
        let len = 1 + self.rest[1..]
            .iter()
            .position(ends)
            .unwrap_or(self.rest.len() - 1);
        let (entry, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.left -= 1;
        Some(self.message.others(entry))
    }
}
