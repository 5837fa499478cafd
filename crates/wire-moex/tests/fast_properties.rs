//! FAST over random values and random bytes: what is written is read back, whatever the operators, and no
//! input panics, loops or leaves half a message in the dictionaries.

use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use tickwire_testdata::{Rng, workspace};
use tickwire_wire_moex::fast::{
    Decimal, Decoder, Encoder, Fault, Limits, Message, Plan, Record, SequenceRef, Slot, Value, Visit,
};
use tickwire_wire_moex::moex;

/// The types by element name, each with every operator that applies to it and both presences; the template's
/// number is its place here. Then groups, sequences and decimals in parts with every pair of operators.
fn every_field() -> (Arc<Plan>, Vec<&'static str>) {
    const TYPES: [&str; 8] = [
        "uInt32",
        "uInt64",
        "int32",
        "int64",
        "decimal",
        "string",
        "unicode",
        "byteVector",
    ];
    let mut xml = String::from("<templates>");
    let mut types = Vec::new();
    for kind in TYPES {
        let (element, charset) = if kind == "unicode" {
            ("string", " charset='unicode'")
        } else {
            (kind, "")
        };
        let value = match kind {
            "byteVector" => "414243",
            "string" | "unicode" => "ABC",
            "decimal" => "12.5",
            _ => "7",
        };
        for presence in ["mandatory", "optional"] {
            for operator in ["none", "copy", "default", "increment", "delta", "tail"] {
                let integer = kind.contains("nt");
                let applies = match operator {
                    "increment" => integer,
                    "tail" => !integer && kind != "decimal",
                    _ => true,
                };
                for initial in [format!(" value='{value}'"), String::new()] {
                    let needs_value = operator == "default" && presence == "mandatory";
                    if !applies
                        || (operator == "none" && !initial.is_empty())
                        || (needs_value && initial.is_empty())
                    {
                        continue;
                    }
                    let n = types.len() + 1;
                    let inner = if operator == "none" {
                        String::new()
                    } else {
                        format!("<{operator}{initial} key='{n}'/>")
                    };
                    let field = format!(
                        "<{element} name='v' id='1' presence='{presence}'{charset}>{inner}</{element}>"
                    );
                    xml += &format!("<template name='T{n}' id='{n}'>{field}</template>");
                    types.push(kind);
                }
            }
        }
    }
    for exponent in ["", "<copy/>", "<default value='-2'/>", "<increment/>", "<delta/>"] {
        for mantissa in ["", "<copy/>", "<default value='7'/>", "<increment/>", "<delta/>"] {
            for presence in ["mandatory", "optional"] {
                let n = types.len() + 1;
                xml += &format!(
                    "<template name='T{n}' id='{n}' dictionary='template'><decimal name='v' id='1' presence='{presence}'>
                     <exponent>{exponent}</exponent><mantissa>{mantissa}</mantissa></decimal></template>"
                );
                types.push("decimal");
            }
        }
    }
    xml += "</templates>";
    (
        Arc::new(Plan::parse(&xml).unwrap_or_else(|e| panic!("{e}: {xml}"))),
        types,
    )
}

/// A value of a type near its bounds, near zero, or near the one before.
fn value(rng: &mut Rng, kind: &str, last: &mut Vec<u8>, buffer: &mut Vec<u8>) -> (u64, i64, i8) {
    let wide = match rng.below(4) {
        0 => rng.below(300) as i64 - 150,
        1 => i64::MAX - rng.below(3) as i64,
        2 => i64::MIN + rng.below(3) as i64,
        _ => (rng.next_u64() >> rng.below(64)) as i64,
    };
    let narrow = match rng.below(3) {
        0 => i64::from(wide as i32),
        1 => rng.below(9) as i64,
        _ => i64::from(if wide > 0 { i32::MAX } else { i32::MIN }),
    };
    let alphabet: &[&str] = if kind == "unicode" {
        &["a", "b", "é", "€", "𝄞"]
    } else {
        &["A", "B", "C", "\0", "z"]
    };
    buffer.clear();
    if rng.chance(1, 2) && (kind != "string" || last.is_ascii()) {
        let keep = rng.below(last.len() as u64 + 1) as usize;
        let keep = (0..=keep)
            .rev()
            .find(|&n| std::str::from_utf8(&last[..n]).is_ok())
            .unwrap_or(0);
        buffer.extend_from_slice(&last[..keep]);
    }
    for _ in 0..rng.below(20) {
        buffer.extend_from_slice(alphabet[rng.below(5) as usize].as_bytes());
    }
    last.clone_from(buffer);
    let unsigned = if kind == "uInt32" {
        u64::from(narrow as u32)
    } else {
        wide as u64
    };
    (
        unsigned,
        if kind == "int32" { narrow } else { wide },
        rng.below(127) as i8 - 63,
    )
}

#[test]
fn what_is_written_is_read_back_with_every_operator_type_and_presence() {
    let (plan, types) = every_field();
    assert!(types.len() > 150, "{}", types.len());
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut encoder = Encoder::new(plan.clone(), Limits::default());
        let mut decoder = Decoder::new(plan.clone(), Limits::default());
        let mut record = Record::new(&plan, &Limits::default());
        let (mut last, mut buffer) = (Vec::new(), Vec::new());
        let (mut done, mut refused) = (0, 0);
        for _ in 0..2000 {
            // A few fields at a time, so that previous values matter.
            let index = (seed as usize * 4 + rng.below(4) as usize) % types.len();
            let template = plan.template(index as u32 + 1).unwrap();
            let at = record.begin(&plan, template.id()).unwrap();
            let slot = template.slot(1);
            let (unsigned, signed, exponent) = value(&mut rng, types[index], &mut last, &mut buffer);
            let optional = template.frame().fields()[0].is_optional();
            let value = match types[index] {
                _ if optional && rng.chance(1, 4) => Value::Absent,
                "uInt32" | "uInt64" => Value::Unsigned(unsigned),
                "int32" | "int64" => Value::Signed(signed),
                "decimal" => Value::Decimal(Decimal::new(signed, exponent)),
                "string" => Value::Ascii(&buffer),
                "unicode" => Value::Unicode(&buffer),
                _ => Value::Bytes(&buffer),
            };
            assert!(record.set(at, slot, value));
            let mut out = [0; 256];
            let len = match encoder.encode(&record, &mut out) {
                Ok(len) => len,
                Err(e) if matches!(e.fault, Fault::NotExpressible | Fault::EmptyPrevious) => {
                    refused += 1;
                    continue;
                }
                Err(e) => panic!("seed {seed}, template {}, {value:?}: {e}", template.id()),
            };
            let (message, taken) = decoder
                .decode(&out[..len])
                .unwrap_or_else(|e| panic!("seed {seed}, template {}, {value:?}: {e}", template.id()));
            // A mandatory field that was left out of the record reads as its default.
            assert_eq!(
                message.fields().get(slot),
                value,
                "seed {seed}, template {}",
                template.id()
            );
            assert_eq!(taken, len);
            done += 1;
        }
        assert!(done > refused, "seed {seed}: {done} done, {refused} refused");
    }
}

fn vector_plan() -> &'static Arc<Plan> {
    static PLAN: OnceLock<Arc<Plan>> = OnceLock::new();
    PLAN.get_or_init(|| {
        let read = |path| std::fs::read_to_string(workspace().join(path)).unwrap();
        Arc::new(Plan::parse(&read("vectors/fast/templates.xml")).unwrap())
    })
}

fn demo_plan() -> &'static Arc<Plan> {
    static PLAN: OnceLock<Arc<Plan>> = OnceLock::new();
    PLAN.get_or_init(|| {
        let read = |path| std::fs::read_to_string(workspace().join(path)).unwrap();
        Arc::new(Plan::parse(&read("examples/moex-templates.xml")).unwrap())
    })
}

const SMALL: Limits = Limits {
    values_max: 64,
    text_bytes_max: 256,
    strict: true,
};

fn walk(message: &Message<'_>) -> usize {
    let mut steps = 0;
    message.visit(&mut |step| steps += usize::from(step != Visit::Leave));
    steps
}

proptest! {
    /// Random bytes behind a valid template identifier: an error or a message, of which no more is taken than
    /// there is; strict decoding means that it is written again to the same bytes, except where a sender may
    /// choose.
    #[test]
    fn random_bytes_never_panic(template in 1u8..61, bitmap in 0u8..64, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut decoder = Decoder::new(vector_plan().clone(), SMALL);
        let mut encoder = Encoder::new(vector_plan().clone(), SMALL);
        let stream: Vec<u8> = [0xc0 | bitmap, 0x80 | template].into_iter().chain(bytes).collect();
        let mut at = 0;
        while at < stream.len() {
            let Ok((message, taken)) = decoder.decode(&stream[at..]) else { break };
            prop_assert!(taken > 0 && at + taken <= stream.len());
            walk(&message);
            let _ = encoder.encode(message.record(), &mut [0; 256]);
            at += taken;
        }
    }

    /// Datagrams of the demo templates with random changes.
    #[test]
    fn damaged_datagrams_never_panic(
        template in 0usize..10,
        body in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let mut decoder = moex::Decoder::new(demo_plan().clone(), SMALL).unwrap();
        let mut datagram = vec![1, 0, 0, 0, 0xc0, 0xe5 + template as u8, 0x81, 0x85];
        datagram.extend(body);
        if let Ok(message) = decoder.message(&datagram[4..]) {
            let _ = message.orders().count();
            let _ = message.trades().count();
            let _ = message.statistics().count();
            let _ = (message.boards().count(), message.definition(), message.status(), message.snapshot_header());
        }
    }

    /// Any text is a template file or an error, never a panic.
    #[test]
    fn random_templates_never_panic(parts in prop::collection::vec(0usize..FRAGMENTS.len(), 0..24)) {
        let xml: String = parts.into_iter().map(|i| FRAGMENTS[i]).collect();
        let _ = Plan::parse(&xml);
        let _ = Plan::parse(&format!("<templates><template name='T' id='1'>{xml}</template></templates>"));
    }
}

const FRAGMENTS: [&str; 22] = [
    "<templates>",
    "</templates>",
    "<template name='A' id='1'>",
    "</template>",
    "<uInt32 name='a' id='1'>",
    "</uInt32>",
    "<copy/>",
    "<delta value='1'/>",
    "<sequence name='s'>",
    "</sequence>",
    "<length name='n'/>",
    "<group name='g'>",
    "</group>",
    "<decimal name='d'>",
    "</decimal>",
    "<exponent>",
    "</exponent>",
    "<templateRef name='T'/>",
    "<!-- x -->",
    "&",
    "é",
    "\"",
];

/// A sequence slot of a message of another template is not mistaken for one of this.
#[test]
fn a_slot_of_another_template_reads_as_absent_or_as_what_is_there_but_never_panics() {
    let plan = vector_plan();
    let sequence: SequenceRef = plan.template_named("Sequence").unwrap().sequence(9).unwrap();
    let mut decoder = Decoder::new(plan.clone(), Limits::default());
    let (message, _) = decoder.decode(&[0xc0, 0x81, 0x85]).unwrap();
    assert_eq!(message.fields().entries(&sequence).count(), 0);
    assert_eq!(message.fields().get(Slot::MISSING), Value::Absent);
}

/// Old texts are dropped when the arena is half full, the living ones are kept.
#[test]
fn long_runs_of_strings_do_not_exhaust_the_text_arena() {
    let plan = vector_plan();
    let limits = Limits {
        values_max: 64,
        text_bytes_max: 96,
        strict: true,
    };
    let mut encoder = Encoder::new(plan.clone(), limits);
    let mut decoder = Decoder::new(plan.clone(), limits);
    let mut record = Record::new(plan, &limits);
    let [copy, tail, delta] = ["Copy", "Tail", "DeltaAscii"].map(|name| plan.template_named(name).unwrap());
    for n in 0..5000_u32 {
        let text = format!("{:08}", n / 7);
        for template in [copy, tail, delta] {
            let at = record.begin(plan, template.id()).unwrap();
            record.set(at, template.slot(1), Value::Ascii(text.as_bytes()));
            let mut out = [0; 64];
            let len = encoder.encode(&record, &mut out).unwrap();
            let (message, _) = decoder.decode(&out[..len]).unwrap();
            assert_eq!(
                message.fields().text(template.slot(1)),
                Some(text.as_bytes()),
                "{n}"
            );
        }
    }
    let at = record.begin(plan, copy.id()).unwrap();
    assert!(record.set(at, copy.slot(1), Value::Ascii(&[b'x'; 90])));
    assert!(
        !record.set(at, copy.slot(1), Value::Ascii(&[b'x'; 90])),
        "the record's own text is bounded too"
    );
    let error = decoder
        .decode(&[&[0xe0, 0x96][..], &[b'x'; 120], &[0xf8]].concat())
        .unwrap_err();
    assert_eq!(error.fault, Fault::TextFull);
}
