//! Hand-made FAST messages: every operator with the types it applies to, every error code, nothing lost on an
//! error.

use std::fmt::Write;
use std::sync::Arc;

use tickwire_testdata::{Vector, hex, vectors, workspace};
use tickwire_wire_moex::fast::{
    Decoder, Encoder, FastError, Fault, Limits, Message, Plan, TemplateError, Value, Visit,
};

fn plan() -> Arc<Plan> {
    let xml = std::fs::read_to_string(workspace().join("vectors/fast/templates.xml")).unwrap();
    Arc::new(Plan::parse(&xml).unwrap_or_else(|e| panic!("vectors/fast/templates.xml: {e}")))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\\x00")
}

/// `Name field=value ... sequence[...][...]`.
fn say(message: &Message<'_>) -> String {
    let mut out = message.name().to_owned();
    message.visit(&mut |step| {
        let gap = if out.ends_with('[') { "" } else { " " };
        match step {
            Visit::Field(name, _, Value::Group) => write!(out, "{gap}{name}"),
            Visit::Field(name, _, Value::Unsigned(v)) => write!(out, "{gap}{name}={v}"),
            Visit::Field(name, _, Value::Signed(v)) => write!(out, "{gap}{name}={v}"),
            Visit::Field(name, _, Value::Decimal(d)) => {
                write!(out, "{gap}{name}={}e{}", d.mantissa, d.exponent)
            }
            Visit::Field(name, _, Value::Ascii(t) | Value::Unicode(t)) => {
                write!(out, "{gap}{name}='{}'", text(t))
            }
            Visit::Field(name, _, Value::Bytes(b)) => {
                write!(out, "{gap}{name}=#{}", hex(b).replace(' ', "").to_lowercase())
            }
            Visit::Field(..) => Ok(()),
            Visit::Enter(name, _, 0) => write!(out, "{gap}{name}[]"),
            Visit::Enter(name, 0, _) => write!(out, "{gap}{name}["),
            Visit::Enter(..) => write!(out, "["),
            Visit::Leave => write!(out, "]"),
        }
        .unwrap();
    });
    out
}

/// Decodes all messages of a vector; what they say, and the error that ended it.
fn run(decoder: &mut Decoder, vector: &Vector) -> (String, Option<FastError>) {
    let (mut at, mut said) = (0, Vec::new());
    while at < vector.bytes.len() {
        match decoder.decode(&vector.bytes[at..]) {
            Ok((message, taken)) => {
                said.push(say(&message).replace("Group g", "Group"));
                at += taken;
            }
            Err(e) => {
                said.push(
                    if e.fault.code().is_empty() {
                        "-"
                    } else {
                        e.fault.code()
                    }
                    .to_owned(),
                );
                return (said.join(" | "), Some(e));
            }
        }
    }
    (said.join(" | "), None)
}

#[test]
fn every_vector_says_what_it_should_and_is_written_again() {
    let plan = plan();
    let mut codes = std::collections::BTreeSet::new();
    let all = vectors("fast");
    for vector in &all {
        let mut decoder = Decoder::new(plan.clone(), Limits::default());
        let (said, error) = run(&mut decoder, vector);
        assert_eq!(said, vector.expect["says"], "{}: {error:?}", vector.name);
        codes.extend(error.map(|e| e.fault.code()));

        let mut decoder = Decoder::new(plan.clone(), Limits::default());
        let mut encoder = Encoder::new(plan.clone(), Limits::default());
        let mut at = 0;
        while let Some(Ok((message, taken))) =
            (at < vector.bytes.len()).then(|| decoder.decode(&vector.bytes[at..]))
        {
            let mut out = [0; 256];
            let len = encoder
                .encode(message.record(), &mut out)
                .unwrap_or_else(|e| panic!("{}: {e}", vector.name));
            assert_eq!(
                hex(&out[..len]),
                hex(&vector.bytes[at..at + taken]),
                "{}: {}",
                vector.name,
                say(&message)
            );
            at += taken;
        }
    }
    let reachable = [
        "", "D2", "D4", "D5", "D6", "D7", "D9", "R1", "R2", "R4", "R6", "R7", "R8", "R9",
    ];
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), reachable);
    assert!(all.len() > 90, "{}", all.len());
}

/// After the malformed message of each vector the dictionaries are what they were before it: the good part of
/// any other vector that goes before decides alone how it continues.
#[test]
fn a_malformed_message_leaves_no_trace_in_the_dictionaries() {
    let plan = plan();
    let limits = Limits {
        values_max: 64,
        text_bytes_max: 1024,
        strict: true,
    };
    let all = vectors("fast");
    let (bad, good): (Vec<_>, Vec<_>) = all.iter().partition(|v| v.name.starts_with("malformed/"));
    for bad in bad {
        for good in &good {
            let mut clean = Decoder::new(plan.clone(), limits);
            let mut dirty = Decoder::new(plan.clone(), limits);
            // Only the malformed message itself, not the good ones before it.
            let last = {
                let (mut at, mut probe) = (0, Decoder::new(plan.clone(), limits));
                while let Ok((_, taken)) = probe.decode(&bad.bytes[at..]) {
                    let (message, _) = clean.decode(&bad.bytes[at..]).unwrap();
                    let expected = say(&message);
                    assert_eq!(say(&dirty.decode(&bad.bytes[at..]).unwrap().0), expected);
                    at += taken;
                }
                at
            };
            for _ in 0..3 {
                assert!(dirty.decode(&bad.bytes[last..]).is_err());
            }
            assert_eq!(
                run(&mut dirty, good).0,
                run(&mut clean, good).0,
                "{} after {}",
                good.name,
                bad.name
            );
        }
    }
}

#[test]
fn without_strictness_overlong_encodings_are_read() {
    let limits = Limits {
        strict: false,
        ..Limits::default()
    };
    let read = |bytes: &[u8]| {
        Decoder::new(plan(), limits)
            .decode(bytes)
            .map(|(m, _)| say(&m))
            .unwrap()
    };
    assert_eq!(read(&[0xc0, 0x81, 0x00, 0x85]), "U32 v=5");
    assert_eq!(read(&[0xc0, 0x85, 0x7f, 0xc5]), "I32 v=-59");
    assert_eq!(read(&[0x40, 0x80, 0x81, 0x85]), "U32 v=5");
    assert_eq!(read(&[0xe0, 0x81, 0x85]), "U32 v=5");
    assert_eq!(read(&[0xc0, 0x8b, 0x00, 0xc1]), "Ascii v='A'");
}

fn template_error(xml: &str) -> String {
    match Plan::parse(&format!("<templates>\n{xml}\n</templates>")) {
        Err(e @ TemplateError { .. }) => e.to_string(),
        Ok(_) => "none".to_owned(),
    }
}

#[test]
fn template_errors_name_their_code_and_line() {
    let field = |field: &str| template_error(&format!("<template name='T' id='1'>\n{field}\n</template>"));
    assert_eq!(field("<uInt8 name='a'/>"), "line 3: [S1] unknown field type");
    assert_eq!(field("<uInt32/>"), "line 3: [S1] field without a name");
    assert_eq!(
        field("<uInt32 name='a' presence='maybe'/>"),
        "line 3: [S1] presence is neither 'mandatory' nor 'optional'"
    );
    assert_eq!(
        field("<string name='a'><increment/></string>"),
        "line 3: [S2] operator does not apply to this type"
    );
    assert_eq!(
        field("<uInt32 name='a'><tail/></uInt32>"),
        "line 3: [S2] operator does not apply to this type"
    );
    assert_eq!(
        field("<decimal name='a'>\n<exponent><tail/></exponent></decimal>"),
        "line 4: [S2] operator does not apply to this type"
    );
    for (kind, value) in [
        ("uInt32", "-1"),
        ("int32", "2147483648"),
        ("decimal", "1.2.3"),
        ("string", "é"),
        ("byteVector", "123"),
    ] {
        let xml = format!("<{kind} name='a'><copy value='{value}'/></{kind}>");
        assert_eq!(
            field(&xml),
            "line 3: [S3] value does not convert to the field's type",
            "{kind} {value}"
        );
    }
    assert_eq!(
        field("<uInt32 name='a'><constant/></uInt32>"),
        "line 3: [S4] constant without a value"
    );
    assert_eq!(
        field("<uInt32 name='a'><default/></uInt32>"),
        "line 3: [S5] default of a mandatory field without a value"
    );
    assert_eq!(
        field("<uInt32 name='a' presence='optional'><default/></uInt32>"),
        "none"
    );
    assert_eq!(
        field("<templateRef name='U'/>"),
        "line 3: [D8] reference to a template that is not in the file"
    );
    assert_eq!(
        field("<templateRef name='T'/>"),
        "line 2: too many fields, dictionary entries or levels"
    );
    assert_eq!(
        field("<templateRef/>"),
        "line 3: templateRef without a name is not supported"
    );
    assert_eq!(
        field("<uInt32 name='a'><copy/><delta/></uInt32>"),
        "line 3: [S1] a field has one operator at most"
    );
    let twice = "<template name='T' id='1'/>\n<template name='U' id='1'/>";
    assert_eq!(
        template_error(twice),
        "line 3: a template of this id or name was there before"
    );
    assert_eq!(
        template_error("<template name='T' id='x'/>"),
        "line 2: [S1] template id is not a number"
    );
}

#[test]
fn dictionaries_are_global_by_template_by_type_or_by_name() {
    let plan = Arc::new(
        Plan::parse(
            "<templates>
             <template name='A' id='1'><uInt32 name='g'><copy/></uInt32></template>
             <template name='B' id='2'><uInt32 name='g'><copy/></uInt32></template>
             <template name='C' id='3' dictionary='template'><uInt32 name='g'><copy value='3'/></uInt32></template>
             <template name='D' id='4' dictionary='mine'><uInt32 name='x'><copy key='k'/></uInt32></template>
             <template name='E' id='5'><uInt32 name='y'><copy dictionary='mine' key='k'/></uInt32></template>
             <template name='F' id='6' dictionary='type'><typeRef name='Order'/><uInt32 name='z'><copy/></uInt32></template>
             <template name='G' id='7' dictionary='type'><typeRef name='Order'/><uInt32 name='z'><copy/></uInt32></template>
             <template name='H' id='8' dictionary='type'><typeRef name='Trade'/><uInt32 name='z'><copy value='8'/></uInt32></template>
             <template name='I' id='9' ns='other'><uInt32 name='g'><copy value='1'/></uInt32></template>
             </templates>",
        )
        .unwrap(),
    );
    let mut decoder = Decoder::new(plan, Limits::default());
    let mut read = |bytes: &[u8]| {
        decoder
            .decode(bytes)
            .map(|(m, _)| say(&m))
            .unwrap_or_else(|e| e.fault.code().into())
    };
    assert_eq!(read(&[0xe0, 0x81, 0x87]), "A g=7");
    assert_eq!(
        read(&[0xc0, 0x82]),
        "B g=7",
        "the global dictionary is shared by all templates"
    );
    assert_eq!(read(&[0xc0, 0x83]), "C g=3", "a template's own is not");
    assert_eq!(read(&[0xe0, 0x84, 0x85]), "D x=5");
    assert_eq!(
        read(&[0xc0, 0x85]),
        "E y=5",
        "a named one is shared by those that name it"
    );
    assert_eq!(read(&[0xe0, 0x86, 0x86]), "F z=6");
    assert_eq!(
        read(&[0xc0, 0x87]),
        "G z=6",
        "a type's by the templates of the type"
    );
    assert_eq!(read(&[0xc0, 0x88]), "H z=8");
    assert_eq!(
        read(&[0xc0, 0x89]),
        "I g=1",
        "keys of another name space are other keys"
    );
    decoder.reset();
    let mut read = |bytes: &[u8]| {
        decoder
            .decode(bytes)
            .map(|(m, _)| say(&m))
            .unwrap_or_else(|e| e.fault.code().into())
    };
    assert_eq!(read(&[0xc0, 0x82]), "D5", "nothing is left after a reset");
}

/// A record of the template `name` with one value.
fn encode(name: &str, value: Value<'_>) -> Result<Vec<u8>, FastError> {
    let plan = plan();
    let template = plan.template_named(name).unwrap();
    let mut record = tickwire_wire_moex::fast::Record::new(&plan, &Limits::default());
    let at = record.begin(&plan, template.id()).unwrap();
    assert!(record.set(at, template.slot(1), value));
    let mut out = [0; 64];
    let len = Encoder::new(plan.clone(), Limits::default()).encode(&record, &mut out)?;
    Ok(out[..len].to_vec())
}

#[test]
fn the_encoder_refuses_what_a_field_cannot_say() {
    let fault = |name, value| encode(name, value).map_err(|e| e.fault);
    assert_eq!(fault("U32", Value::Ascii(b"1")), Err(Fault::FieldType));
    assert_eq!(fault("U32", Value::Signed(-1)), Err(Fault::IntegerRange));
    assert_eq!(fault("I32", Value::Unsigned(1 << 31)), Err(Fault::IntegerRange));
    assert_eq!(fault("U32", Value::Absent), Err(Fault::MissingMandatory));
    assert_eq!(fault("Ascii", Value::Ascii("é".as_bytes())), Err(Fault::NotAscii));
    assert_eq!(fault("Unicode", Value::Bytes(b"\xff")), Err(Fault::Utf8));
    assert_eq!(fault("Constant", Value::Unsigned(8)), Err(Fault::FieldType));
    assert_eq!(
        fault(
            "PartsFixed",
            Value::Decimal(tickwire_wire_moex::fast::Decimal::new(1, -3))
        ),
        Err(Fault::DecimalParts)
    );
    assert_eq!(
        fault(
            "Decimal",
            Value::Decimal(tickwire_wire_moex::fast::Decimal::new(1, 64))
        ),
        Err(Fault::DecimalRange)
    );
    assert_eq!(fault("Tail?", Value::Ascii(b"AB")), Err(Fault::NotExpressible));
    assert_eq!(
        fault("I64", Value::Unsigned(7)),
        Ok(vec![0xc0, 0x87, 0x87]),
        "integers convert where they fit"
    );
    assert_eq!(
        fault("Decimal", Value::Signed(-3)),
        Ok(vec![0xc0, 0x89, 0x80, 0xfd])
    );
}

/// Operators by types by presence: each cell has a template and a vector that decodes, or the template is
/// refused.
#[test]
fn every_operator_has_a_vector_with_every_type_and_presence() {
    const OPERATORS: [&str; 7] = [
        "none",
        "constant",
        "default",
        "copy",
        "increment",
        "delta",
        "tail",
    ];
    const TYPES: [(&str, &str); 9] = [
        ("U32", "<uInt32 name=\"v\" id=\"1\"P>O</uInt32>"),
        ("U64", "<uInt64 name=\"v\" id=\"1\"P>O</uInt64>"),
        ("I32", "<int32 name=\"v\" id=\"1\"P>O</int32>"),
        ("I64", "<int64 name=\"v\" id=\"1\"P>O</int64>"),
        ("Decimal", "<decimal name=\"v\" id=\"1\"P>O</decimal>"),
        ("Ascii", "<string name=\"v\" id=\"1\"P>O</string>"),
        (
            "Unicode",
            "<string name=\"v\" id=\"1\" charset=\"unicode\"P>O</string>",
        ),
        ("Bytes", "<byteVector name=\"v\" id=\"1\"P>O</byteVector>"),
        (
            "Length",
            "<sequence name=\"s\"P><length name=\"v\" id=\"1\">O</length><uInt32 name=\"a\" id=\"2\"/></sequence>",
        ),
    ];
    let xml = std::fs::read_to_string(workspace().join("vectors/fast/templates.xml")).unwrap();
    let all = vectors("fast");
    for (kind, element) in TYPES {
        let integer = matches!(kind, "U32" | "U64" | "I32" | "I64" | "Length");
        let text = matches!(kind, "Ascii" | "Unicode" | "Bytes");
        let initial = match kind {
            "Decimal" => "12.5",
            "Ascii" | "Unicode" => "ABC",
            "Bytes" => "414243",
            "Length" => "1",
            _ => "7",
        };
        for (mark, presence) in [("", ""), ("?", " presence=\"optional\"")] {
            for operator in OPERATORS {
                let inner = match operator {
                    "none" => String::new(),
                    "constant" | "default" => format!("<{operator} value=\"{initial}\"/>"),
                    _ => format!("<{operator}/>"),
                };
                let field = element.replace('P', presence).replace('O', &inner);
                let name = format!("{kind}{mark} {operator}");
                if (operator == "increment" && !integer) || (operator == "tail" && !text) {
                    let error = template_error(&format!("<template name='T' id='1'>{field}</template>"));
                    assert!(error.contains("[S2]"), "{name} does not apply, but: {error}");
                    continue;
                }
                assert!(
                    xml.contains(&format!("dictionary=\"template\">{field}</template>"))
                        && xml.contains(&format!("<template name=\"{name}\" ")),
                    "templates.xml lacks the template '{name}' with {field}"
                );
                let says = |v: &&Vector| v.expect["says"].split(" | ").all(|m| m.starts_with(&name));
                assert!(all.iter().any(|v| says(&v)), "no vector of '{name}'");
            }
        }
    }
}

/// Where a code of the specification is tested, or why nothing can raise it.
enum Raised {
    /// By the last message of a vector.
    InStream,
    /// By a template file.
    InTemplate(&'static str),
    /// By the encoder, from a value of the template.
    Encoding(&'static str, Value<'static>),
    /// By nothing.
    Never(&'static str),
}

#[test]
fn every_error_code_is_raised_by_something_or_cannot_be() {
    use Raised::{Encoding, InStream, InTemplate, Never};
    use tickwire_wire_moex::fast::Decimal;
    let strings = "a record's strings stay strings: nothing is converted from or to them";
    let codes = [
        ("S1", InTemplate("<uInt8 name='a'/>")),
        ("S2", InTemplate("<uInt32 name='a'><tail/></uInt32>")),
        ("S3", InTemplate("<uInt32 name='a'><copy value='-1'/></uInt32>")),
        ("S4", InTemplate("<uInt32 name='a'><constant/></uInt32>")),
        ("S5", InTemplate("<uInt32 name='a'><default/></uInt32>")),
        ("D1", Encoding("U32", Value::Ascii(b"1"))),
        ("D2", InStream),
        ("D3", Encoding("PartsFixed", Value::Decimal(Decimal::new(1, -3)))),
        ("D4", InStream),
        ("D5", InStream),
        ("D6", InStream),
        ("D7", InStream),
        ("D8", InTemplate("<templateRef name='U'/>")),
        ("D9", InStream),
        ("D10", Never(strings)),
        ("D11", Never(strings)),
        (
            "D12",
            Never("blocked transfer, with its block sizes, is not supported"),
        ),
        ("R1", InStream),
        ("R2", InStream),
        ("R3", Encoding("Ascii", Value::Ascii(b"\xc3\xa9"))),
        ("R4", InStream),
        ("R5", Never("no value is converted to a type that loses digits")),
        ("R6", InStream),
        ("R7", InStream),
        ("R8", InStream),
        ("R9", InStream),
    ];
    let all = vectors("fast");
    for (code, raised) in codes {
        match raised {
            InStream => assert!(
                all.iter()
                    .any(|v| v.expect["says"].rsplit(" | ").next() == Some(code)),
                "no vector ends in {code}"
            ),
            InTemplate(field) => {
                let error = template_error(&format!("<template name='T' id='1'>{field}</template>"));
                assert!(error.contains(&format!("[{code}]")), "{code}: {error}");
            }
            Encoding(name, value) => assert_eq!(encode(name, value).unwrap_err().fault.code(), code),
            Never(why) => assert!(
                Fault::ALL.iter().all(|f| f.code() != code),
                "{code} has a fault, though {why}"
            ),
        }
    }
}

/// The way of messages that stand alone, without dictionaries, says the same as the way through them, of
/// whole messages and of those that are cut off anywhere.
#[test]
fn a_message_that_stands_alone_reads_as_after_a_reset() {
    let plan = plan();
    let limits = Limits {
        values_max: 64,
        text_bytes_max: 1024,
        strict: true,
    };
    let mut alone = Decoder::new(plan.clone(), limits);
    let mut kept = Decoder::new(plan.clone(), limits);
    for vector in vectors("fast") {
        for len in 0..=vector.bytes.len() {
            let bytes = &vector.bytes[..len];
            kept.reset();
            let expected = kept.decode(bytes).map(|(m, taken)| (say(&m), taken));
            let found = alone.decode_alone(bytes).map(|(m, taken)| (say(&m), taken));
            assert_eq!(found, expected, "{}, {len} bytes", vector.name);
        }
    }
}
