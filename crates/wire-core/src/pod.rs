//! Layouts in place: the one file of the wire crates with `unsafe` code, and its proof.
//!
//! A type of [`Pod`] (plain old data) is nothing but bytes: any bytes are a value, and a value is all of its
//! bytes. Then a reference to bytes may be read as one to the type ([`prefix`], [`slice_prefix`]), and back
//! ([`Pod::as_bytes`]). Integers of the wire and texts are such types by hand, below; structs become such by
//! [`wire_struct!`](crate::wire_struct) and [`wire_layout!`](crate::wire_layout), which refuse, while
//! compiling, what does not meet the obligations.
#![allow(unsafe_code, reason = "each use has its proof beside it; ADR 9")]

use core::slice;

use crate::Malformed;
use crate::layout::{Alpha, Char, Digits, Scaled, U48};
use crate::nullable::{Nullable, Optional, Text};

/// A type that is nothing but its bytes.
///
/// ```
/// use tickwire_wire_core::layout::{Pod, U32};
/// assert_eq!(U32::new(0x0102_0304).as_bytes(), [1, 2, 3, 4]);
/// ```
///
/// # Safety
/// * Every pattern of `size_of::<Self>()` initialised bytes is a value.
/// * Its alignment is 1.
/// * It has no padding: all bytes of a value are initialised.
/// * It holds no reference and no cell.
pub unsafe trait Pod: Copy + 'static {
    /// The bytes of the value, as they go onto the wire.
    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        // SAFETY: the pointer is that of a live reference and `size_of` bytes lie behind it; all of them are
        // initialised (no padding), none changes while `self` is borrowed (no cell), and bytes need no
        // alignment.
        unsafe { slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }

    /// The bytes of the value, to be overwritten.
    #[inline(always)]
    fn as_mut_bytes(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_bytes`; the borrow is exclusive, and whatever bytes are written are a value.
        unsafe { slice::from_raw_parts_mut(core::ptr::from_mut(self).cast(), size_of::<Self>()) }
    }
}

/// Reads the start of `bytes` as a `T` without copying; also gives what follows it.
#[inline(always)]
pub fn prefix<T: Pod>(bytes: &[u8]) -> Result<(&T, &[u8]), Malformed> {
    match split::<T>(bytes) {
        Some(found) => Ok(found),
        None => Err(Malformed::truncated(size_of::<T>(), bytes.len())),
    }
}

/// As [`prefix`], without saying what is wrong: quicker, as nothing but the layout goes through the result.
#[inline(always)]
pub fn split<T: Pod>(bytes: &[u8]) -> Option<(&T, &[u8])> {
    let (head, rest) = bytes.split_at_checked(size_of::<T>())?;
    // SAFETY: `head` is `size_of::<T>()` initialised bytes, borrowed as long as the result; a `T` needs no
    // alignment, any bytes are one, and it has no cell through which they could change.
    Some((unsafe { &*head.as_ptr().cast::<T>() }, rest))
}

/// As [`split`], to write.
#[inline(always)]
pub fn split_mut<T: Pod>(bytes: &mut [u8]) -> Option<(&mut T, &mut [u8])> {
    let (head, rest) = bytes.split_at_mut_checked(size_of::<T>())?;
    // SAFETY: as in `split`; the borrow is exclusive, and the bytes of any `T` written are initialised (no
    // padding).
    Some((unsafe { &mut *head.as_mut_ptr().cast::<T>() }, rest))
}

/// Reads the start of `bytes` as `count` of `T` without copying; also gives what follows them.
#[inline(always)]
pub fn slice_prefix<T: Pod>(bytes: &[u8], count: usize) -> Option<(&[T], &[u8])> {
    let size = size_of::<T>().checked_mul(count)?;
    let (head, rest) = bytes.split_at_checked(size)?;
    // SAFETY: `head` is initialised bytes of `count` times the size of `T`, borrowed as long as the result;
    // the rest as in `split`.
    Some((
        unsafe { slice::from_raw_parts(head.as_ptr().cast::<T>(), count) },
        rest,
    ))
}

/// The bytes of several layouts, one behind the other, as they go onto the wire.
#[inline(always)]
pub fn slice_bytes<T: Pod>(layouts: &[T]) -> &[u8] {
    // SAFETY: the slice is a live reference to as many bytes, all of them initialised (no padding); none
    // changes while it is borrowed (no cell).
    unsafe { slice::from_raw_parts(layouts.as_ptr().cast(), size_of_val(layouts)) }
}

// SAFETY: a byte, of which every pattern is a value.
unsafe impl Pod for u8 {}
// SAFETY: as `u8`.
unsafe impl Pod for i8 {}
// SAFETY: an array is its elements, one behind the other.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}
// SAFETY: transparent over an array of bytes; any bytes are a number.
unsafe impl Pod for U48 {}
// SAFETY: transparent over a byte.
unsafe impl Pod for Char {}
// SAFETY: transparent over an array of bytes, which are not required to be text.
unsafe impl<const N: usize> Pod for Alpha<N> {}
// SAFETY: transparent over an array of bytes, which are not required to be digits.
unsafe impl<const N: usize> Pod for Digits<N> {}
// SAFETY: transparent over an array of bytes, which are not required to be text.
unsafe impl<const N: usize> Pod for Text<N> {}
// SAFETY: transparent over a `Pod`.
unsafe impl<T: Pod, const DECIMALS: u8> Pod for Scaled<T, DECIMALS> {}
// SAFETY: transparent over a `Pod`, as every `Nullable` is one.
unsafe impl<T: Nullable> Pod for Optional<T> {}

macro_rules! integers {
    ($($(#[$meta:meta])* $name:ident = $native:ident [$($wider:ident)*], $from:ident, $to:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[repr(transparent)]
        pub struct $name([u8; size_of::<$native>()]);

        // SAFETY: transparent over an array of bytes; any bytes are a number.
        unsafe impl Pod for $name {}

        impl $name {
            /// Zero.
            pub const ZERO: $name = $name([0; size_of::<$native>()]);
            /// The largest value.
            pub const MAX_VALUE: $name = $name::new($native::MAX);

            /// The field of a number.
            #[inline(always)]
            pub const fn new(v: $native) -> $name {
                $name(v.$to())
            }

            /// Makes it the field of a number.
            #[inline(always)]
            pub const fn set(&mut self, v: $native) {
                *self = $name::new(v);
            }

            /// The number.
            #[inline(always)]
            pub const fn get(self) -> $native {
                $native::$from(self.0)
            }
        }

        impl From<$native> for $name {
            #[inline(always)]
            fn from(v: $native) -> $name {
                $name::new(v)
            }
        }

        impl From<$name> for $native {
            #[inline(always)]
            fn from(v: $name) -> $native {
                v.get()
            }
        }

        $(impl From<$name> for $wider {
            #[inline(always)]
            fn from(v: $name) -> $wider {
                v.get().into()
            }
        })*

        impl PartialEq<$native> for $name {
            #[inline(always)]
            fn eq(&self, other: &$native) -> bool {
                self.get() == *other
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &$name) -> Option<core::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &$name) -> core::cmp::Ordering {
                self.get().cmp(&other.get())
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}({})", stringify!($name), self.get())
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.get().fmt(f)
            }
        }
    )*};
}

integers! {
    /// Unsigned, 16 bits, big-endian.
    U16 = u16 [u32 u64 usize], from_be_bytes, to_be_bytes;
    /// Unsigned, 32 bits, big-endian.
    U32 = u32 [u64], from_be_bytes, to_be_bytes;
    /// Unsigned, 64 bits, big-endian.
    U64 = u64 [], from_be_bytes, to_be_bytes;
    /// Signed, 16 bits, big-endian.
    I16 = i16 [i32 i64], from_be_bytes, to_be_bytes;
    /// Signed, 32 bits, big-endian.
    I32 = i32 [i64], from_be_bytes, to_be_bytes;
    /// Signed, 64 bits, big-endian.
    I64 = i64 [], from_be_bytes, to_be_bytes;
}

/// Little-endian integers, named like their big-endian siblings.
pub mod le {
    use super::Pod;

    integers! {
        /// Unsigned, 16 bits, little-endian.
        U16 = u16 [u32 u64 usize], from_le_bytes, to_le_bytes;
        /// Unsigned, 32 bits, little-endian.
        U32 = u32 [u64], from_le_bytes, to_le_bytes;
        /// Unsigned, 64 bits, little-endian.
        U64 = u64 [], from_le_bytes, to_le_bytes;
        /// Signed, 16 bits, little-endian.
        I16 = i16 [i32 i64], from_le_bytes, to_le_bytes;
        /// Signed, 32 bits, little-endian.
        I32 = i32 [i64], from_le_bytes, to_le_bytes;
        /// Signed, 64 bits, little-endian.
        I64 = i64 [], from_le_bytes, to_le_bytes;
    }
}

/// Declares a struct of layouts, one field behind the other, as a layout itself: what
/// [`wire_struct!`](crate::wire_struct) is made of, for types that show themselves in a way of their own.
///
/// ```
/// use tickwire_wire_core::layout::{U32, prefix};
/// tickwire_wire_core::wire_layout! {
///     /// Seconds and nanoseconds.
///     #[derive(PartialEq, Debug)]
///     pub struct Time {
///         /// Since the Unix epoch.
///         pub seconds: U32,
///         /// Below a thousand million.
///         pub nanos: U32,
///     }
/// }
/// let (time, _) = prefix::<Time>(&[0, 0, 0, 9, 0, 0, 0, 7]).unwrap();
/// assert_eq!((time.seconds.get(), time.nanos.get()), (9, 7));
/// ```
///
/// A field that is not such a layout is refused:
/// ```compile_fail
/// tickwire_wire_core::wire_layout! {
///     /// A bool is 0 or 1 and no other byte.
///     pub struct Flags { pub first: bool }
/// }
/// ```
/// and so is a larger alignment, with the padding that it could bring:
/// ```compile_fail
/// tickwire_wire_core::wire_layout! {
///     /// Padded.
///     #[repr(align(4))]
///     pub struct Padded { pub first: u8 }
/// }
/// ```
#[macro_export]
macro_rules! wire_layout {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident { $($(#[$row_meta:meta])* pub $field:ident: $ty:ty),* $(,)? }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        $vis struct $name { $($(#[$row_meta])* pub $field: $ty),* }

        $crate::wire_layout!(@prove $name: $($ty),*);
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident(pub $ty:ty);) => {
        $(#[$meta])*
        #[repr(transparent)]
        $vis struct $name(pub $ty);

        $crate::wire_layout!(@prove $name: $ty);
    };
    (@prove $name:ident: $($ty:ty),*) => {
        const _: () = {
            const fn is_layout<T: $crate::layout::Pod>() -> usize {
                size_of::<T>()
            }
            assert!(align_of::<$name>() == 1, concat!(stringify!($name), " must be readable anywhere in a packet"));
            assert!(size_of::<$name>() == 0 $(+ is_layout::<$ty>())*, concat!(stringify!($name), " has padding"));
        };

        // SAFETY: every field is a `Pod` (`is_layout`) and all bytes belong to fields (the sum of sizes), so
        // any bytes are a value, none is padding, none a reference or a cell; the alignment is 1. Shown by
        // the assertions above.
        unsafe impl $crate::layout::Pod for $name {}

        impl Copy for $name {}

        impl Clone for $name {
            #[inline(always)]
            fn clone(&self) -> $name {
                *self
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_keep_to_the_bytes_that_they_were_made_of() {
        let bytes: [u8; 7] = [1, 2, 3, 4, 5, 6, 7];
        for start in 0..bytes.len() {
            let bytes = &bytes[start..];
            let found = split::<U32>(bytes);
            assert_eq!(found.is_some(), bytes.len() >= 4);
            if let Some((n, rest)) = found {
                assert_eq!((n.as_bytes(), rest), bytes.split_at(4));
                assert_eq!(
                    n.get(),
                    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
                );
            }
            assert_eq!(prefix::<U32>(bytes).is_ok(), bytes.len() >= 4);
        }
        assert_eq!(prefix::<U32>(&bytes[..3]), Err(Malformed::truncated(4, 3)));
    }

    #[test]
    fn slices_are_as_long_as_asked_and_never_beyond_the_bytes() {
        let bytes = [0, 1, 0, 2, 0, 3, 9];
        let (three, rest) = slice_prefix::<U16>(&bytes, 3).unwrap();
        assert_eq!(
            (three, rest),
            (&[U16::new(1), U16::new(2), U16::new(3)][..], &[9][..])
        );
        assert_eq!(slice_bytes(three), &bytes[..6]);
        assert_eq!(slice_prefix::<U16>(&bytes, 0).unwrap().1, bytes);
        assert!(slice_prefix::<U16>(&bytes, 4).is_none());
        assert!(
            slice_prefix::<U16>(&bytes, usize::MAX).is_none(),
            "the size overflows"
        );
        assert_eq!(slice_prefix::<[u8; 0]>(&bytes, 5).unwrap().0.len(), 5);
    }

    #[test]
    fn what_is_written_through_a_reference_is_in_the_bytes() {
        let mut bytes = [0xFF; 6];
        let (n, rest) = split_mut::<le::U32>(&mut bytes).unwrap();
        *n = le::U32::new(7);
        rest[0] = 8;
        assert_eq!(bytes, [7, 0, 0, 0, 8, 0xFF]);
        let (n, _) = split_mut::<U16>(&mut bytes[1..]).unwrap();
        n.as_mut_bytes()[1] = 5;
        assert_eq!(bytes, [7, 0, 5, 0, 8, 0xFF]);
        assert!(split_mut::<U16>(&mut bytes[5..]).is_none());
    }

    #[test]
    fn integers_stand_on_the_wire_in_their_order() {
        assert_eq!(I32::new(-2).as_bytes(), [0xFF, 0xFF, 0xFF, 0xFE]);
        assert_eq!(le::I32::new(-2).as_bytes(), [0xFE, 0xFF, 0xFF, 0xFF]);
        assert_eq!(
            (U16::MAX_VALUE.get(), le::I64::MAX_VALUE.get()),
            (u16::MAX, i64::MAX)
        );
        assert!(
            le::U16::new(0x0100) > le::U16::new(0x00FF),
            "by value, not by bytes"
        );
        assert_eq!(extern_format(&U64::new(7)), ("U64(7)".into(), "7".into()));
    }

    fn extern_format(n: &U64) -> (alloc::string::String, alloc::string::String) {
        (alloc::format!("{n:?}"), alloc::format!("{n}"))
    }
}
