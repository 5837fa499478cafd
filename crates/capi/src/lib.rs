//! Recordings for C and C++: `bindings/c/tickwire_recording.h` says what there is.
//!
//! ```text
//! C: tw_recording_open(files, schema, options) ─► [`tickwire_export::reader`] ─► struct ArrowArrayStream
//! ```
//! What is handed over is the Arrow C stream interface, so that whatever reads Arrow (nanoarrow, DuckDB,
//! Arrow C++) takes it; nothing else crosses.
#![deny(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::ptr;

use clap::ValueEnum;
use tickwire_console::failure::{Code, Failure};
use tickwire_export::Schema;
use tickwire_export::arrow::{CStream, Damage, Prices};
use tickwire_export::reader::{ROWS_DEFAULT, Recording};
use tickwire_market::Nanos;
use tickwire_venues::protocol::Protocol;

/// `struct tw_recording_options` of the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `sizeof(struct tw_recording_options)`, by which a library of another version knows what is there.
    pub size: usize,
    /// Symbols, `symbols_len` of them; 0: all.
    pub symbols: *const *const c_char,
    /// How many there are.
    pub symbols_len: usize,
    /// Only what was received from then on, nanoseconds since the epoch.
    pub start_ns: u64,
    /// Only what was received before then; 0: to the end.
    pub end_ns: u64,
    /// The day of files whose times have none, or null.
    pub date: *const c_char,
    /// Feeds by group and port (TOML), or null.
    pub config: *const c_char,
    /// What the payloads are, or null.
    pub protocol: *const c_char,
    /// Rows of a batch; 0: 32,768.
    pub batch_rows: usize,
    /// Not 0: prices are `int64` in 1e-9 in the place of `decimal128(18, 9)`.
    pub prices_as_integers: c_int,
    /// Not 0: a damaged file ends where the damage is, without an error.
    pub keep_damaged: c_int,
}

/// What is asked for, out of C's hands.
struct Asked {
    files: Vec<PathBuf>,
    schema: String,
    symbols: Vec<String>,
    span: [u64; 2],
    date: Option<String>,
    config: Option<String>,
    protocol: Option<String>,
    batch_rows: usize,
    prices: Prices,
    damage: Damage,
}

fn named<T: ValueEnum>(what: &str, name: &str) -> Result<T, Failure> {
    T::from_str(name, false).map_err(|_| {
        let known = T::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value);
        let known: Vec<String> = known.map(|value| value.get_name().to_owned()).collect();
        Failure::config(format!("{what} {name:?}: give one of {}", known.join(", ")))
    })
}

fn opened(asked: Asked) -> Result<CStream, Failure> {
    let schema: Schema = named("schema", &asked.schema)?;
    let mut recording = Recording::open(asked.files)?
        .symbols(asked.symbols)
        .between(Nanos(asked.span[0]), Nanos(asked.span[1]))
        .batch_rows(asked.batch_rows);
    if let Some(date) = asked.date {
        recording = recording.date(&date)?;
    }
    if let Some(config) = asked.config {
        recording = recording.config(config);
    }
    if let Some(protocol) = asked.protocol {
        recording = recording.protocol(named::<Protocol>("protocol", &protocol)?);
    }
    let rows = recording.rows(schema)?;
    Ok(CStream::reading(
        rows,
        &schema.columns(),
        asked.prices,
        asked.damage,
    ))
}

/// A text of C's, where there is one.
///
/// # Safety
/// `text` is null, or a text that ends with NUL and stays as it is during the call.
#[allow(unsafe_code)]
unsafe fn text(text: *const c_char) -> Result<Option<String>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: it is not null, and the caller promises that it ends with NUL and is not changed.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str();
    text.map(|text| Some(text.to_owned()))
        .map_err(|_| Failure::config("a text is no UTF-8"))
}

/// Texts of C's.
///
/// # Safety
/// `texts` is null with a `len` of 0, or points to `len` pointers, each as [`text`] wants it.
#[allow(unsafe_code)]
unsafe fn texts(texts: *const *const c_char, len: usize) -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    for at in 0..len {
        if texts.is_null() {
            return Err(Failure::config(
                "a list of texts is null, and its length is not 0",
            ));
        }
        // SAFETY: the caller promises `len` pointers from here, of which `at` is one, each to a text or null.
        let one = unsafe { text(*texts.add(at)) }?;
        all.push(one.ok_or_else(|| Failure::config("a text in a list is null"))?);
    }
    Ok(all)
}

/// # Safety
/// As [`tw_recording_open`] says of its arguments.
#[allow(unsafe_code)]
unsafe fn asked(
    files: *const *const c_char,
    files_len: usize,
    schema: *const c_char,
    options: *const Options,
) -> Result<Asked, Failure> {
    // SAFETY: the caller promises a list of texts, and a text.
    let (files, schema) = unsafe { (texts(files, files_len)?, text(schema)?) };
    let mut asked = Asked {
        files: files.into_iter().map(PathBuf::from).collect(),
        schema: schema.ok_or_else(|| Failure::config("the schema is null"))?,
        symbols: Vec::new(),
        span: [0, u64::MAX],
        date: None,
        config: None,
        protocol: None,
        batch_rows: ROWS_DEFAULT,
        prices: Prices::Decimal,
        damage: Damage::Fails,
    };
    if options.is_null() {
        return Ok(asked);
    }
    // SAFETY: not null, so the caller promises options, which begin with their size.
    let size = unsafe { ptr::read(options.cast::<usize>()) };
    if size != size_of::<Options>() {
        return Err(Failure::config(format!(
            "tw_recording_options has {size} bytes, and {} here: set `size`, and take the header that came with the library",
            size_of::<Options>()
        )));
    }
    // SAFETY: they have the size of ours, and the caller promises that they are initialised.
    let told = unsafe { ptr::read(options) };
    // SAFETY: the caller promises that each is null or a text, and that there are so many symbols.
    unsafe {
        asked.symbols = texts(told.symbols, told.symbols_len)?;
        asked.date = text(told.date)?;
        asked.config = text(told.config)?;
        asked.protocol = text(told.protocol)?;
    }
    asked.span = [
        told.start_ns,
        if told.end_ns == 0 { u64::MAX } else { told.end_ns },
    ];
    if told.batch_rows > 0 {
        asked.batch_rows = told.batch_rows;
    }
    if told.prices_as_integers != 0 {
        asked.prices = Prices::Integer;
    }
    if told.keep_damaged != 0 {
        asked.damage = Damage::IsTheEnd;
    }
    Ok(asked)
}

/// Opens a recording as a stream of Arrow. 0, and `out` is a stream that the caller releases; or the number
/// of an error, `out` is as it was, and `error` has a sentence. The header says what the arguments are.
///
/// # Safety
/// `files` points to `files_len` texts that end with NUL, `schema` to another one; `options` is null or
/// points to initialised options whose texts end with NUL; `out` points to room for a
/// `struct ArrowArrayStream`, and `error` is null or points to `error_len` bytes. All of them stay as they
/// are during the call.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_recording_open(
    files: *const *const c_char,
    files_len: usize,
    schema: *const c_char,
    options: *const Options,
    out: *mut CStream,
    error: *mut c_char,
    error_len: usize,
) -> c_int {
    let open = || {
        if out.is_null() {
            return Err(Failure::config("out is null"));
        }
        // SAFETY: the caller promises of these what `asked` wants.
        unsafe { asked(files, files_len, schema, options) }.and_then(opened)
    };
    // A panic must not pass into C.
    let opened = catch_unwind(AssertUnwindSafe(open));
    let failure = match opened.unwrap_or_else(|_| Err(Failure::check("the library panicked"))) {
        Ok(stream) => {
            // SAFETY: `out` is not null, and the caller promises room for a stream; what is there is not
            // read.
            unsafe { ptr::write(out, stream) };
            return 0;
        }
        Err(failure) => failure,
    };
    if !error.is_null() && error_len > 0 {
        let bytes = failure.message.as_bytes();
        let mut len = bytes.len().min(error_len - 1);
        while !failure.message.is_char_boundary(len) {
            len -= 1;
        }
        // SAFETY: the caller promises `error_len` bytes, of which at most all but one are written, and then
        // NUL.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr().cast::<c_char>(), error, len);
            *error.add(len) = 0;
        }
    }
    match failure.code {
        Code::Usage => 2,
        Code::System => 3,
        _ => 1,
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;

    fn open(files: &[*const c_char], schema: *const c_char, options: *const Options) -> (c_int, String) {
        let mut error = [1 as c_char; 40];
        // SAFETY: the texts are literals or null, the buffer has its length; no stream is made without files.
        unsafe {
            let mut out = std::mem::MaybeUninit::<CStream>::uninit();
            let number = tw_recording_open(
                files.as_ptr(),
                files.len(),
                schema,
                options,
                out.as_mut_ptr(),
                error.as_mut_ptr(),
                error.len(),
            );
            (
                number,
                CStr::from_ptr(error.as_ptr()).to_string_lossy().into_owned(),
            )
        }
    }

    #[test]
    fn what_c_gets_wrong_is_said_and_fits_its_buffer() {
        let nowhere = c"nowhere-at-all.pcap";
        let (number, said) = open(&[nowhere.as_ptr()], c"mbo".as_ptr(), ptr::null());
        assert_eq!((number, said.len()), (3, 39), "{said}");
        assert!(said.contains("nowhere"));
        let (number, said) = open(&[nowhere.as_ptr()], c"mbo-2".as_ptr(), ptr::null());
        assert!(number == 2 && said.contains("mbo-2"), "{said}");
        assert_eq!(
            open(&[nowhere.as_ptr()], ptr::null(), ptr::null()).1,
            "the schema is null"
        );
        assert_eq!(
            open(&[ptr::null()], c"mbo".as_ptr(), ptr::null()).1,
            "a text in a list is null"
        );
        assert_eq!(
            open(&[], c"mbo".as_ptr(), ptr::null()).1,
            "give at least one file"
        );
        let options = Options {
            size: 8,
            symbols: ptr::null(),
            symbols_len: 0,
            start_ns: 0,
            end_ns: 0,
            date: ptr::null(),
            config: ptr::null(),
            protocol: ptr::null(),
            batch_rows: 0,
            prices_as_integers: 0,
            keep_damaged: 0,
        };
        assert!(
            open(&[nowhere.as_ptr()], c"mbo".as_ptr(), &options)
                .1
                .contains("has 8 bytes")
        );
        let list = Options {
            size: size_of::<Options>(),
            symbols_len: 1,
            ..options
        };
        assert!(
            open(&[nowhere.as_ptr()], c"mbo".as_ptr(), &list)
                .1
                .contains("is null")
        );
    }
}
