//! The simulated core beside the program that uses it: registers are written and read, frames come in and go
//! out, and its clock stands still meanwhile. What a program does with a core in a machine is tried so.

use std::collections::VecDeque;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::record::{Answer, Frame, Record};
use crate::stimulus::framed;

/// A core that runs when it is told to.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let source = std::fs::read_to_string("examples/hardware/core_taker.tw")?;
/// use tickwire_cosim::Cosim;
/// use tickwire_rtl::registers::control;
///
/// let cosim = Cosim::new(&source, &|_| Err(String::new()), &tickwire_rtl::Target::default(), "build/core".as_ref())?;
/// let mut core = cosim.live()?;
/// core.run(20_000)?;
/// core.write(0, control::DISARM)?;
/// assert_eq!(core.read(5)?, 0, "no order has left");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Live {
    child: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
    frames: VecDeque<Frame>,
}

impl Live {
    pub(crate) fn start(program: &Path) -> io::Result<Live> {
        let program = std::path::absolute(program)?;
        let mut child = Command::new(program)
            .args(["-", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ends = (child.stdin.take(), child.stdout.take());
        let (Some(to), Some(from)) = ends else {
            return Err(io::Error::other("it has no standard input and output"));
        };
        Ok(Live {
            child,
            to: BufWriter::new(to),
            from: BufReader::new(from),
            frames: VecDeque::new(),
        })
    }

    /// Writes a register, behind everything written before, a clock each. It is done with the next
    /// [`Live::run`] or [`Live::read`].
    ///
    /// # Errors
    /// The core is gone.
    pub fn write(&mut self, address: u8, value: u32) -> io::Result<()> {
        self.to.write_all(b"W")?;
        self.to.write_all(&0_u64.to_le_bytes())?;
        self.to.write_all(&[address])?;
        self.to.write_all(&value.to_le_bytes())
    }

    /// A register, below 64, once everything is written.
    ///
    /// # Errors
    /// The core is gone.
    pub fn read(&mut self, address: u8) -> io::Result<u32> {
        self.to.write_all(&[b'R', address])?;
        match self.answer()? {
            Answer::Register(value) => Ok(value),
            Answer::Ran => Err(broken()),
        }
    }

    /// A datagram comes by a line (0 A, 1 B, 2 software's own), as a good frame of [`crate::feed`]'s groups.
    ///
    /// # Errors
    /// The core is gone.
    pub fn frame(&mut self, line: u8, datagram: &[u8]) -> io::Result<()> {
        let frame = framed(line, datagram);
        self.to.write_all(b"F")?;
        self.to.write_all(&0_u64.to_le_bytes())?;
        self.to.write_all(&[line, 0])?;
        self.to.write_all(&(frame.len() as u16).to_le_bytes())?;
        self.to.write_all(&frame)
    }

    /// Runs so many clocks, and until everything is written.
    ///
    /// # Errors
    /// The core is gone: an assertion of it failed, of which it says more itself.
    pub fn run(&mut self, clocks: u64) -> io::Result<()> {
        self.to.write_all(b"S")?;
        self.to.write_all(&clocks.to_le_bytes())?;
        match self.answer()? {
            Answer::Ran => Ok(()),
            Answer::Register(_) => Err(broken()),
        }
    }

    /// The next frame that has left.
    pub fn take_frame(&mut self) -> Option<Frame> {
        self.frames.pop_front()
    }

    fn answer(&mut self) -> io::Result<Answer> {
        self.to.flush()?;
        let mut record = Record::empty();
        let answer = record.until_answer(&mut self.from).ok_or_else(broken)?;
        self.frames.extend(record.frames);
        Ok(answer)
    }
}

fn broken() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the simulated core has ended, or says what is not its record",
    )
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
