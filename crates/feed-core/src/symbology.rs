//! One name for an instrument on every venue: [`consolidated`].
//!
//! The venues of US equities write the same share in three ways. Nasdaq's "Ticker Symbol Convention"
//! (nasdaqtrader.com, `Trader.aspx?id=CQSSymbolConvention`) sets them beside each other; class A stands for
//! any letter:
//!
//! | | consolidated | NYSE group | CQS |
//! |---|---|---|---|
//! | common | `F` | `F` | `F` |
//! | class A | `BRK.A` | `BRK A` | `BRK/A` |
//! | preferred; class A | `TY-` `BAC-A` | `TY PR` `BAC PRA` | `TYp` `BACpA` |
//! | warrants; class A | `OXY+` `TDW+A` | `OXY WS` `TDW WSA` | `OXY/WS` `TDW/WS/A` |
//! | rights, units | `GLO^` `GRP=` | `GLO RT` `GRP U` | `GLOr` `GRP/U` |
//! | when issued, when distributed | `#` `$` | `WI` `WD` | `w` `/WD` |
//! | called, convertible, partly paid | `*` `%` `@` | `CL` `CV` `PP` | `/CL` `/CV` `/PP` |
//! | emerging company marketplace | `!` | `EC` | `/EC` |
//! | test | `~` | `TEST` | `/TEST` |
//!
//! What is said further about a share follows its kind: `BAC PRAWI`, `BACpAw` and `BAC-A#` are one preferred
//! share of class A, when issued.
//!
//! - **Consolidated** is Nasdaq's integrated platform suffix: what ITCH and UQDF, and Cboe's PITCH, write. It
//!   has no space, no slash and no small letter, so nothing of another convention looks like it.
//! - **NYSE group** (XDP, OpenBook) is CMS: the root, one space, the suffix. A single `U` is units, not class
//!   U.
//! - **CQS** is that of the CTA plan. A point stands where a slash does in some of its uses, and is taken for
//!   one.
//!
//! Nasdaq-listed shares have a fifth letter and no suffix (`GOOGL`): they are the same everywhere.

use tickwire_market::{Symbol, Venue};

/// The consolidated symbol of what a venue calls `symbol`; `None` when it is not of the venue's convention:
/// such an instrument has a book of its own and is in no consolidated book. Same symbol, same share; the
/// other way round too.
///
/// CME's symbols stay as they are: they have a digit, which those of shares have not. The Moscow Exchange has
/// tickers that New York has too (`T`): its are `moex:T`.
pub fn consolidated(venue: Venue, symbol: &Symbol) -> Option<Symbol> {
    let text = symbol.as_bytes();
    if text.is_empty() {
        return None;
    }
    let mut out = Text::default();
    match venue {
        Venue::Nasdaq
        | Venue::NasdaqTexas
        | Venue::Psx
        | Venue::Bzx
        | Venue::Byx
        | Venue::Edga
        | Venue::Edgx
        | Venue::Uqdf => {
            let (root, suffix) = split_root(text)?;
            let (kind, more) = integrated(suffix)?;
            out.share(root, kind, more)?;
        }
        Venue::Nyse | Venue::Arca | Venue::American | Venue::National | Venue::NyseTexas => {
            let (root, suffix) = split_root(text)?;
            let (kind, more) = match suffix {
                [] => (Kind::Common, More::default()),
                [b' ', suffix @ ..] if !suffix.is_empty() => cms(suffix)?,
                _ => return None,
            };
            out.share(root, kind, more)?;
        }
        Venue::Cqs => {
            let (root, suffix) = split_root(text)?;
            let (kind, more) = cqs(suffix)?;
            out.share(root, kind, more)?;
        }
        Venue::Cme => return text.iter().any(u8::is_ascii_digit).then_some(*symbol),
        Venue::Moex => {
            out.push(b"moex:")?;
            out.push(text)?;
        }
    }
    Symbol::new(&out.bytes[..out.len])
}

/// What a share is. Its class, where it has one, is a capital letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Common,
    Class(u8),
    Preferred(Option<u8>),
    Warrants(Option<u8>),
    Rights,
    Units,
    Test,
}

/// What is said further, each at most once, in this order: by index into [`MORE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct More([Option<u8>; 2]);

/// What may be said further: consolidated, CMS, CQS after its slash (when issued is a letter without one).
const MORE: [(u8, &[u8], &[u8]); 6] = [
    (b'%', b"CV", b"CV"),
    (b'$', b"WD", b"WD"),
    (b'*', b"CL", b"CL"),
    (b'#', b"WI", b""),
    (b'!', b"EC", b"EC"),
    (b'@', b"PP", b"PP"),
];

impl More {
    /// Reads all of `rest` with a reader of one; convertible comes first, if it does, then one other.
    fn read(mut rest: &[u8], one: impl Fn(&[u8]) -> Option<(usize, usize)>) -> Option<More> {
        let mut more = More::default();
        for nth in 0..2 {
            if rest.is_empty() {
                break;
            }
            let (index, len) = one(rest)?;
            if nth == 1 && (more.0[0] != Some(0) || index == 0) {
                return None;
            }
            more.0[nth] = Some(index as u8);
            rest = rest.get(len..)?;
        }
        rest.is_empty().then_some(more)
    }
}

/// Capital letters, and the rest.
fn split_root(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = text.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    (len > 0).then(|| text.split_at(len))
}

/// A class, if there is one, and the rest.
fn class(text: &[u8]) -> (Option<u8>, &[u8]) {
    match text {
        [class @ b'A'..=b'Z', rest @ ..] => (Some(*class), rest),
        _ => (None, text),
    }
}

fn integrated(suffix: &[u8]) -> Option<(Kind, More)> {
    let (kind, rest) = match suffix {
        [b'~'] => (Kind::Test, &[][..]),
        [b'.', class @ b'A'..=b'Z', rest @ ..] => (Kind::Class(*class), rest),
        [b'-', rest @ ..] => {
            let (class, rest) = class(rest);
            (Kind::Preferred(class), rest)
        }
        [b'+', rest @ ..] => {
            let (class, rest) = class(rest);
            (Kind::Warrants(class), rest)
        }
        [b'^', rest @ ..] => (Kind::Rights, rest),
        [b'=', rest @ ..] => (Kind::Units, rest),
        rest => (Kind::Common, rest),
    };
    let one = |rest: &[u8]| Some((MORE.iter().position(|more| rest[0] == more.0)?, 1));
    Some((kind, More::read(rest, one)?))
}

/// The suffix after the space. Letters follow one another without a sign between them: what can be read as
/// something said further is that, and a class only otherwise. So `PRWI` is a preferred share when issued,
/// and `PRW` one of class W.
fn cms(suffix: &[u8]) -> Option<(Kind, More)> {
    let more = |rest: &[u8]| {
        More::read(rest, |rest| {
            let index = MORE.iter().position(|more| rest.starts_with(more.1))?;
            Some((index, MORE[index].1.len()))
        })
    };
    let with_class = |rest: &[u8], kind: fn(Option<u8>) -> Kind| {
        let plain = more(rest).map(|more| (kind(None), more));
        plain.or_else(|| {
            let (class, rest) = class(rest);
            Some((kind(Some(class?)), more(rest)?))
        })
    };
    match suffix {
        b"TEST" => return Some((Kind::Test, More::default())),
        [b'P', b'R', rest @ ..] => return with_class(rest, Kind::Preferred),
        [b'W', b'S', rest @ ..] => return with_class(rest, Kind::Warrants),
        [b'R', b'T', rest @ ..] => return Some((Kind::Rights, more(rest)?)),
        _ => {}
    }
    if let Some(more) = more(suffix) {
        return Some((Kind::Common, more));
    }
    match suffix {
        [b'U', rest @ ..] => Some((Kind::Units, more(rest)?)),
        [class @ b'A'..=b'Z', rest @ ..] => Some((Kind::Class(*class), more(rest)?)),
        _ => None,
    }
}

fn cqs(suffix: &[u8]) -> Option<(Kind, More)> {
    let (kind, rest) = match suffix {
        [b'p', rest @ ..] => {
            let (class, rest) = class(rest);
            (Kind::Preferred(class), rest)
        }
        [b'r', rest @ ..] => (Kind::Rights, rest),
        [b'/' | b'.', rest @ ..] => after_slash(suffix, rest),
        rest => (Kind::Common, rest),
    };
    let one = |rest: &[u8]| match rest {
        [b'w', ..] => Some((3, 1)),
        [b'/' | b'.', rest @ ..] => {
            let index = MORE
                .iter()
                .position(|more| !more.2.is_empty() && rest.starts_with(more.2))?;
            Some((index, 1 + MORE[index].2.len()))
        }
        _ => None,
    };
    Some((kind, More::read(rest, one)?))
}

/// The kind that a first slash says, and what comes after; a common share if it says something further
/// instead.
fn after_slash<'a>(suffix: &'a [u8], rest: &'a [u8]) -> (Kind, &'a [u8]) {
    match rest {
        b"TEST" => (Kind::Test, &[]),
        [b'W', b'S', b'/' | b'.', class @ b'A'..=b'Z', rest @ ..] if !rest.first().is_some_and(is_letter) => {
            (Kind::Warrants(Some(*class)), rest)
        }
        [b'W', b'S', rest @ ..] => (Kind::Warrants(None), rest),
        [b'U', rest @ ..] if !rest.first().is_some_and(is_letter) => (Kind::Units, rest),
        [class @ b'A'..=b'Z', rest @ ..] if !rest.first().is_some_and(is_letter) => {
            (Kind::Class(*class), rest)
        }
        _ => (Kind::Common, suffix),
    }
}

fn is_letter(byte: &u8) -> bool {
    byte.is_ascii_uppercase()
}

/// A symbol that is being written.
#[derive(Default)]
struct Text {
    bytes: [u8; 23],
    len: usize,
}

impl Text {
    fn push(&mut self, text: &[u8]) -> Option<()> {
        self.bytes
            .get_mut(self.len..self.len + text.len())?
            .copy_from_slice(text);
        self.len += text.len();
        Some(())
    }

    fn share(&mut self, root: &[u8], kind: Kind, more: More) -> Option<()> {
        self.push(root)?;
        let (sign, class) = match kind {
            Kind::Common => (None, None),
            Kind::Class(class) => (Some(b'.'), Some(class)),
            Kind::Preferred(class) => (Some(b'-'), class),
            Kind::Warrants(class) => (Some(b'+'), class),
            Kind::Rights => (Some(b'^'), None),
            Kind::Units => (Some(b'='), None),
            Kind::Test => (Some(b'~'), None),
        };
        let more = more.0.map(|index| index.map(|index| MORE[index as usize].0));
        for byte in [sign, class].into_iter().chain(more).flatten() {
            self.push(&[byte])?;
        }
        Some(())
    }
}
