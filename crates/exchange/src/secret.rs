//! What clients send without their passwords, so that a journal never has one.
//!
//! Where a journal is kept, the bytes of a client go through a [`Mask`] before the market sees them and
//! before they are written down. In a login of OUCH (SoupBinTCP 3.00, "Login Request Packet") the password is
//! compared here and [`HIDDEN`] or [`WRONG`] takes its place; the market's own ports have [`HIDDEN`] for a
//! password, so that a replay admits whom the market admitted, also when the password has changed since, and
//! nothing in the file leads back to it. In FIX the values of Password (554), NewPassword (925), RawData
//! (96), EncryptedPassword (1402) and EncryptedNewPassword (1404) become stars of the same number, and
//! CheckSum (10) what it has to be for them.
//!
//! Bytes come as the network cut them. A login is held back until its password is whole, at most [`LOGIN`]
//! bytes, and a checksum until its end; everything else passes at once.

use alloc::vec::Vec;

use tickwire_wire::layout::Alpha;

/// A password that was the right one, and the one that a port asks for: in a journal, and where a
/// configuration is shown.
pub const HIDDEN: Alpha<10> = Alpha(*b"*hidden*  ");
/// A password that was not the right one.
pub const WRONG: Alpha<10> = Alpha(*b"*wrong*   ");

const SOH: u8 = 1;
/// Length, type, user name: what comes before the password of a login.
const BEFORE_PASSWORD: usize = 9;
/// And with the password.
const LOGIN: usize = BEFORE_PASSWORD + 10;
/// A data field longer than this is masked up to its separator alone: a length that is none must not have
/// whole orders masked.
const DATA_MAX: u32 = 4096;

/// Who may log in, and with what; spaces: nothing is asked for.
pub type Credentials = (Alpha<6>, Alpha<10>);

/// Takes passwords out of what one connection sends. See the description at the top of this file.
#[derive(Clone, Debug)]
pub enum Mask {
    /// Of FIX.
    Fix(FixMask),
    /// Of OUCH over SoupBinTCP.
    Ouch(OuchMask),
}

impl Mask {
    /// For a connection of FIX.
    pub fn fix() -> Mask {
        Mask::Fix(FixMask::default())
    }

    /// For a connection of OUCH.
    pub fn ouch(users: Vec<Credentials>) -> Mask {
        Mask::Ouch(OuchMask {
            users,
            held: Vec::with_capacity(LOGIN),
            left: 0,
        })
    }

    /// Adds to `out` what has come, without passwords, but for what is held back.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Mask::Fix(mask) => bytes.iter().for_each(|byte| mask.take(*byte, out)),
            Mask::Ouch(mask) => mask.feed(bytes, out),
        }
    }
}

/// See [`Mask::Ouch`].
#[derive(Clone)]
pub struct OuchMask {
    users: Vec<Credentials>,
    /// The beginning of a packet.
    held: Vec<u8>,
    /// Bytes of a packet that pass as they are.
    left: usize,
}

impl core::fmt::Debug for OuchMask {
    /// Without passwords.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "OuchMask({} users)", self.users.len())
    }
}

impl OuchMask {
    fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while let Some((&first, rest)) = bytes.split_first() {
            if self.left > 0 {
                let (now, later) = bytes.split_at(self.left.min(bytes.len()));
                out.extend_from_slice(now);
                self.left -= now.len();
                bytes = later;
                continue;
            }
            self.held.push(first);
            bytes = rest;
            let [high, low, after @ ..] = &self.held[..] else {
                continue;
            };
            let whole = 2 + usize::from(u16::from_be_bytes([*high, *low]));
            let wanted = match after.first() {
                None => 3,
                Some(b'L') => LOGIN,
                Some(_) => 3,
            };
            if self.held.len() < wanted.min(whole) {
                continue;
            }
            if after.first() == Some(&b'L') {
                self.hide();
            }
            self.left = whole - self.held.len();
            out.append(&mut self.held);
        }
    }

    /// Compares the password of the login that is held, and puts in its place what came of it.
    fn hide(&mut self) {
        let same = |a: &[u8], b: &[u8]| a.trim_ascii().eq_ignore_ascii_case(b.trim_ascii());
        let split = BEFORE_PASSWORD.min(self.held.len());
        let (head, password) = self.held.split_at_mut(split);
        let username = head.get(3..).unwrap_or_default();
        let is_right = self.users.iter().any(|(user, asked)| {
            same(&user.0, username) && (asked.trimmed().is_empty() || same(&asked.0, password))
        });
        let mark = if is_right { HIDDEN } else { WRONG };
        let length = password.len();
        password.copy_from_slice(&mark.0[..length]);
    }
}

/// See [`Mask::Fix`].
#[derive(Clone, Debug, Default)]
pub struct FixMask {
    tag: u32,
    is_in_value: bool,
    /// Bytes of a data field that are still to come, whatever they are.
    data: u32,
    /// The value of the last length field.
    length: u32,
    /// By how much the sum of the message's bytes has changed.
    delta: u8,
    /// Digits of a checksum.
    digits: Vec<u8>,
}

impl FixMask {
    fn is_secret(&self) -> bool {
        matches!(self.tag, 554 | 925 | 96 | 1402 | 1404)
    }

    fn is_data(&self) -> bool {
        matches!(self.tag, 96 | 1402 | 1404)
    }

    fn is_length(&self) -> bool {
        matches!(self.tag, 95 | 1401 | 1403)
    }

    fn star(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.delta = self.delta.wrapping_add(b'*').wrapping_sub(byte);
        out.push(b'*');
    }

    fn take(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.data > 0 {
            self.data -= 1;
            return self.star(byte, out);
        }
        if !self.is_in_value {
            return self.take_tag(byte, out);
        }
        if byte != SOH {
            match self.tag {
                // Not a checksum: such bytes pass as they are.
                10 if self.digits.len() >= 3 => {
                    out.append(&mut self.digits);
                    out.push(byte);
                    self.tag = 0;
                }
                10 => self.digits.push(byte),
                _ if self.is_secret() => self.star(byte, out),
                _ => {
                    if self.is_length() {
                        let digit = u32::from(byte.wrapping_sub(b'0'));
                        self.length = match digit {
                            0..=9 => self.length.saturating_mul(10).saturating_add(digit),
                            _ => u32::MAX,
                        };
                    }
                    out.push(byte);
                }
            }
            return;
        }
        if self.tag == 10 {
            self.end_message(out);
        }
        out.push(SOH);
        (self.tag, self.is_in_value) = (0, false);
    }

    fn take_tag(&mut self, byte: u8, out: &mut Vec<u8>) {
        out.push(byte);
        match byte {
            b'0'..=b'9' => {
                self.tag = self.tag.saturating_mul(10).saturating_add(u32::from(byte - b'0'));
            }
            b'=' => {
                self.is_in_value = true;
                match self.tag {
                    8 => self.delta = 0,
                    _ if self.is_length() => self.length = 0,
                    _ if self.is_data() && self.length <= DATA_MAX => {
                        self.data = core::mem::take(&mut self.length);
                    }
                    _ => {}
                }
            }
            _ => self.tag = 0,
        }
    }

    /// A checksum for what was made of the message: right if it was, and wrong if it was.
    fn end_message(&mut self, out: &mut Vec<u8>) {
        let digits = core::mem::take(&mut self.digits);
        let delta = core::mem::take(&mut self.delta);
        match digits[..] {
            [a, b, c] if delta != 0 && digits.iter().all(u8::is_ascii_digit) => {
                let [a, b, c] = [a, b, c].map(|digit| u32::from(digit - b'0'));
                let sum = 100 * a + 10 * b + c;
                let sum = match u8::try_from(sum) {
                    Ok(sum) => u32::from(sum.wrapping_add(delta)),
                    Err(_) => sum,
                };
                for part in [sum / 100, sum / 10 % 10, sum % 10] {
                    out.push(b'0' + part as u8);
                }
            }
            _ => out.extend_from_slice(&digits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec;

    /// The same, however it is cut in two; what comes out.
    fn masked(new: impl Fn() -> Mask, bytes: &[u8]) -> Vec<u8> {
        let mut whole = Vec::new();
        new().feed(bytes, &mut whole);
        for cut in 0..=bytes.len() {
            let (mut mask, mut parts) = (new(), Vec::new());
            mask.feed(&bytes[..cut], &mut parts);
            mask.feed(&bytes[cut..], &mut parts);
            assert_eq!(parts, whole, "cut at {cut}");
        }
        let (mut mask, mut single) = (new(), Vec::new());
        bytes.iter().for_each(|byte| mask.feed(&[*byte], &mut single));
        assert_eq!(single, whole);
        whole
    }

    fn message(body: &str) -> Vec<u8> {
        let body = body.replace('|', "\u{1}");
        let text = format!("8=FIX.4.4\u{1}9={}\u{1}{body}", body.len());
        let sum = text.bytes().fold(0_u8, u8::wrapping_add);
        format!("{text}10={sum:03}\u{1}").into_bytes()
    }

    fn shown(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace('\u{1}', "|")
    }

    #[test]
    fn passwords_of_fix_become_stars_and_the_checksum_stays_right() {
        for (body, hidden) in [
            (
                "35=A|49=A|553=ann|554=open sesame|925=x|",
                "35=A|49=A|553=ann|554=***********|925=*|",
            ),
            ("35=A|95=5|96=a|10=|108=30|", "35=A|95=5|96=*****|108=30|"),
            (
                "35=A|1401=3|1402=abc|1403=2|1404=de|",
                "35=A|1401=3|1402=***|1403=2|1404=**|",
            ),
            ("35=A|96=nolength|0554=zero|", "35=A|96=********|0554=****|"),
            ("35=A|95=99999|96=abc|11=1|", "35=A|95=99999|96=***|11=1|"),
            ("35=D|11=554|58=554=x|38=100|", "35=D|11=554|58=554=x|38=100|"),
        ] {
            let two = [message(body), message("35=0|")].concat();
            let expected = [message(hidden), message("35=0|")].concat();
            let got = masked(Mask::fix, &two);
            assert_eq!(shown(&got), shown(&expected));
        }
    }

    #[test]
    fn what_is_wrong_stays_wrong() {
        for garbled in [
            "8=FIX.4.4|9=5|35=A|554=secret|10=abc|",
            "8=FIX.4.4|9=5|35=A|554=secret|10=12|",
            "8=FIX.4.4|9=5|35=A|554=secret|10=1234567|",
            "garbage|554=secret|=|==|10=",
        ] {
            let bytes = garbled.replace('|', "\u{1}").into_bytes();
            let got = shown(&masked(Mask::fix, &bytes));
            let expected = garbled.replace("secret", "******");
            let expected = expected
                .strip_suffix("10=")
                .map_or(expected.clone(), |head| format!("{head}10="));
            assert_eq!(got, expected);
        }
        // A checksum that was one too large is so afterwards.
        let mut off = message("35=A|554=secret|");
        let at = off.len() - 2;
        off[at] = if off[at] == b'9' { b'8' } else { off[at] + 1 };
        let mut right = message("35=A|554=******|");
        right.truncate(right.len() - 4);
        assert!(masked(Mask::fix, &off).starts_with(&right));
        assert_ne!(masked(Mask::fix, &off), message("35=A|554=******|"));
    }

    fn login(username: &[u8; 6], password: &[u8; 10]) -> Vec<u8> {
        let mut packet = vec![0, 47, b'L'];
        packet.extend_from_slice(username);
        packet.extend_from_slice(password);
        packet.extend_from_slice(b"TICKWIRE01                   1");
        packet
    }

    #[test]
    fn a_login_of_ouch_says_whether_its_password_was_right_and_not_what_it_was() {
        let users = || {
            Mask::ouch(vec![
                (Alpha(*b"ALICE "), Alpha(*b"secret    ")),
                (Alpha(*b"BOB   "), Alpha(*b"          ")),
            ])
        };
        let order = [&[0, 4, b'U'][..], b"LLL"].concat();
        for (username, password, mark) in [
            (b"alice ", b"secret    ", HIDDEN),
            (b" alice", b"    SECRET", HIDDEN),
            (b"alice ", b"secret1   ", WRONG),
            (b"alice ", b"*hidden*  ", WRONG),
            (b"bob   ", b"anything  ", HIDDEN),
            (b"carol ", b"secret    ", WRONG),
        ] {
            // Two packets before and after, one of them empty.
            let bytes = [&[0, 0][..], &login(username, password), &order, &[0, 1, b'R']].concat();
            let expected = [&[0, 0][..], &login(username, &mark.0), &order, &[0, 1, b'R']].concat();
            assert_eq!(masked(users, &bytes), expected);
        }
        // A login that is too short to have a whole password.
        let short = [&[0, 12, b'L'][..], b"alice secre"].concat();
        let got = masked(users, &short);
        assert_eq!(&got[..9], &short[..9]);
        assert_eq!(&got[9..], b"*wron");
    }
}
