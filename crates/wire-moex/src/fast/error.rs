//! What can be wrong with a template file and with a stream, under the codes of FAST 1.1 (section 12,
//! "Errors").

use core::fmt;

/// What is wrong with a template file. `S` codes are the specification's static errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TemplateFault {
    /// S1: not well-formed, or not the vocabulary of template definitions; says what was expected.
    Syntax(&'static str),
    /// S2: the operator does not apply to the field's type.
    Operator,
    /// S3: the initial value does not convert to the field's type.
    InitialValue,
    /// S4: a constant without a value.
    ConstantWithoutValue,
    /// S5: a default without a value on a mandatory field.
    DefaultWithoutValue,
    /// D8: a static template reference to a template that is not in the file.
    UnknownReference,
    /// Two templates with one identifier or one name.
    DuplicateTemplate,
    /// A template reference without a name: templates nested by an identifier in the stream are not
    /// supported.
    DynamicReference,
    /// More fields, dictionary entries or nesting than a plan can hold (65,534 fields or entries, 16 levels).
    TooLarge,
}

impl TemplateFault {
    /// The specification's code, empty for limits of this implementation.
    pub const fn code(self) -> &'static str {
        match self {
            TemplateFault::Syntax(_) => "S1",
            TemplateFault::Operator => "S2",
            TemplateFault::InitialValue => "S3",
            TemplateFault::ConstantWithoutValue => "S4",
            TemplateFault::DefaultWithoutValue => "S5",
            TemplateFault::UnknownReference => "D8",
            TemplateFault::DuplicateTemplate | TemplateFault::DynamicReference | TemplateFault::TooLarge => {
                ""
            }
        }
    }
}

/// A fault of a template file and the line it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TemplateError {
    /// What is wrong.
    pub fault: TemplateFault,
    /// Line, starting at 1.
    pub line: u32,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.fault.code().is_empty() {
            write!(f, "[{}] ", self.fault.code())?;
        }
        f.write_str(match self.fault {
            TemplateFault::Syntax(what) => what,
            TemplateFault::Operator => "operator does not apply to this type",
            TemplateFault::InitialValue => "value does not convert to the field's type",
            TemplateFault::ConstantWithoutValue => "constant without a value",
            TemplateFault::DefaultWithoutValue => "default of a mandatory field without a value",
            TemplateFault::UnknownReference => "reference to a template that is not in the file",
            TemplateFault::DuplicateTemplate => "a template of this id or name was there before",
            TemplateFault::DynamicReference => "templateRef without a name is not supported",
            TemplateFault::TooLarge => "too many fields, dictionary entries or levels",
        })
    }
}

impl core::error::Error for TemplateError {}

macro_rules! faults {
    ($($variant:ident $code:literal $sentence:literal)*) => {
        /// What is wrong with a message. `D` codes are the specification's dynamic errors, `R` its reportable
        /// ones; no code: a limit of this implementation.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Fault { $(#[doc = $sentence] $variant),* }

        impl Fault {
            /// Every fault.
            pub const ALL: &'static [Fault] = &[$(Fault::$variant),*];

            /// The specification's code, empty where it has none.
            pub const fn code(self) -> &'static str {
                match self { $(Fault::$variant => $code),* }
            }

            /// One sentence.
            pub const fn sentence(self) -> &'static str {
                match self { $(Fault::$variant => $sentence),* }
            }
        }
    };
}

faults! {
    Truncated "" "The bytes end inside a field."
    FieldType "D1" "The value's type does not convert to the field's."
    IntegerRange "D2" "An integer exceeds the bounds of the field's type."
    DecimalParts "D3" "The operators of exponent and mantissa cannot express this decimal."
    PreviousType "D4" "The previous value in the dictionary has another type."
    NoPrevious "D5" "A mandatory field is not in the stream and has neither a previous nor an initial value."
    EmptyPrevious "D6" "A mandatory field is not in the stream and its previous value is empty."
    Subtraction "D7" "A delta takes away more than the base value holds."
    UnknownTemplate "D9" "No template has this identifier."
    DecimalRange "R1" "A decimal's exponent is outside -63..63 or its mantissa exceeds 64 bits."
    Utf8 "R2" "A Unicode string is not valid UTF-8."
    NotAscii "R3" "A string of an ASCII field has other characters."
    DeltaRange "R4" "Base plus delta exceeds the field's type."
    OverlongInteger "R6" "An integer has superfluous leading groups."
    OverlongPresenceMap "R7" "A presence map ends in groups without a bit."
    ExcessPresenceBits "R8" "A presence map has bits that no field asks for."
    OverlongString "R9" "A string has a superfluous zero preamble."
    TooManyValues "" "The message has more values than the record has room for."
    TextFull "" "The message's strings exceed the record's room for text."
    OutputFull "" "The encoded message exceeds the output buffer."
    MissingMandatory "" "A mandatory field has no value to encode."
    NotExpressible "" "The tail operator cannot express a value shorter than its base."
}

/// A fault of a message: where, and in which field of which template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastError {
    /// What is wrong.
    pub fault: Fault,
    /// The field's `id` attribute (a FIX tag), 0 when the fault is not in a field or the field has no id.
    pub field: u32,
    /// The template's identifier, 0 when not known yet. For an unknown template: the identifier in the
    /// stream.
    pub template: u32,
    /// Byte offset in the input (decoding) or output (encoding) at which it was found.
    pub offset: u32,
}

impl fmt::Display for FastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.fault.code().is_empty() {
            write!(f, "[{}] ", self.fault.code())?;
        }
        let what = self.fault.sentence().trim_end_matches('.');
        write!(
            f,
            "{what} (template {}, field {}, byte {})",
            self.template, self.field, self.offset
        )
    }
}

impl core::error::Error for FastError {}
