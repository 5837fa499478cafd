//! The field types and the table macro, also in the shapes of protocols that are not big-endian or not flat.

mod support;

use support::shown;
use tickwire_market::Price;
use tickwire_wire_core::layout::Pod;
use tickwire_wire_core::layout::{
    Alpha, Char, Digits, FieldValue, Fields, I64, Price4, Price8, Scaled, U32, U48, le, prefix,
};
use tickwire_wire_core::{Malformed, wire_enum, wire_struct};

wire_struct! {
    /// A header shared by messages of a little-endian protocol.
    pub struct Head = "Head", 6 {
        0 => length: u8, "Length";
        1 => kind: u8, "Type";
        2 => offset_ns: le::U32, "TimeOffset";
    }
}

wire_struct! {
    /// A message with a record inside, a narrow price and a signed one.
    pub struct Nested = "Nested", 27 {
        0 => head: Head, "Header";
        6 => symbol: Alpha<6>, "Symbol";
        12 => price: Scaled<le::U16, 2>, "Price";
        14 => change: Scaled<le::I64, 9>, "Change";
        22 => delta: i8, "Delta";
        23 => opaque: [u8; 4], "Opaque";
    }
}

wire_struct! {
    /// An entry of a repeating group that follows a [`Nested`].
    pub struct Entry = "Entry", 4 {
        0 => size: le::I32, "Size";
    }
}

wire_enum! {
    /// A code.
    pub enum Code {
        /// One.
        b'1' => One;
        /// Two.
        b'2' => Two;
    }
}

#[test]
fn a_record_inside_a_record_shows_its_own_fields() {
    let message = Nested {
        head: Head {
            length: 27,
            kind: 0x22,
            offset_ns: 5.into(),
        },
        symbol: Alpha::new(b"WIRE").unwrap(),
        price: Scaled(1234.into()),
        change: Scaled((-1_500_000_000).into()),
        delta: -3,
        opaque: [0xDE, 0xAD, 0, 1],
    };
    let expected = [
        ("Length", "27"),
        ("Type", "34"),
        ("TimeOffset", "5"),
        ("Symbol", "WIRE"),
        ("Price", "12.34"),
        ("Change", "-1.500000000"),
        ("Delta", "-3"),
        ("Opaque", "DEAD0001"),
    ];
    assert_eq!(
        shown(|f| message.visit(f)),
        expected.map(|(name, value)| (name, value.to_string()))
    );
    assert_eq!(&message.as_bytes()[..6], [27, 0x22, 5, 0, 0, 0]);
    assert_eq!((Nested::NAME, Nested::SIZE), ("Nested", 27));
}

#[test]
fn groups_are_read_one_entry_after_the_other() {
    let mut bytes = Nested::BLANK.as_bytes().to_vec();
    bytes.extend_from_slice(&[1, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 9]);
    let (_, rest) = prefix::<Nested>(&bytes).unwrap();
    let (first, rest) = prefix::<Entry>(rest).unwrap();
    let (second, rest) = prefix::<Entry>(rest).unwrap();
    assert_eq!((first.size.get(), second.size.get(), rest), (1, -2, &[9][..]));
    assert_eq!(
        prefix::<Entry>(rest),
        Err(Malformed::Truncated { need: 4, have: 1 })
    );
}

#[test]
fn a_blank_record_is_zeros_and_spaces() {
    assert_eq!(
        Nested::BLANK.as_bytes(),
        b"\0\0\0\0\0\0      \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    );
}

#[test]
fn forty_eight_bits_come_back() {
    for v in [0, 1, 34_199_999_894_278, U48::MAX] {
        assert_eq!(U48::new(v).get(), v);
    }
    assert_eq!(U48::new(0x0102_0304_0506).as_bytes(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn text_is_padded_with_spaces_and_read_without_padding() {
    assert_eq!(Alpha::<6>::new(b"ABC").unwrap().0, *b"ABC   ");
    assert_eq!(Alpha::<2>::new(b"ABC"), None);
    assert_eq!(
        (Alpha(*b" A B  ").trimmed(), Alpha(*b"A\0\0").trimmed()),
        (&b" A B"[..], &b"A"[..])
    );
    let symbol = Alpha(*b"WIRE    ").symbol().unwrap();
    assert_eq!(
        (symbol.as_str(), Alpha::<8>::from_symbol(&symbol)),
        ("WIRE", Some(Alpha(*b"WIRE    ")))
    );
    assert_eq!(
        (Alpha(*b"A\x01").symbol(), Alpha::<3>::from_symbol(&symbol)),
        (None, None)
    );
}

#[test]
fn ascii_numbers_are_read_with_either_padding_and_written_with_spaces() {
    assert_eq!(Digits::<5>::new(42).unwrap().0, *b"   42");
    assert_eq!(
        (Digits::<2>::new(99).map(|d| d.0), Digits::<2>::new(100)),
        (Some(*b"99"), None)
    );
    for (text, v) in [
        (*b"   42", Some(42)),
        (*b"00042", Some(42)),
        (*b"42   ", Some(42)),
        (*b"    0", Some(0)),
    ] {
        assert_eq!(Digits(text).get(), v);
    }
    for bad in [*b"     ", *b"4 2  ", *b"  -42", *b" 0x42", *b"\0\0\0\0\0"] {
        assert_eq!(Digits(bad).get(), None);
    }
    assert_eq!(Digits(*b"18446744073709551615").get(), Some(u64::MAX));
    assert_eq!(Digits(*b"18446744073709551616").get(), None);
    assert_eq!(Digits::<20>::new(u64::MAX).unwrap().get(), Some(u64::MAX));
}

#[test]
fn prices_are_exact_or_refused() {
    assert_eq!(Price4::new(873_900).price(), "87.39".parse().unwrap());
    assert_eq!(
        Price4::new(u32::MAX).checked_price(),
        Some(Price4::new(u32::MAX).price())
    );
    assert_eq!(
        Price4::from_price("87.39".parse().unwrap()),
        Some(Price4::new(873_900))
    );
    assert_eq!(
        Price4::from_price(Price::from_raw(1)),
        None,
        "finer than the field"
    );
    assert_eq!(
        Price4::from_price(Price::from_raw(-100_000)),
        None,
        "negative in an unsigned field"
    );
    assert_eq!(
        Scaled::<le::U16, 2>::from_price("655.36".parse().unwrap()),
        None,
        "one above the largest"
    );
    assert_eq!(Price8::new(u64::MAX).checked_price(), None);
    assert_eq!(Price8::new(150_000_000).checked_price(), "1.5".parse().ok());
    assert_eq!(
        Scaled::<I64, 9>(I64::new(i64::MIN)).checked_price(),
        Some(Price::from_raw(i64::MIN))
    );
}

#[test]
fn values_are_shown_in_full_and_what_is_not_text_is_escaped() {
    let decimal = |mantissa, decimals| FieldValue::Decimal { mantissa, decimals }.to_string();
    assert_eq!(
        (decimal(873_900, 4), decimal(-5, 1), decimal(7, 0)),
        ("87.3900".into(), "-0.5".into(), "7".into())
    );
    assert_eq!(decimal(u64::MAX.into(), 8), "184467440737.09551615");
    assert_eq!(FieldValue::Text(b"A\x01\xFF \0").to_string(), "A\\x01\\xff");
    assert_eq!(
        (
            FieldValue::Char(b' ').to_string(),
            FieldValue::Char(0).to_string()
        ),
        (" ".into(), "\\x00".into())
    );
    assert_eq!(FieldValue::Signed(-1).to_string(), "-1");
    assert_eq!(FieldValue::Null.to_string(), "null");
}

#[test]
fn codes_come_back_from_their_bytes() {
    assert_eq!(
        (Code::from_wire(b'2'), Code::from_wire(b'3')),
        (Some(Code::Two), None)
    );
    assert_eq!(
        (Char::from(Code::One), Code::ALL),
        (Char(b'1'), &[Code::One, Code::Two][..])
    );
    assert_eq!(U32::new(1).as_bytes(), [0, 0, 0, 1]);
}

#[test]
fn every_error_says_what_is_wrong() {
    for (error, text) in [
        (
            Malformed::truncated(36, 70_000),
            "truncated: needs 36 bytes, has 65535",
        ),
        (
            Malformed::length(b'L', 49, 3),
            "wrong length for type 0x4C: 3 bytes instead of 49",
        ),
        (Malformed::UnknownType(0), "unknown message type 0x00"),
        (Malformed::UnknownTemplate(99), "unknown message template 99"),
        (
            Malformed::BadValue {
                offset: 3,
                value: 0xFF,
            },
            "impossible value 0xFF at offset 3",
        ),
        (Malformed::Trailing { extra: 2 }, "2 bytes after the last message"),
        (
            Malformed::OutOfRange { offset: 8 },
            "number out of range at offset 8",
        ),
        (
            Malformed::Checksum { expected: 1, have: 2 },
            "checksum is 0x0002, the bytes sum to 0x0001",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
}
