//! Recorded FAST messages of the Moscow Exchange decode to the last byte and are written again byte for byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwire_testdata::{captures, specs, unhex};
use tickwire_wire_moex::fast::{Decoder, Encoder, Fault, Limits, Plan, Value, Visit};

fn plan(path: std::path::PathBuf) -> Arc<Plan> {
    let xml = std::fs::read_to_string(&path).unwrap();
    Arc::new(Plan::parse(&xml).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// Every packet: preamble, then one message; the dictionaries are reset before each. Counts messages by name,
/// and those of templates that the file does not have by `unknown <id>`.
fn asts(packets: &str, templates: &str) -> BTreeMap<String, u32> {
    let plan = plan(specs(&format!("moex/{templates}")));
    let mut decoder = Decoder::new(plan.clone(), Limits::default());
    let mut encoder = Encoder::new(plan.clone(), Limits::default());
    let mut seen = BTreeMap::new();
    let text = std::fs::read_to_string(captures(&format!("moex-asts/{packets}"))).unwrap();
    for (number, line) in text.lines().enumerate().filter(|(_, l)| !l.is_empty()) {
        let packet = unhex(line);
        let (preamble, bytes) = packet.split_at(4);
        decoder.reset();
        let (message, taken) = match decoder.decode(bytes) {
            Err(e) if e.fault == Fault::UnknownTemplate => {
                *seen.entry(format!("unknown {}", e.template)).or_default() += 1;
                continue;
            }
            result => result.unwrap_or_else(|e| panic!("packet {number}: {e}")),
        };
        assert_eq!(taken, bytes.len(), "packet {number} has bytes behind its message");
        let seq = plan.template(message.template_id()).unwrap().slot(34);
        let seq = message.fields().unsigned(seq).unwrap();
        assert_eq!(
            seq,
            u64::from(u32::from_le_bytes(preamble.try_into().unwrap())),
            "packet {number}"
        );
        *seen.entry(message.name().to_owned()).or_default() += 1;

        let mut out = [0; 2048];
        encoder.reset();
        let len = encoder
            .encode(message.record(), &mut out)
            .unwrap_or_else(|e| panic!("packet {number}: {e}"));
        assert_eq!(out[..len], *bytes, "packet {number}, {}", message.name());
    }
    seen
}

fn counts(expected: &[(&str, u32)]) -> BTreeMap<String, u32> {
    expected.iter().map(|&(name, n)| (name.to_owned(), n)).collect()
}

#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn every_asts_packet_of_the_2017_templates_decodes_and_is_written_again() {
    // Six packets are older than the templates: theirs are in no file that we have, so that they must be
    // refused.
    let expected = counts(&[
        ("0", 2),
        ("W-OLS-CURR", 1),
        ("W-OLS-FOND", 1),
        ("X-MSR-CURR", 1),
        ("X-OLR-CURR", 313),
        ("X-OLR-FOND", 1),
        ("d", 5),
        ("unknown 12", 1),
        ("unknown 2412", 1),
        ("unknown 2420", 3),
        ("unknown 2422", 1),
    ]);
    assert_eq!(asts("packets-2017.hex", "templates-2017-03.xml"), expected);
}

#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn every_asts_packet_of_the_2020_templates_decodes_and_is_written_again() {
    let expected = counts(&[
        ("W-TLS-FOND", 1),
        ("X-MSR-FOND", 1),
        ("X-OLR-FOND", 1),
        ("X-TLR-FOND", 1),
    ]);
    assert_eq!(asts("packets-2020.hex", "templates-2020-11.xml"), expected);
}

/// A derivatives file is a row of messages without lengths; dictionaries run on from message to message and
/// are reset by messages of template 120. Gives how many messages of each template and how many sequence
/// entries there are.
fn forts(file: &str) -> (BTreeMap<String, u32>, u32) {
    let plan = plan(captures("moex-forts/templates.xml"));
    let mut decoder = Decoder::new(plan.clone(), Limits::default());
    let mut encoder = Encoder::new(plan.clone(), Limits::default());
    let bytes = std::fs::read(captures(&format!("moex-forts/{file}"))).unwrap();
    let (mut at, mut seen, mut entries) = (0, BTreeMap::new(), 0);
    while at < bytes.len() {
        let (message, taken) = decoder
            .decode(&bytes[at..])
            .unwrap_or_else(|e| panic!("{file} at {at}: {e}"));
        *seen.entry(message.name().to_owned()).or_default() += 1;
        message.visit(&mut |step| match step {
            Visit::Enter(..) => entries += 1,
            Visit::Field("SenderCompID", 49, value) => assert_eq!(value, Value::Ascii(b"RTS")),
            _ => {}
        });
        let mut out = [0; 4096];
        let len = encoder
            .encode(message.record(), &mut out)
            .unwrap_or_else(|e| panic!("{file} at {at}: {e}"));
        assert_eq!(
            out[..len],
            bytes[at..at + taken],
            "{file} at {at}, {}",
            message.name()
        );
        at += taken;
    }
    (seen, entries)
}

#[tickwire_testdata::recorded_data("captures/moex-forts")]
#[test]
fn every_derivatives_record_decodes_exactly_and_is_written_again() {
    let increments = |n| counts(&[("DefaultIncrementalRefreshMessage", n), ("Reset", n)]);
    assert_eq!(forts("increment_a.dat"), (increments(8101), 22_104));
    assert_eq!(forts("increment_b.dat"), (increments(8088), 22_054));
    let snapshots = counts(&[
        ("DefaultSnapshotMessage", 7848),
        ("Reset", 9314),
        ("SequenceReset", 733),
        ("TradingSessionStatus", 733),
    ]);
    assert_eq!(forts("snapshot.dat"), (snapshots, 55_417));
}
