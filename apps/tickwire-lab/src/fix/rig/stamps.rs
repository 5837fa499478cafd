//! What a trader writes down of its orders: a file of records, the same from every engine.
//!
//! The file begins with [`MAGIC`]; a record is seven numbers of 64 bits, little end first, in the order of
//! [`Stamps`]: the sequence number, then readings of the counter. 0 is a stamp that there is not. A file that
//! begins with [`REAL_TIME`] has nanoseconds of the real-time clock in their place: not every language reads
//! the counter.

use std::io::Write;
use std::path::Path;

use tickwire_market::Nanos;
use tickwire_runtime::clock::Clock;

use tickwire_console::failure::Failure;

/// First bytes of a file.
const MAGIC: &[u8; 8] = b"TWSTMP01";
/// The same, of a file with times.
const REAL_TIME: &[u8; 8] = b"TWSTMPRT";
/// Numbers of a record.
const FIELDS: usize = 7;

/// The stamps of an order, inside the trader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stamps {
    /// MsgSeqNum of the market data message that caused it.
    pub(crate) seq: u64,
    /// After the call that received the message.
    pub(crate) bytes_in: u64,
    /// When the algorithm had the message.
    pub(crate) handed: u64,
    /// When it had decided.
    pub(crate) decided: u64,
    /// After the call that sent the order.
    pub(crate) sent: u64,
    /// After the call that received the report.
    pub(crate) report_in: u64,
    /// When the algorithm had the report.
    pub(crate) report_handed: u64,
}

impl Stamps {
    fn to_array(self) -> [u64; FIELDS] {
        [
            self.seq,
            self.bytes_in,
            self.handed,
            self.decided,
            self.sent,
            self.report_in,
            self.report_handed,
        ]
    }

    fn from_array(of: [u64; FIELDS]) -> Stamps {
        let [seq, bytes_in, handed, decided, sent, report_in, report_handed] = of;
        Stamps {
            seq,
            bytes_in,
            handed,
            decided,
            sent,
            report_in,
            report_handed,
        }
    }
}

/// Writes a file.
pub(super) fn write(path: &Path, all: &[Stamps]) -> Result<(), Failure> {
    let write = || -> std::io::Result<()> {
        let mut file = std::io::BufWriter::new(tickwire_runtime::files::create(path)?);
        file.write_all(MAGIC)?;
        for stamps in all {
            for number in stamps.to_array() {
                file.write_all(&number.to_le_bytes())?;
            }
        }
        file.flush()
    };
    write().map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))
}

/// Reads one; times become readings of the counter.
pub(super) fn read(path: &Path, clock: &Clock) -> Result<Vec<Stamps>, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::system(format!("cannot read the trader's {}: {e}", path.display())))?;
    parse(&bytes, clock).ok_or_else(|| {
        Failure::system(format!(
            "{} is no file of a trader's stamps: {} bytes",
            path.display(),
            bytes.len()
        ))
    })
}

fn parse(bytes: &[u8], clock: &Clock) -> Option<Vec<Stamps>> {
    let (records, are_times) = match bytes.strip_prefix(MAGIC) {
        Some(records) => (records, false),
        None => (bytes.strip_prefix(REAL_TIME)?, true),
    };
    let records = records.chunks_exact(8 * FIELDS);
    if !records.remainder().is_empty() {
        return None;
    }
    let record = |record: &[u8]| {
        let mut numbers = [0; FIELDS];
        for (number, bytes) in numbers.iter_mut().zip(record.chunks_exact(8)) {
            *number = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let stamps = numbers[1..].iter_mut().filter(|stamp| are_times && **stamp > 0);
        stamps.for_each(|stamp| *stamp = clock.tsc_at(Nanos(*stamp)));
        Some(Stamps::from_array(numbers))
    };
    records.map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_is_refused() {
        let path = std::env::temp_dir().join(format!("tickwire-stamps-{}", std::process::id()));
        let all = [Stamps::from_array([1, 2, 3, 4, 5, 6, 7]), Stamps::default()];
        write(&path, &all).expect("written");
        let clock = Clock::calibrate();
        assert_eq!(read(&path, &clock).expect("read"), all);
        let bytes = std::fs::read(&path).expect("a file");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(parse(&bytes[..bytes.len() - 1], &clock), None);
        assert_eq!(parse(b"something else", &clock), None);
        assert_eq!(parse(&bytes[..8], &clock), Some(Vec::new()));
        // Times of a program that does not read the counter.
        let now = clock.now();
        let mut timed = REAL_TIME.to_vec();
        for number in [9, now.0, 0, 0, 0, 0, 0] {
            timed.extend_from_slice(&number.to_le_bytes());
        }
        let read = parse(&timed, &clock).expect("a file")[0];
        assert_eq!((read.seq, read.handed), (9, 0));
        assert!(clock.nanos_at(read.bytes_in).0.abs_diff(now.0) < 1_000);
    }
}
