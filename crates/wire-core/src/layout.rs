//! What wire layouts are made of: field types, the table macro [`wire_struct!`](crate::wire_struct), and the
//! walk over named fields.
//!
//! A layout accepts any bytes of its size and refers to them in place: nothing is copied, nothing is judged.
//! Meaning is decided by whoever reads the field ([`wire_enum!`](crate::wire_enum) types have `from_wire`).
//! All types are unaligned, so a message may start anywhere in a packet.
//!
//! ```
//! use tickwire_wire_core::layout::{Alpha, Char, Price4, U32, prefix};
//! tickwire_wire_core::wire_struct! {
//!     /// Tick. Example Protocol 1.0, "Tick".
//!     pub struct Tick = "Tick", 13 {
//!         0 => kind: Char, "MessageType";
//!         1 => stock: Alpha<4>, "Stock";
//!         5 => shares: U32, "Shares";
//!         9 => price: Price4, "Price";
//!     }
//! }
//! let (tick, rest) = prefix::<Tick>(b"TWIRE\x00\x00\x00\x64\x00\x01\xE2\x40...").unwrap();
//! assert_eq!((tick.shares.get(), tick.price.price()), (100, "12.3456".parse().unwrap()));
//! assert_eq!(rest, b"...");
//! ```

use core::fmt;
use tickwire_market::{Price, Symbol};

pub use crate::pod::{
    I16, I32, I64, Pod, U16, U32, U64, le, prefix, slice_bytes, slice_prefix, split, split_mut,
};

/// The value of a field as a decoder shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldValue<'a> {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// Padded ASCII text, padding included.
    Text(&'a [u8]),
    /// One ASCII character.
    Char(u8),
    /// `mantissa / 10^decimals`. Wide enough for every field: a price on the wire may be nonsense, it is
    /// shown as it is.
    Decimal {
        /// The integer on the wire.
        mantissa: i128,
        /// Implied decimals.
        decimals: u8,
    },
    /// Bytes without a meaning of their own.
    Bytes(&'a [u8]),
    /// The field's null value: the venue says nothing.
    Null,
}

/// Text without its padding and with `\x..` for what is not printable; decimals in full (`87.3900`); bytes in
/// hexadecimal.
impl fmt::Display for FieldValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FieldValue::Unsigned(v) => write!(f, "{v}"),
            FieldValue::Signed(v) => write!(f, "{v}"),
            FieldValue::Text(text) => write!(f, "{}", trim(text).escape_ascii()),
            FieldValue::Char(c) => write!(f, "{}", c.escape_ascii()),
            FieldValue::Decimal { mantissa, decimals } => write_decimal(f, mantissa, decimals),
            FieldValue::Bytes(bytes) => bytes.iter().try_for_each(|b| write!(f, "{b:02X}")),
            FieldValue::Null => f.write_str("null"),
        }
    }
}

fn write_decimal(f: &mut fmt::Formatter<'_>, mantissa: i128, decimals: u8) -> fmt::Result {
    let unit = 10_u128.pow(u32::from(decimals.min(38)));
    let sign = if mantissa < 0 { "-" } else { "" };
    let (whole, fraction) = (mantissa.unsigned_abs() / unit, mantissa.unsigned_abs() % unit);
    match decimals {
        0 => write!(f, "{sign}{whole}"),
        _ => write!(
            f,
            "{sign}{whole}.{fraction:0width$}",
            width = usize::from(decimals)
        ),
    }
}

/// Text without trailing spaces and NULs.
#[inline]
pub const fn trim(text: &[u8]) -> &[u8] {
    let mut text = text;
    while let [rest @ .., b' ' | 0] = text {
        text = rest;
    }
    text
}

/// A type that can stand in a row of [`wire_struct!`](crate::wire_struct).
pub trait Field: Pod {
    /// The value an encoder leaves in a field it has nothing to say in: 0, or spaces in text.
    const BLANK: Self;

    /// The value to show.
    fn value(&self) -> FieldValue<'_>;

    /// Shows the value under `name`; a record inside a record shows its own fields instead.
    fn visit_as(&self, name: &'static str, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
        f(name, self.value());
    }
}

/// A message whose fields can be walked in wire order, named as the specification names them.
pub trait Fields {
    /// The message's name in the specification.
    const NAME: &'static str;

    /// Calls `f` with name and value of every field whose bytes begin before `known`, and with
    /// [`FieldValue::Null`] for every field behind: the sender's version of the layout ends there, whatever
    /// bytes lie under the rest.
    fn visit_known(&self, known: usize, f: &mut dyn FnMut(&'static str, FieldValue<'_>));

    /// Calls `f` with name and value of every field.
    fn visit(&self, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
        self.visit_known(usize::MAX, f);
    }
}

/// Shows one row of a table, or null in its place where the sender does not know it.
#[doc(hidden)]
pub fn visit_row<T: Field>(
    field: &T,
    label: &'static str,
    is_known: bool,
    f: &mut dyn FnMut(&'static str, FieldValue<'_>),
) {
    if is_known {
        field.visit_as(label, f);
    } else {
        field.visit_as(label, &mut |name, _| f(name, FieldValue::Null));
    }
}

/// What is called with name and value of a row.
#[doc(hidden)]
pub type Show<'a> = &'a mut dyn FnMut(&'static str, FieldValue<'_>);

/// Writes the rows of a table for [`fmt::Debug`].
#[doc(hidden)]
pub fn debug_rows(name: &str, visit: &mut dyn FnMut(Show<'_>), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rows = f.debug_struct(name);
    visit(&mut |label, value| {
        rows.field(label, &format_args!("{value}"));
    });
    rows.finish()
}

/// A fixed-width integer of the wire, for [`Scaled`].
pub trait WireInt: Pod {
    /// Zero.
    const ZERO: Self;
    /// The number.
    fn widen(self) -> i128;
    /// The number as this type, `None` if it does not fit.
    fn narrow(v: i128) -> Option<Self>;
}

macro_rules! integer_fields {
    ($($wire:ty, $native:ty, $variant:ident;)*) => {$(
        impl Field for $wire {
            const BLANK: Self = <$wire>::ZERO;
            #[inline]
            fn value(&self) -> FieldValue<'_> {
                FieldValue::$variant(self.get().into())
            }
        }
        impl WireInt for $wire {
            const ZERO: Self = <$wire>::ZERO;
            #[inline(always)]
            fn widen(self) -> i128 {
                self.get() as i128
            }
            #[inline(always)]
            fn narrow(v: i128) -> Option<Self> {
                <$native>::try_from(v).ok().map(<$wire>::new)
            }
        }
    )*};
}

integer_fields! {
    U16, u16, Unsigned;
    U32, u32, Unsigned;
    U64, u64, Unsigned;
    I16, i16, Signed;
    I32, i32, Signed;
    I64, i64, Signed;
    le::U16, u16, Unsigned;
    le::U32, u32, Unsigned;
    le::U64, u64, Unsigned;
    le::I16, i16, Signed;
    le::I32, i32, Signed;
    le::I64, i64, Signed;
}

impl Field for u8 {
    const BLANK: u8 = 0;
    fn value(&self) -> FieldValue<'_> {
        FieldValue::Unsigned((*self).into())
    }
}

impl Field for i8 {
    const BLANK: i8 = 0;
    fn value(&self) -> FieldValue<'_> {
        FieldValue::Signed((*self).into())
    }
}

impl<const N: usize> Field for [u8; N] {
    const BLANK: [u8; N] = [0; N];
    fn value(&self) -> FieldValue<'_> {
        FieldValue::Bytes(self)
    }
}

/// A 48-bit unsigned big-endian integer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct U48([u8; 6]);

impl U48 {
    /// The largest value, 2^48 - 1.
    pub const MAX: u64 = (1 << 48) - 1;

    /// The low 48 bits of `v`; a larger `v` is a bug of the encoder.
    #[inline]
    pub const fn new(v: u64) -> U48 {
        debug_assert!(v <= U48::MAX);
        let [_, _, bytes @ ..] = v.to_be_bytes();
        U48(bytes)
    }

    /// The number.
    #[inline(always)]
    pub const fn get(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

impl Field for U48 {
    const BLANK: U48 = U48([0; 6]);
    fn value(&self) -> FieldValue<'_> {
        FieldValue::Unsigned(self.get())
    }
}

impl fmt::Debug for U48 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "U48({})", self.get())
    }
}

/// One ASCII character: a code, a flag, a message type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Char(pub u8);

impl Char {
    /// A space: says nothing.
    pub const SPACE: Char = Char(b' ');

    /// The byte.
    #[inline(always)]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Field for Char {
    const BLANK: Char = Char::SPACE;
    fn value(&self) -> FieldValue<'_> {
        FieldValue::Char(self.0)
    }
}

impl fmt::Debug for Char {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Char('{}')", self.0.escape_ascii())
    }
}

/// ASCII text, left-justified, padded with spaces (some venues: NULs).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Alpha<const N: usize>(pub [u8; N]);

impl<const N: usize> Alpha<N> {
    /// `text` padded with spaces, `None` if it is longer than the field.
    #[inline]
    pub const fn new(text: &[u8]) -> Option<Alpha<N>> {
        if text.len() > N {
            return None;
        }
        let mut bytes = [b' '; N];
        let mut i = 0;
        while i < text.len() {
            bytes[i] = text[i];
            i += 1;
        }
        Some(Alpha(bytes))
    }

    /// The text without its padding.
    #[inline]
    pub const fn trimmed(&self) -> &[u8] {
        trim(&self.0)
    }

    /// As an instrument's name, `None` if longer than a name can be or with a byte that is not printable.
    #[inline]
    pub const fn symbol(&self) -> Option<Symbol> {
        Symbol::new(&self.0)
    }

    /// An instrument's name padded with spaces, `None` if it is longer than the field.
    #[inline]
    pub fn from_symbol(symbol: &Symbol) -> Option<Alpha<N>> {
        symbol.padded().map(Alpha)
    }
}

impl<const N: usize> Field for Alpha<N> {
    const BLANK: Alpha<N> = Alpha([b' '; N]);
    fn value(&self) -> FieldValue<'_> {
        FieldValue::Text(&self.0)
    }
}

impl<const N: usize> fmt::Debug for Alpha<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// An ASCII decimal number, right-justified; padded on the left with spaces, or zeros, which readers accept
/// too.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Digits<const N: usize>(pub [u8; N]);

impl<const N: usize> Digits<N> {
    /// The number padded with spaces; `None` if it has more than `N` digits.
    pub const fn new(v: u64) -> Option<Digits<N>> {
        let mut bytes = [b' '; N];
        let (mut rest, mut at) = (v, N);
        loop {
            if at == 0 {
                return None;
            }
            at -= 1;
            bytes[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return Some(Digits(bytes));
            }
        }
    }

    /// The number. Spaces may stand on either side (senders differ); all spaces, other bytes and numbers
    /// beyond 64 bits are `None`.
    pub const fn get(&self) -> Option<u64> {
        let mut text = trim(&self.0);
        while let [b' ', rest @ ..] = text {
            text = rest;
        }
        if text.is_empty() {
            return None;
        }
        let mut v: u64 = 0;
        while let [digit @ b'0'..=b'9', rest @ ..] = text {
            v = match v.checked_mul(10) {
                Some(v) => match v.checked_add((*digit - b'0') as u64) {
                    Some(v) => v,
                    None => return None,
                },
                None => return None,
            };
            text = rest;
        }
        if text.is_empty() { Some(v) } else { None }
    }
}

impl<const N: usize> Field for Digits<N> {
    const BLANK: Digits<N> = Digits([b' '; N]);
    fn value(&self) -> FieldValue<'_> {
        FieldValue::Text(&self.0)
    }
}

impl<const N: usize> fmt::Debug for Digits<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// A price as an integer with `DECIMALS` implied decimals.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Scaled<T, const DECIMALS: u8>(pub T);

/// Unsigned 32 bits big-endian, 4 implied decimals: prices of Nasdaq's binary protocols.
pub type Price4 = Scaled<U32, 4>;
/// Unsigned 64 bits big-endian, 8 implied decimals: index levels of Nasdaq's binary protocols.
pub type Price8 = Scaled<U64, 8>;

impl<T: WireInt, const DECIMALS: u8> Scaled<T, DECIMALS> {
    /// The price, `None` if it does not fit (64-bit fields hold more than [`Price`] does at fewer decimals).
    #[inline(always)]
    pub fn checked_price(self) -> Option<Price> {
        Price::from_decimal(i64::try_from(self.0.widen()).ok()?, DECIMALS)
    }

    /// The field for a price, `None` if that is not exact or does not fit.
    #[inline]
    pub fn from_price(price: Price) -> Option<Self> {
        T::narrow(price.to_decimal(DECIMALS)?.into()).map(Scaled)
    }
}

impl Price4 {
    /// The price; every value fits.
    #[inline(always)]
    pub const fn price(self) -> Price {
        Price::from_4dp(self.0.get())
    }

    /// The field with this mantissa: `Price4::new(873_900)` is 87.39.
    #[inline]
    pub const fn new(mantissa: u32) -> Price4 {
        Scaled(U32::new(mantissa))
    }
}

impl Scaled<le::U16, 2> {
    /// The price; every value fits.
    #[inline(always)]
    pub fn price(self) -> Price {
        Price::from_raw(i64::from(self.0.get()) * 10_000_000)
    }
}

impl Price8 {
    /// The field with this mantissa.
    #[inline]
    pub const fn new(mantissa: u64) -> Price8 {
        Scaled(U64::new(mantissa))
    }
}

impl<T: WireInt, const DECIMALS: u8> Field for Scaled<T, DECIMALS> {
    const BLANK: Self = Scaled(T::ZERO);
    fn value(&self) -> FieldValue<'_> {
        FieldValue::Decimal {
            mantissa: self.0.widen(),
            decimals: DECIMALS,
        }
    }
}

/// Declares the layout of one message, header, block or group entry as a table.
///
/// ```text
/// wire_struct! {
///     /// What it is. Specification and revision, section.
///     pub struct Name = "NameInTheSpecification", size {
///         offset => field: Type, "FieldNameInTheSpecification";
///     }
/// }
/// ```
/// Makes the `repr(C)` unaligned struct, compile-time proofs of its size and of every offset, `Name::SIZE`,
/// `Name::BLANK` (zeros, spaces in text: encoders fill in the rest), [`Fields`], and [`Field`], so that a
/// struct can be a row of another one (its fields are then shown in its place). Repeating groups and variable
/// tails are separate structs, read with [`prefix`] one after the other. The impls are written by the macro
/// and not derived: 270 tables of five derives each took three quarters of the time that checking this took
/// (ADR 9).
#[macro_export]
macro_rules! wire_struct {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident = $spec:literal, $size:literal {
            $($(#[$row_meta:meta])* $offset:literal => $field:ident: $ty:ty, $label:literal;)*
        }
    ) => {
        $crate::wire_layout! {
            $(#[$meta])*
            $vis struct $name {
                $(
                    #[doc = concat!("`", $label, "`, offset ", $offset, ".")]
                    $(#[$row_meta])*
                    pub $field: $ty,
                )*
            }
        }

        const _: () = {
            assert!(size_of::<$name>() == $size, concat!("size of ", stringify!($name)));
            $(assert!(
                core::mem::offset_of!($name, $field) == $offset,
                concat!("offset of ", stringify!($name), "::", stringify!($field))
            );)*
        };

        impl $name {
            /// Bytes on the wire.
            pub const SIZE: usize = $size;
            /// Every field zero, or spaces where it is text.
            pub const BLANK: $name = $name { $($field: <$ty as $crate::layout::Field>::BLANK),* };
        }

        impl $crate::layout::Fields for $name {
            const NAME: &'static str = $spec;

            #[allow(unused_variables, reason = "a layout without fields has nothing to show")]
            fn visit_known(
                &self,
                known: usize,
                f: &mut dyn FnMut(&'static str, $crate::layout::FieldValue<'_>),
            ) {
                $($crate::layout::visit_row(&self.$field, $label, $offset < known, f);)*
            }
        }

        /// As bytes.
        impl PartialEq for $name {
            #[inline]
            fn eq(&self, other: &$name) -> bool {
                $crate::layout::Pod::as_bytes(self) == $crate::layout::Pod::as_bytes(other)
            }
        }

        impl Eq for $name {}

        /// The fields as the specification names them, their values as a decoder shows them.
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                $crate::layout::debug_rows(stringify!($name), &mut |row| $crate::layout::Fields::visit(self, row), f)
            }
        }

        impl $crate::layout::Field for $name {
            const BLANK: $name = $name::BLANK;

            fn value(&self) -> $crate::layout::FieldValue<'_> {
                $crate::layout::FieldValue::Bytes($crate::layout::Pod::as_bytes(self))
            }

            fn visit_as(
                &self,
                _: &'static str,
                f: &mut dyn FnMut(&'static str, $crate::layout::FieldValue<'_>),
            ) {
                $crate::layout::Fields::visit(self, f);
            }
        }
    };
}

/// Declares the values of a one-byte code as a table: an enum with `from_wire`, `ALL` and a conversion to
/// [`Char`].
#[macro_export]
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident { $($(#[$row_meta:meta])* $value:literal => $variant:ident;)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        $vis enum $name { $($(#[$row_meta])* $variant = $value),* }

        impl $name {
            /// Every value.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The value of this byte, `None` if the specification has none.
            #[inline(always)]
            pub const fn from_wire(byte: u8) -> Option<$name> {
                match byte {
                    $($value => Some($name::$variant),)*
                    _ => None,
                }
            }
        }

        impl From<$name> for $crate::layout::Char {
            #[inline]
            fn from(code: $name) -> $crate::layout::Char {
                $crate::layout::Char(code as u8)
            }
        }
    };
}
