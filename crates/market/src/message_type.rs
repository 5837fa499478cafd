//! The venue's own type of a message, as a number.

use core::fmt;

/// A venue's message type: `A` of ITCH is 0x41, `0x21` of PITCH 0x21, template 46 of MDP 3.0 is 46, category
/// and type `QF` of a SIP 0x5146, template 3610 of MOEX 3610. How the venue writes it is a [`TypeForm`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct MessageType(pub u16);

/// How a venue writes its message types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TypeForm {
    /// One character: ITCH.
    Letter,
    /// Category and type, a character each: CQS, UQDF.
    Letters,
    /// Hexadecimal: PITCH.
    Hex,
    /// Decimal: XDP, OpenBook, MDP 3.0, MOEX.
    Decimal,
}

impl MessageType {
    /// A type of category and type, as CQS and UQDF have them.
    #[inline(always)]
    pub const fn of_letters(category: u8, kind: u8) -> MessageType {
        MessageType(u16::from_be_bytes([category, kind]))
    }

    /// As the venue writes it.
    pub const fn written(self, form: TypeForm) -> impl fmt::Display {
        Written(self, form)
    }
}

/// A type and how to write it.
struct Written(MessageType, TypeForm);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Written(MessageType(number), form) = *self;
        let [category, kind] = number.to_be_bytes();
        let is_text = |byte: u8| byte.is_ascii_graphic();
        match form {
            TypeForm::Letter if category == 0 && is_text(kind) => {
                f.pad(char::from(kind).encode_utf8(&mut [0; 4]))
            }
            TypeForm::Letters if is_text(category) && is_text(kind) => {
                f.pad(core::str::from_utf8(&[category, kind]).unwrap_or_default())
            }
            TypeForm::Decimal => fmt::Display::fmt(&number, f),
            _ => write!(f, "0x{number:02X}"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn types_are_written_as_their_venue_does() {
        let written = |number, form| MessageType(number).written(form).to_string();
        assert_eq!(written(0x41, TypeForm::Letter), "A");
        assert_eq!(written(7, TypeForm::Letter), "0x07");
        assert_eq!(written(0x21, TypeForm::Hex), "0x21");
        assert_eq!(written(46, TypeForm::Decimal), "46");
        assert_eq!(MessageType::of_letters(b'Q', b'F'), MessageType(0x5146));
        assert_eq!(written(0x5146, TypeForm::Letters), "QF");
        assert_eq!(written(3610, TypeForm::Decimal), "3610");
        let padded = std::format!("{:>4}|", MessageType(0x41).written(TypeForm::Letter));
        assert_eq!(padded, "   A|");
    }
}
