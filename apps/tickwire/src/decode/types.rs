//! What `--type` may say: the types and names of the messages that can come.

use tickwire_wire::{cqs, ilink3, itch50, mdp3, openbook, ouch50, pitch, uqdf, xdp};

use super::tcp::{Leg, Wanted};
use tickwire_console::similar::similar;
use tickwire_fixengine::names;
use tickwire_venues::protocol::{Kind, Protocol};

/// Types and names of the messages of a protocol; `None` where a file tells them.
fn of(protocol: Protocol) -> Option<Vec<(String, String)>> {
    fn table<K: Copy>(kind: impl Fn(K) -> Kind, types: &[(K, &str, usize)]) -> Vec<(String, String)> {
        let row = |t: &(K, &str, usize)| (kind(t.0).to_string(), t.1.to_string());
        types.iter().map(row).collect()
    }
    let number = |kind: u16| Kind::Number(kind.into());
    Some(match protocol {
        Protocol::Itch50 => table(Kind::Letter, itch50::TYPES),
        Protocol::Pitch => table(Kind::Byte, pitch::TYPES),
        Protocol::PitchOptions => table(Kind::Byte, pitch::options::TYPES),
        Protocol::PitchComplex => table(Kind::Byte, pitch::complex::TYPES),
        Protocol::PitchFutures => table(Kind::Byte, pitch::futures::TYPES),
        Protocol::Xdp => table(number, xdp::TYPES),
        Protocol::Openbook => table(number, openbook::TYPES),
        Protocol::Cqs => [
            table(Kind::Pair, cqs::TYPES),
            table(Kind::Pair, cqs::SNAPSHOT_TYPES),
        ]
        .concat(),
        Protocol::Uqdf => table(Kind::Pair, uqdf::TYPES),
        Protocol::Mdp3 => {
            let templates = mdp3::Body::TEMPLATES
                .iter()
                .chain(mdp3::conflated::Request::TEMPLATES);
            templates
                .map(|t| (number(t.id).to_string(), t.name.to_string()))
                .collect()
        }
        Protocol::Moex => return None,
    })
}

fn of_leg(leg: Leg) -> Vec<(String, String)> {
    let letter = |t: &(u8, &str, usize)| (Kind::Letter(t.0).to_string(), t.1.to_string());
    match leg {
        Leg::Fix => names::messages()
            .map(|(kind, name)| (kind.to_string(), name.to_string()))
            .collect(),
        Leg::Ilink3 => {
            let templates = ilink3::Body::TEMPLATES.iter();
            templates
                .map(|t| (t.id.to_string(), t.name.to_string()))
                .collect()
        }
        Leg::MdpRequests => ["Logon", "MarketDataRequest", "Heartbeat", "Logout"]
            .iter()
            .zip(["A", "V", "0", "5"])
            .map(|(name, kind)| (kind.to_string(), name.to_string()))
            .collect(),
        Leg::Soup => {
            let packets = [
                (b'+', "Debug"),
                (b'L', "LoginRequest"),
                (b'A', "LoginAccepted"),
                (b'J', "LoginRejected"),
                (b'S', "SequencedData"),
                (b'U', "UnsequencedData"),
                (b'H', "ServerHeartbeat"),
                (b'R', "ClientHeartbeat"),
                (b'Z', "EndOfSession"),
                (b'O', "LogoutRequest"),
            ];
            let packets = packets.map(|(kind, name)| (Kind::Letter(kind).to_string(), name.to_string()));
            let both = ouch50::INBOUND_TYPES.iter().chain(ouch50::OUTBOUND_TYPES);
            let inner = both.chain(itch50::TYPES).map(letter);
            packets.into_iter().chain(inner).collect()
        }
        Leg::MdpReplay | Leg::MdpConflated | Leg::Pitch | Leg::Xdp | Leg::Openbook => Vec::new(),
    }
}

/// More types than this are no answer for people.
const LISTED_MAX: usize = 80;

/// What could have been meant: every type where they are few, else those with such a name and how to see all.
fn instead(asked: &str, known: &[(String, String)]) -> String {
    let named = |(kind, name): &(String, String)| format!("{kind} {name}");
    let mut all: Vec<String> = known.iter().map(named).collect();
    all.sort_unstable();
    all.dedup();
    if all.len() <= LISTED_MAX {
        return format!("known are: {}", all.join(", "));
    }
    let near = similar(asked, known.iter().map(|(_, name)| name.as_str()));
    let near: Vec<String> = near
        .iter()
        .filter_map(|name| known.iter().find(|(_, other)| other == name).map(named))
        .collect();
    let meant = match near.is_empty() {
        true => String::new(),
        false => format!("did you mean {}? ", near.join(", ")),
    };
    let count = all.len();
    format!("{meant}{count} types are known: --protocol NAME with it lists those of one protocol")
}

/// Whether every type asked for can come.
///
/// # Errors
/// The sentence to say, with the types that are known.
pub(super) fn check(types: &[String], protocols: Vec<Protocol>, wanted: Wanted) -> Result<(), String> {
    if types.is_empty() {
        return Ok(());
    }
    let mut known = Vec::new();
    for protocol in protocols {
        match of(protocol) {
            Some(more) => known.extend(more),
            // Template files say what there is.
            None if wanted == Wanted::All => {}
            None => return Ok(()),
        }
    }
    wanted.legs().for_each(|leg| known.extend(of_leg(leg)));
    for asked in types {
        let is_known = known.iter().any(|(kind, name)| {
            kind == asked || name == asked || (kind.starts_with("0x") && kind.eq_ignore_ascii_case(asked))
        });
        // Templates of MOEX are numbers of a file.
        let may_be_moex = wanted == Wanted::All && asked.bytes().all(|b| b.is_ascii_digit());
        if !is_known && !may_be_moex {
            return Err(format!(
                "--type {asked} is no type of message that can come; {}",
                instead(asked, &known)
            ));
        }
    }
    Ok(())
}
