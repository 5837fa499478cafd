//! From a template file to the plan: what each field is read by.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::fast::error::{Fault, TemplateError, TemplateFault};
use crate::fast::value::{Cell, Decimal, Kind, Text};
use crate::fast::xml::Element;

use super::{Body, Code, FieldSpec, Frame, Instr, NESTING_MAX, NONE, Op, Plan, Slot, Template};

/// Whose previous values an operator sees (FAST 1.1, section 6.3.1, "Dictionaries and Previous Values").
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Scope {
    Global,
    Template(String),
    Type(String),
    Named(String),
}

/// What is inherited by nested elements.
#[derive(Clone)]
struct Context {
    pub(super) dictionary: String,
    pub(super) namespace: String,
    pub(super) template: String,
    pub(super) application_type: String,
    pub(super) nesting: u32,
}

impl Context {
    fn enter(&self, element: &Element) -> Result<Context, TemplateError> {
        let mut inner = self.clone();
        if inner.nesting == NESTING_MAX {
            return Err(at(element, TemplateFault::TooLarge));
        }
        inner.nesting += 1;
        inner.inherit(element);
        Ok(inner)
    }

    fn inherit(&mut self, element: &Element) {
        if let Some(dictionary) = element.attribute("dictionary") {
            self.dictionary = dictionary.to_owned();
        }
        if let Some(namespace) = element.attribute("ns") {
            self.namespace = namespace.to_owned();
        }
        let type_ref = element.children.iter().find(|c| c.name == "typeRef");
        if let Some(name) = type_ref.and_then(|t| t.attribute("name")) {
            self.application_type = name.to_owned();
        }
    }

    fn scope(&self, operator: &Element) -> Scope {
        match operator.attribute("dictionary").unwrap_or(&self.dictionary) {
            "global" => Scope::Global,
            "template" => Scope::Template(self.template.clone()),
            "type" => Scope::Type(self.application_type.clone()),
            name => Scope::Named(name.to_owned()),
        }
    }
}

pub(super) fn at(element: &Element, fault: TemplateFault) -> TemplateError {
    TemplateError {
        fault,
        line: element.line,
    }
}

fn syntax(element: &Element, what: &'static str) -> TemplateError {
    at(element, TemplateFault::Syntax(what))
}

#[derive(Default)]
pub(super) struct Compiler {
    instrs: Vec<Instr>,
    bodies: Vec<Body>,
    frames: Vec<Frame>,
    initials: Vec<Cell>,
    rows: Vec<Cell>,
    codes: Vec<Code>,
    text: Vec<u8>,
    dictionary: BTreeMap<(Scope, String), u16>,
}

impl Compiler {
    pub(super) fn run(mut self, root: &Element) -> Result<Plan, TemplateError> {
        self.text.extend_from_slice(&Text::SINGLES);
        let outer = Context {
            dictionary: "global".to_owned(),
            namespace: String::new(),
            template: String::new(),
            application_type: String::new(),
            nesting: 0,
        };
        // Entry 0 of the dictionary is the template identifier, copied in the global dictionary.
        self.dictionary
            .insert((Scope::Global, "|template id".to_owned()), 0);
        let (all, context) = match root.name.as_str() {
            "templates" => (root.children.as_slice(), outer.enter(root)?),
            "template" => (core::slice::from_ref(root), outer),
            _ => {
                return Err(syntax(
                    root,
                    "expected 'templates' or 'template' as the root element",
                ));
            }
        };
        let mut templates: Vec<Template> = Vec::new();
        for element in all {
            if element.name != "template" {
                return Err(syntax(element, "expected 'template'"));
            }
            let template = self.template(element, all, &context)?;
            let same = |t: &Template| t.name == template.name || (t.id.is_some() && t.id == template.id);
            if templates.iter().any(same) {
                return Err(at(element, TemplateFault::DuplicateTemplate));
            }
            templates.push(template);
        }
        let mut by_id: Vec<(u32, u16)> = templates
            .iter()
            .enumerate()
            .filter_map(|(i, t)| Some((t.id?, i as u16)))
            .collect();
        by_id.sort_unstable();
        Ok(Plan {
            templates,
            by_id,
            instrs: self.instrs,
            bodies: self.bodies,
            frames: self.frames,
            initials: self.initials,
            rows: self.rows,
            codes: self.codes,
            text: self.text,
            dict_len: self.dictionary.len(),
        })
    }

    fn template(
        &mut self,
        element: &Element,
        all: &[Element],
        outer: &Context,
    ) -> Result<Template, TemplateError> {
        let name = element
            .attribute("name")
            .ok_or(syntax(element, "template without a name"))?;
        let id = match element.attribute("id") {
            Some(id) => Some(
                id.trim()
                    .parse()
                    .map_err(|_| syntax(element, "template id is not a number"))?,
            ),
            None => None,
        };
        let mut context = outer.enter(element)?;
        context.template = name.to_owned();
        let mut frame = Frame::default();
        let run = self.fields(element, all, &context, &mut frame)?;
        let frame = self.push_frame(element, frame)?;
        let body = self.push_body(element, run, frame)?;
        // The identifier takes the first bit of the message's presence map.
        self.bodies[usize::from(body)].bits += 1;
        let mut used = BTreeMap::new();
        self.count_entries(body, &mut used);
        self.mark_alone(body, &used);
        let reset = matches!(element.attribute("reset"), Some("yes" | "Y" | "T" | "true" | "1"));
        Ok(Template {
            name: name.to_owned(),
            id,
            body,
            frame,
            reset,
        })
    }

    /// How often a template uses each dictionary entry.
    fn count_entries(&self, body: u16, used: &mut BTreeMap<u16, u32>) {
        let Some(Body {
            start, end, length, ..
        }) = self.bodies.get(usize::from(body))
        else {
            return;
        };
        for instr in self.instrs[*start..*end].iter().chain([length]) {
            *used.entry(instr.dict).or_default() += 1;
            self.count_entries(instr.body, used);
        }
    }

    fn mark_alone(&mut self, body: u16, used: &BTreeMap<u16, u32>) {
        let Some(&Body { start, end, .. }) = self.bodies.get(usize::from(body)) else {
            return;
        };
        let alone = |i: &Instr| i.dict == NONE || used.get(&i.dict) == Some(&1);
        self.bodies[usize::from(body)].is_alone = self.instrs[start..end].iter().all(alone);
        for at in start..end {
            self.mark_alone(self.instrs[at].body, used);
        }
    }

    /// The value of a field that is not sent when its dictionary entry is undefined. A field without a bit
    /// always is.
    fn undefined(&self, instr: &Instr) -> Cell {
        match self.initials.get(usize::from(instr.initial)) {
            Some(&cell) => cell,
            None if instr.optional => Cell::ABSENT,
            None => Cell::fault(Fault::NoPrevious),
        }
    }

    fn push_frame(&mut self, element: &Element, frame: Frame) -> Result<u16, TemplateError> {
        let index = u16::try_from(self.frames.len()).map_err(|_| at(element, TemplateFault::TooLarge))?;
        self.frames.push(frame);
        Ok(index)
    }

    fn push_body(&mut self, element: &Element, run: Vec<Instr>, frame: u16) -> Result<u16, TemplateError> {
        let index = u16::try_from(self.bodies.len()).ok().filter(|&i| i != NONE);
        let index = index.ok_or(at(element, TemplateFault::TooLarge))?;
        let start = self.instrs.len();
        let bits = run.iter().map(|i| self.bits(i)).sum();
        let width = self.frames.get(usize::from(frame)).map_or(0, Frame::width);
        let mut kept: Vec<u16> = run.iter().map(|i| i.dict).filter(|&d| d != NONE).collect();
        kept.sort_unstable();
        let has_row = frame != NONE
            && run.iter().zip(0..).all(|(i, slot)| i.slot == slot)
            && run.len() == width
            && kept.windows(2).all(|pair| pair[0] != pair[1]);
        let in_rows = has_row && run.iter().all(|i| i.body == NONE);
        let row = self.rows.len();
        if has_row {
            let cells: Vec<Cell> = run.iter().map(|i| self.undefined(i)).collect();
            self.rows.extend(cells);
            self.codes.extend(run.iter().map(Code::of));
        }
        self.instrs.extend(run);
        self.bodies.push(Body {
            start,
            end: self.instrs.len(),
            bits,
            width,
            length: Instr::EMPTY,
            frame,
            has_row,
            in_rows,
            is_alone: false,
            row,
        });
        Ok(index)
    }

    /// Presence map bits that an instruction takes in its own segment (section 10.5.1).
    fn bits(&self, instr: &Instr) -> u32 {
        match instr.op {
            Op::None | Op::Constant | Op::Delta | Op::Group => 0,
            Op::OptionalConstant | Op::Copy | Op::Default | Op::Increment | Op::Tail | Op::OptionalGroup => 1,
            Op::DecimalParts => self.bodies[usize::from(instr.body)].bits,
            Op::Sequence => self.bits(&self.bodies[usize::from(instr.body)].length),
        }
    }

    fn fields(
        &mut self,
        parent: &Element,
        all: &[Element],
        context: &Context,
        frame: &mut Frame,
    ) -> Result<Vec<Instr>, TemplateError> {
        let mut run = Vec::new();
        for element in &parent.children {
            match element.name.as_str() {
                "typeRef" => {}
                "length" if parent.name == "sequence" => {}
                "templateRef" => {
                    let Some(name) = element.attribute("name") else {
                        return Err(at(element, TemplateFault::DynamicReference));
                    };
                    let target = all.iter().find(|t| t.attribute("name") == Some(name));
                    let target = target.ok_or(at(element, TemplateFault::UnknownReference))?;
                    let mut inner = context.enter(target)?;
                    inner.template = name.to_owned();
                    run.extend(self.fields(target, all, &inner, frame)?);
                }
                "group" => run.push(self.group(element, all, context, frame)?),
                "sequence" => run.push(self.sequence(element, all, context, frame)?),
                _ => run.push(self.field(element, context, frame)?),
            }
        }
        Ok(run)
    }

    /// Declares a field in a frame and gives its slot.
    fn declare(
        &mut self,
        element: &Element,
        frame: &mut Frame,
        spec: FieldSpec,
    ) -> Result<u16, TemplateError> {
        let slot = u16::try_from(frame.fields.len()).ok().filter(|&s| s < NONE - 1);
        let slot = slot.ok_or(at(element, TemplateFault::TooLarge))?;
        frame.fields.push(FieldSpec {
            slot: Slot(slot),
            ..spec
        });
        Ok(slot)
    }

    fn group(
        &mut self,
        element: &Element,
        all: &[Element],
        context: &Context,
        frame: &mut Frame,
    ) -> Result<Instr, TemplateError> {
        let optional = optional(element)?;
        let inner = context.enter(element)?;
        let spec = FieldSpec {
            optional,
            ..spec(element)?
        };
        let slot = self.declare(element, frame, spec)?;
        let run = self.fields(element, all, &inner, frame)?;
        let body = self.push_body(element, run, NONE)?;
        let op = if optional { Op::OptionalGroup } else { Op::Group };
        Ok(Instr {
            op,
            kind: Kind::Group,
            optional,
            slot,
            body,
            id: id_of(element)?,
            ..Instr::EMPTY
        })
    }

    fn sequence(
        &mut self,
        element: &Element,
        all: &[Element],
        context: &Context,
        frame: &mut Frame,
    ) -> Result<Instr, TemplateError> {
        let optional = optional(element)?;
        let inner = context.enter(element)?;
        let length_element = element.children.iter().find(|c| c.name == "length");
        let length = match length_element {
            Some(length) => self.scalar(length, element, &inner, Kind::U32, optional)?,
            None => Instr {
                kind: Kind::U32,
                optional,
                ..Instr::EMPTY
            },
        };
        let mut entry = Frame::default();
        let run = self.fields(element, all, &inner, &mut entry)?;
        let entry = self.push_frame(element, entry)?;
        let body = self.push_body(element, run, entry)?;
        self.bodies[usize::from(body)].length = length;
        let tag = if length.id != 0 {
            length.id
        } else {
            id_of(element)?
        };
        let spec = FieldSpec {
            tag,
            body,
            optional,
            ..spec(element)?
        };
        let slot = self.declare(element, frame, spec)?;
        Ok(Instr {
            op: Op::Sequence,
            kind: Kind::Sequence,
            optional,
            slot,
            body,
            id: tag,
            ..Instr::EMPTY
        })
    }

    fn field(
        &mut self,
        element: &Element,
        context: &Context,
        frame: &mut Frame,
    ) -> Result<Instr, TemplateError> {
        let kind = match element.name.as_str() {
            "uInt32" => Kind::U32,
            "uInt64" => Kind::U64,
            "int32" => Kind::I32,
            "int64" => Kind::I64,
            "decimal" => Kind::Decimal,
            "byteVector" => Kind::Bytes,
            "string" => match element.attribute("charset") {
                None | Some("ascii") => Kind::Ascii,
                Some("unicode") => Kind::Unicode,
                Some(_) => return Err(syntax(element, "charset is neither 'ascii' nor 'unicode'")),
            },
            _ => return Err(syntax(element, "unknown field type")),
        };
        let optional = optional(element)?;
        let spec = FieldSpec {
            optional,
            ..spec(element)?
        };
        let has_part = |name| element.children.iter().any(|c| c.name == name);
        let mut instr = if kind == Kind::Decimal && (has_part("exponent") || has_part("mantissa")) {
            self.decimal_parts(element, context, optional)?
        } else {
            self.scalar(element, element, context, kind, optional)?
        };
        let constant = match instr.op {
            Op::Constant | Op::OptionalConstant => instr.initial,
            _ => NONE,
        };
        instr.slot = self.declare(element, frame, FieldSpec { constant, ..spec })?;
        Ok(instr)
    }

    fn decimal_parts(
        &mut self,
        element: &Element,
        context: &Context,
        optional: bool,
    ) -> Result<Instr, TemplateError> {
        let mut parts = [
            Instr {
                kind: Kind::I32,
                optional,
                id: id_of(element)?,
                ..Instr::EMPTY
            },
            Instr {
                kind: Kind::I64,
                id: id_of(element)?,
                ..Instr::EMPTY
            },
        ];
        let mut inner = context.clone();
        inner.inherit(element);
        for child in &element.children {
            let (part, kind, optional) = match child.name.as_str() {
                "exponent" => (0, Kind::I32, optional),
                "mantissa" => (1, Kind::I64, false),
                _ => return Err(syntax(child, "expected 'exponent' or 'mantissa'")),
            };
            // The parts have no name of their own: their keys are the decimal's with a suffix.
            let name = element.attribute("name").unwrap_or("");
            parts[part] = Instr {
                id: id_of(element)?,
                ..self.operators(child, child.children.iter(), &inner, kind, optional, (name, part))?
            };
        }
        let body = self.push_body(element, parts.to_vec(), NONE)?;
        Ok(Instr {
            op: Op::DecimalParts,
            kind: Kind::Decimal,
            optional,
            body,
            id: id_of(element)?,
            ..Instr::EMPTY
        })
    }

    /// A field of one value. A length without a name goes by its sequence's: `named`.
    fn scalar(
        &mut self,
        element: &Element,
        named: &Element,
        context: &Context,
        kind: Kind,
        optional: bool,
    ) -> Result<Instr, TemplateError> {
        let mut inner = context.clone();
        inner.inherit(element);
        let own = element.attribute("name").or(named.attribute("name"));
        let name = own.unwrap_or("");
        // Byte vectors and Unicode strings may name their length preamble; that has no effect.
        let operators = element.children.iter().filter(|c| c.name != "length");
        let instr = self.operators(element, operators, &inner, kind, optional, (name, 2))?;
        Ok(Instr {
            id: id_of(element)?,
            ..instr
        })
    }

    /// The instruction of a field of type `kind` from its operator element. `key`: default key and which part
    /// of it.
    fn operators<'e>(
        &mut self,
        field: &Element,
        mut elements: impl Iterator<Item = &'e Element>,
        context: &Context,
        kind: Kind,
        optional: bool,
        (name, part): (&str, usize),
    ) -> Result<Instr, TemplateError> {
        let mut instr = Instr {
            kind,
            optional,
            ..Instr::EMPTY
        };
        let Some(element) = elements.next() else {
            return Ok(instr);
        };
        if let Some(second) = elements.next() {
            return Err(syntax(second, "a field has one operator at most"));
        }
        instr.op = match element.name.as_str() {
            "constant" if optional => Op::OptionalConstant,
            "constant" => Op::Constant,
            "copy" => Op::Copy,
            "default" => Op::Default,
            "increment" => Op::Increment,
            "delta" => Op::Delta,
            "tail" => Op::Tail,
            _ => return Err(syntax(element, "unknown operator")),
        };
        let applies = match instr.op {
            Op::Increment => kind.is_integer(),
            Op::Tail => kind.is_text(),
            _ => true,
        };
        if !applies {
            return Err(at(element, TemplateFault::Operator));
        }
        instr.initial = match element.attribute("value") {
            Some(value) => self.initial(element, kind, value)?,
            None => NONE,
        };
        match instr.op {
            Op::Constant | Op::OptionalConstant if instr.initial == NONE => {
                return Err(at(element, TemplateFault::ConstantWithoutValue));
            }
            Op::Default if instr.initial == NONE && !optional => {
                return Err(at(element, TemplateFault::DefaultWithoutValue));
            }
            Op::Copy | Op::Increment | Op::Delta | Op::Tail => {
                let suffix = ["|exponent", "|mantissa", ""][part.min(2)];
                let mut key = element.attribute("ns").unwrap_or(&context.namespace).to_owned();
                key.push('|');
                match element.attribute("key") {
                    Some(explicit) => key.push_str(explicit),
                    None => {
                        if name.is_empty() {
                            return Err(syntax(field, "a field whose operator keeps a value needs a name"));
                        }
                        key.push_str(name);
                        key.push_str(suffix);
                    }
                }
                let next = self.dictionary.len();
                let entry = *self
                    .dictionary
                    .entry((context.scope(element), key))
                    .or_insert(next.min(0xffff) as u16);
                if entry == NONE {
                    return Err(at(element, TemplateFault::TooLarge));
                }
                instr.dict = entry;
            }
            _ => {}
        }
        Ok(instr)
    }

    fn initial(&mut self, element: &Element, kind: Kind, value: &str) -> Result<u16, TemplateError> {
        let bad = at(element, TemplateFault::InitialValue);
        let cell = match kind {
            Kind::U32 => value
                .trim()
                .parse::<u32>()
                .ok()
                .map(|v| Cell::new(kind, u64::from(v))),
            Kind::U64 => value.trim().parse::<u64>().ok().map(|v| Cell::new(kind, v)),
            Kind::I32 => value
                .trim()
                .parse::<i32>()
                .ok()
                .map(|v| Cell::new(kind, i64::from(v) as u64)),
            Kind::I64 => value
                .trim()
                .parse::<i64>()
                .ok()
                .map(|v| Cell::new(kind, v as u64)),
            Kind::Decimal => decimal(value.trim()).map(|d| Cell::decimal(d.exponent, d.mantissa)),
            Kind::Ascii if value.is_ascii() => Some(self.keep(kind, value.as_bytes())),
            Kind::Unicode => Some(self.keep(kind, value.as_bytes())),
            Kind::Bytes => hex(value).map(|bytes| self.keep(kind, &bytes)),
            _ => None,
        };
        let index = u16::try_from(self.initials.len()).ok().filter(|&i| i != NONE);
        let index = index.ok_or(at(element, TemplateFault::TooLarge))?;
        self.initials.push(cell.ok_or(bad)?);
        Ok(index)
    }

    fn keep(&mut self, kind: Kind, bytes: &[u8]) -> Cell {
        let cell = Cell::new(kind, (self.text.len() as u64) << 32 | bytes.len() as u64);
        self.text.extend_from_slice(bytes);
        cell
    }
}

pub(super) fn optional(element: &Element) -> Result<bool, TemplateError> {
    match element.attribute("presence") {
        None | Some("mandatory") => Ok(false),
        Some("optional") => Ok(true),
        Some(_) => Err(syntax(element, "presence is neither 'mandatory' nor 'optional'")),
    }
}

/// The `id` attribute where it is a number: the specification allows any token, the exchanges put FIX tags
/// there.
fn id_of(element: &Element) -> Result<u32, TemplateError> {
    Ok(element
        .attribute("id")
        .and_then(|id| id.trim().parse().ok())
        .unwrap_or(0))
}

pub(super) fn spec(element: &Element) -> Result<FieldSpec, TemplateError> {
    let name = element
        .attribute("name")
        .ok_or(syntax(element, "field without a name"))?;
    Ok(FieldSpec {
        name: name.to_owned(),
        tag: id_of(element)?,
        slot: Slot::MISSING,
        body: NONE,
        constant: NONE,
        optional: false,
    })
}

/// A decimal initial value; normalised, as the specification wants conversions from strings (appendix 3.2).
fn decimal(text: &str) -> Option<Decimal> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() == 0 || fraction.len() > 63 {
        return None;
    }
    let mut mantissa: i64 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let digit = if digit.is_ascii_digit() {
            i64::from(digit - b'0')
        } else {
            return None;
        };
        mantissa = mantissa.checked_mul(10)?;
        mantissa = if negative {
            mantissa.checked_sub(digit)?
        } else {
            mantissa.checked_add(digit)?
        };
    }
    Some(Decimal::new(mantissa, -(fraction.len() as i8)).normalised())
}

/// A byte vector initial value: pairs of hexadecimal digits, white space between them ignored.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).map(|d| d as u8))
        .collect();
    let digits = digits?;
    (digits.len() % 2 == 0).then(|| {
        digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    })
}
