//! State as bytes, and back: what a snapshot of a running program is made of.
//!
//! A type says by [`persist!`] which of its fields are state. The list is held against the type by the
//! compiler: a field that is neither saved nor named as one that the configuration makes is an error. State
//! is loaded into an object that was made from the same configuration, so that sizes and memory are as they
//! were, and nothing but state is in the bytes:
//!
//! ```
//! use tickwire_persist::{Persist, StateReader, persist};
//!
//! struct Counter {
//!     limit: u64,
//!     count: u64,
//!     last: Option<u32>,
//! }
//! persist!(struct Counter { count, last } not { limit });
//!
//! let mut bytes = Vec::new();
//! Counter { limit: 10, count: 7, last: Some(3) }.save(&mut bytes);
//! let mut again = Counter { limit: 10, count: 0, last: None };
//! let mut reader = StateReader::new(&bytes);
//! again.load(&mut reader).expect("whole");
//! assert!(reader.is_empty() && (again.count, again.last) == (7, Some(3)));
//! ```
//! The form is that of one version of the program: there are no names and no numbers of fields in the bytes.
//! Whoever keeps them says which version wrote them, holds a sum over them, and has something else to begin
//! from.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tickwire_market::{
    Cause, InstrumentId, Level, Nanos, OrderId, OrderType, Port, Price, Qty, SeqNo, Side, Symbol,
    TimeInForce, TradingStatus, Venue, Volume,
};

/// The bytes are not those of such a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

impl core::fmt::Display for Damaged {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the bytes are not those of such a state")
    }
}

impl core::error::Error for Damaged {}

/// Reads what was saved, in order.
#[derive(Clone, Debug)]
pub struct StateReader<'a> {
    bytes: &'a [u8],
}

impl<'a> StateReader<'a> {
    /// From its beginning.
    pub fn new(bytes: &'a [u8]) -> StateReader<'a> {
        StateReader { bytes }
    }

    /// The next so many bytes.
    ///
    /// # Errors
    /// There are not so many.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(Damaged)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// A length that was saved: of things of a byte at least, so that it is no more than what is left.
    ///
    /// # Errors
    /// It is more.
    pub fn length(&mut self) -> Result<usize, Damaged> {
        let length = u64::read(self)?;
        usize::try_from(length)
            .ok()
            .filter(|length| *length <= self.bytes.len())
            .ok_or(Damaged)
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// What state is appended to.
pub type Bytes = Vec<u8>;

/// Something with state.
pub trait Persist {
    /// Appends the state.
    fn save(&self, out: &mut Vec<u8>);

    /// Takes the state that was saved by one of the same configuration. After an error it is in no state that
    /// means anything.
    ///
    /// # Errors
    /// The bytes are not those of such a state.
    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged>;
}

/// Something that is all state.
pub trait PersistValue: Persist + Sized {
    /// What was saved.
    ///
    /// # Errors
    /// The bytes are not those of such a value.
    fn read(from: &mut StateReader<'_>) -> Result<Self, Damaged>;
}

/// Saves things whose number the configuration says.
pub fn save_each<'a, T: Persist + 'a>(all: impl ExactSizeIterator<Item = &'a T>, out: &mut Vec<u8>) {
    (all.len() as u64).save(out);
    all.for_each(|one| one.save(out));
}

/// Loads them.
///
/// # Errors
/// There are not as many, or one of them is damaged.
pub fn load_each<'a, T: Persist + 'a>(
    mut all: impl ExactSizeIterator<Item = &'a mut T>,
    from: &mut StateReader<'_>,
) -> Result<(), Damaged> {
    if u64::read(from)? != all.len() as u64 {
        return Err(Damaged);
    }
    all.try_for_each(|one| one.load(from))
}

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl Persist for $number {
            #[inline]
            fn save(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
                *self = Self::read(from)?;
                Ok(())
            }
        }
        impl PersistValue for $number {
            fn read(from: &mut StateReader<'_>) -> Result<$number, Damaged> {
                let bytes = from.take(size_of::<$number>())?;
                Ok(<$number>::from_le_bytes(bytes.try_into().map_err(|_| Damaged)?))
            }
        }
    )* };
}
numbers!(u8, u16, u32, u64, u128, i16, i32, i64, i128);

/// A value by what it is made of, and how it is made again.
macro_rules! by {
    ($($name:ty: $of:ty, $get:expr, $make:expr;)*) => { $(
        impl Persist for $name {
            #[inline]
            fn save(&self, out: &mut Vec<u8>) {
                let get: fn(&$name) -> $of = $get;
                get(self).save(out);
            }
            fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
                *self = Self::read(from)?;
                Ok(())
            }
        }
        impl PersistValue for $name {
            fn read(from: &mut StateReader<'_>) -> Result<$name, Damaged> {
                let make: fn($of) -> Option<$name> = $make;
                make(<$of>::read(from)?).ok_or(Damaged)
            }
        }
    )* };
}
by! {
    usize: u64, |n| *n as u64, |n| usize::try_from(n).ok();
    bool: u8, |b| u8::from(*b), |b| [false, true].get(usize::from(b)).copied();
    Nanos: u64, |n| n.0, |n| Some(Nanos(n));
    SeqNo: u64, |n| n.0, |n| Some(SeqNo(n));
    OrderId: u64, |n| n.0, |n| Some(OrderId(n));
    InstrumentId: u32, |n| n.0, |n| Some(InstrumentId(n));
    Qty: u32, |n| n.0, |n| Some(Qty(n));
    Volume: u64, |n| n.0, |n| Some(Volume(n));
    Price: i64, |price| price.raw(), |raw| Some(Price::from_raw(raw));
    Symbol: Vec<u8>, |symbol| symbol.as_str().as_bytes().to_vec(), |bytes| match bytes.is_empty() {
        true => Some(Symbol::EMPTY),
        false => Symbol::new(&bytes),
    };
    &'static str: Vec<u8>, |text| text.as_bytes().to_vec(), |bytes| {
        // Of messages that wait for a client, which a program reads once, when it starts: what is not freed
        // is bounded by them.
        let text = alloc::string::String::from_utf8(bytes).ok()?;
        Some(Box::leak(text.into_boxed_str()))
    };
}

persist!(value enum Side { 0 => Bid, 1 => Ask });
persist!(value enum OrderType { 0 => Market, 1 => Limit });
persist!(value enum TimeInForce {
    0 => Day, 1 => GoodTillCancel, 2 => AtTheOpening, 3 => ImmediateOrCancel, 4 => FillOrKill, 5 => AtTheClose,
});
persist!(value enum TradingStatus {
    0 => Unknown, 1 => PreOpen, 2 => Auction, 3 => Trading, 4 => QuoteOnly, 5 => Paused, 6 => Halted, 7 => Closed,
});
persist!(value enum Port {
    0 => Live, 1 => Retransmission, 2 => Snapshot, 3 => SnapshotByOrder, 4 => Definitions, 5 => Requests, 6 => Replay, 7 => SnapshotServer,
});
persist!(value enum Venue {
    0 => Nasdaq, 1 => NasdaqTexas, 2 => Psx, 3 => Bzx, 4 => Byx, 5 => Edga, 6 => Edgx, 7 => Nyse, 8 => Arca, 9 => American, 10 => National,
    11 => NyseTexas, 12 => Cqs, 13 => Uqdf, 14 => Cme, 15 => Moex,
});
persist!(value struct Cause { venue, seq, recv_ts });
persist!(value struct Level { price, qty, orders });

impl<T: PersistValue> Persist for Option<T> {
    fn save(&self, out: &mut Vec<u8>) {
        self.is_some().save(out);
        if let Some(value) = self {
            value.save(out);
        }
    }
    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        *self = Self::read(from)?;
        Ok(())
    }
}

impl<T: PersistValue> PersistValue for Option<T> {
    fn read(from: &mut StateReader<'_>) -> Result<Option<T>, Damaged> {
        bool::read(from)?.then(|| T::read(from)).transpose()
    }
}

impl<T: PersistValue, E: PersistValue> Persist for Result<T, E> {
    fn save(&self, out: &mut Vec<u8>) {
        self.is_ok().save(out);
        match self {
            Ok(value) => value.save(out),
            Err(error) => error.save(out),
        }
    }
    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        *self = Self::read(from)?;
        Ok(())
    }
}

impl<T: PersistValue, E: PersistValue> PersistValue for Result<T, E> {
    fn read(from: &mut StateReader<'_>) -> Result<Result<T, E>, Damaged> {
        Ok(match bool::read(from)? {
            true => Ok(T::read(from)?),
            false => Err(E::read(from)?),
        })
    }
}

macro_rules! lists {
    ($($list:ident $push:ident),*) => { $(
        impl<T: PersistValue> Persist for $list<T> {
            fn save(&self, out: &mut Vec<u8>) {
                (self.len() as u64).save(out);
                self.iter().for_each(|one| one.save(out));
            }
            /// Into the memory that is there.
            fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
                self.clear();
                for _ in 0..from.length()? {
                    self.$push(T::read(from)?);
                }
                Ok(())
            }
        }
        impl<T: PersistValue> PersistValue for $list<T> {
            fn read(from: &mut StateReader<'_>) -> Result<$list<T>, Damaged> {
                let mut list = $list::new();
                list.load(from)?;
                Ok(list)
            }
        }
    )* };
}
lists!(Vec push, VecDeque push_back);

impl<T: Persist, const N: usize> Persist for [T; N] {
    fn save(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|one| one.save(out));
    }
    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        self.iter_mut().try_for_each(|one| one.load(from))
    }
}

impl<T: PersistValue, const N: usize> PersistValue for [T; N] {
    fn read(from: &mut StateReader<'_>) -> Result<[T; N], Damaged> {
        let all: Result<Vec<T>, Damaged> = (0..N).map(|_| T::read(from)).collect();
        all?.try_into().map_err(|_| Damaged)
    }
}

macro_rules! tuples {
    ($($($name:ident $at:tt),+;)*) => { $(
        impl<$($name: PersistValue),+> Persist for ($($name,)+) {
            fn save(&self, out: &mut Vec<u8>) {
                $( self.$at.save(out); )+
            }
            fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
                *self = Self::read(from)?;
                Ok(())
            }
        }
        impl<$($name: PersistValue),+> PersistValue for ($($name,)+) {
            fn read(from: &mut StateReader<'_>) -> Result<Self, Damaged> {
                Ok(($( $name::read(from)?, )+))
            }
        }
    )* };
}
tuples! {
    A 0, B 1;
    A 0, B 1, C 2;
}

/// Says what of a type is state. See the crate's description.
///
/// ```text
///  persist!(struct Name { state } each { lists of fixed length } not { made by the configuration });
///  persist!(struct Name<S: Bound> { .. });
///  persist!(value struct Name { every field });
///  persist!(value struct Name(every, field));
///  persist!(value enum Name { 0 => Plain, 1 => Named { a, b }, 2 => Tuple(a, b) });
/// ```
#[macro_export]
macro_rules! persist {
    (struct $name:ident $(<$($g:ident: $bound:path),+>)? { $($f:ident),* $(,)? }
        $(each { $($e:ident),* $(,)? })? $(not { $($n:ident),* $(,)? })?) => {
        impl $(<$($g: $bound),+>)? $crate::Persist for $name $(<$($g),+>)? {
            fn save(&self, out: &mut $crate::Bytes) {
                let $name { $($f,)* $($($e,)*)? $($($n: _,)*)? } = self;
                $( $crate::Persist::save($f, out); )*
                $( $( $crate::save_each($e.iter(), out); )* )?
            }
            fn load(&mut self, from: &mut $crate::StateReader<'_>) -> ::core::result::Result<(), $crate::Damaged> {
                let $name { $($f,)* $($($e,)*)? $($($n: _,)*)? } = self;
                $( $crate::Persist::load($f, from)?; )*
                $( $( $crate::load_each($e.iter_mut(), from)?; )* )?
                ::core::result::Result::Ok(())
            }
        }
    };
    (value struct $name:ident { $($f:ident),* $(,)? }) => {
        $crate::persist!(struct $name { $($f),* });
        impl $crate::PersistValue for $name {
            fn read(from: &mut $crate::StateReader<'_>) -> ::core::result::Result<$name, $crate::Damaged> {
                ::core::result::Result::Ok($name { $( $f: $crate::PersistValue::read(from)?, )* })
            }
        }
    };
    (value struct $name:ident ( $($f:ident),* $(,)? )) => {
        $crate::persist!(value enum $name { (); $name($($f),*) });
    };
    (value enum $name:ident { $($tag:literal => $variant:ident
        $( { $($f:ident),* $(,)? } )? $( ( $($t:ident),* $(,)? ) )? ),* $(,)? }) => {
        impl $crate::Persist for $name {
            fn save(&self, out: &mut $crate::Bytes) {
                match self { $(
                    $name::$variant $( { $($f),* } )? $( ( $($t),* ) )? => {
                        $crate::Persist::save(&($tag as u8), out);
                        $( $( $crate::Persist::save($f, out); )* )?
                        $( $( $crate::Persist::save($t, out); )* )?
                    }
                )* }
            }
            fn load(&mut self, from: &mut $crate::StateReader<'_>) -> ::core::result::Result<(), $crate::Damaged> {
                *self = <$name as $crate::PersistValue>::read(from)?;
                ::core::result::Result::Ok(())
            }
        }
        impl $crate::PersistValue for $name {
            fn read(from: &mut $crate::StateReader<'_>) -> ::core::result::Result<$name, $crate::Damaged> {
                ::core::result::Result::Ok(match <u8 as $crate::PersistValue>::read(from)? {
                    $( $tag => $name::$variant
                        $( { $( $f: $crate::PersistValue::read(from)? ),* } )?
                        $( ( $( { let $t = $crate::PersistValue::read(from)?; $t } ),* ) )?, )*
                    _ => return ::core::result::Result::Err($crate::Damaged),
                })
            }
        }
    };
    // Of a tuple, all in one.
    (value enum $name:ident { (); $same:ident ( $($f:ident),* ) }) => {
        impl $crate::Persist for $name {
            fn save(&self, out: &mut $crate::Bytes) {
                let $name($($f),*) = self;
                $( $crate::Persist::save($f, out); )*
            }
            fn load(&mut self, from: &mut $crate::StateReader<'_>) -> ::core::result::Result<(), $crate::Damaged> {
                let $name($($f),*) = self;
                $( $crate::Persist::load($f, from)?; )*
                ::core::result::Result::Ok(())
            }
        }
        impl $crate::PersistValue for $name {
            fn read(from: &mut $crate::StateReader<'_>) -> ::core::result::Result<$name, $crate::Damaged> {
                $( let $f = $crate::PersistValue::read(from)?; )*
                ::core::result::Result::Ok($name($($f),*))
            }
        }
    };
}
