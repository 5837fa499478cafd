//! Decompression on a thread of its own, a few pieces ahead of whoever reads: on a machine with a core to
//! spare a compressed file is read as fast as the slower of the two goes, not as slow as both together.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Bytes of a piece.
const PIECE_BYTES: usize = 1 << 18;
/// Pieces that are ready at most; when there are as many the thread waits.
const PIECES: usize = 4;

type Piece = io::Result<Vec<u8>>;

/// Reads an input ahead.
pub(super) struct Ahead {
    state: State,
    /// The piece at hand, and how much of it was taken.
    piece: Vec<u8>,
    taken: usize,
}

enum State {
    /// Nothing was read yet.
    Before(Box<dyn Read + Send>),
    Running {
        pieces: Receiver<Piece>,
        /// Pieces that were taken go back, to be filled again.
        spent: Sender<Vec<u8>>,
    },
    Over,
}

impl Ahead {
    pub(super) fn new(input: Box<dyn Read + Send>) -> Ahead {
        Ahead {
            state: State::Before(input),
            piece: Vec::new(),
            taken: 0,
        }
    }

    /// Starts the thread. It ends with the input, at its first error, or when nobody reads any more.
    ///
    /// # Errors
    /// The system lets no thread begin.
    fn start(&mut self) -> io::Result<()> {
        if !matches!(self.state, State::Before(_)) {
            return Ok(());
        }
        let State::Before(input) = std::mem::replace(&mut self.state, State::Over) else {
            return Ok(());
        };
        let (filled, pieces) = sync_channel(PIECES);
        let (spent, empty) = channel();
        let run = move || fill(input, &filled, &empty);
        crate::affinity::beside("decompression", run)?;
        self.state = State::Running { pieces, spent };
        Ok(())
    }
}

fn fill(mut input: Box<dyn Read + Send>, filled: &SyncSender<Piece>, empty: &Receiver<Vec<u8>>) {
    loop {
        let mut piece = empty.try_recv().unwrap_or_default();
        piece.resize(PIECE_BYTES, 0);
        let (told, is_last) = match input.read(&mut piece) {
            Ok(len) => {
                piece.truncate(len);
                (Ok(piece), len == 0)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => (Err(error), true),
        };
        if filled.send(told).is_err() || is_last {
            return;
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.start()?;
        while self.taken == self.piece.len() {
            let State::Running { pieces, spent } = &self.state else {
                return Ok(0);
            };
            // A thread that panicked has said nothing: that is no end of the file.
            let piece = pieces
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other("the thread that decompresses has failed")));
            match piece {
                Ok(piece) if !piece.is_empty() => {
                    let old = std::mem::replace(&mut self.piece, piece);
                    self.taken = 0;
                    // It may have ended already.
                    let _ = spent.send(old);
                }
                Ok(_) => self.state = State::Over,
                Err(error) => {
                    self.state = State::Over;
                    return Err(error);
                }
            }
        }
        let len = buffer.len().min(self.piece.len() - self.taken);
        buffer[..len].copy_from_slice(&self.piece[self.taken..self.taken + len]);
        self.taken += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives numbers, a few at a time, then an error or the end.
    struct Numbers {
        next: u32,
        last: u32,
        fails: bool,
    }

    impl Read for Numbers {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.next == self.last {
                return match std::mem::take(&mut self.fails) {
                    true => Err(io::Error::other("damaged")),
                    false => Ok(0),
                };
            }
            let bytes = self.next.to_le_bytes();
            self.next += 1;
            buffer[..4].copy_from_slice(&bytes);
            Ok(4)
        }
    }

    fn ahead(last: u32, fails: bool) -> Ahead {
        let next = 0;
        Ahead::new(Box::new(Numbers { next, last, fails }))
    }

    #[test]
    fn every_byte_comes_in_order_and_the_end_stays_the_end() {
        let mut all = Vec::new();
        let mut reader = ahead(10_000, false);
        reader.read_to_end(&mut all).unwrap();
        let expected: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
        assert!(all == expected);
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn an_error_comes_behind_what_was_before_it() {
        let mut all = Vec::new();
        let why = ahead(100, true).read_to_end(&mut all).unwrap_err();
        assert_eq!((all.len(), why.to_string().as_str()), (400, "damaged"));
    }

    #[test]
    fn a_reader_that_is_dropped_ends_the_thread() {
        struct Endless(SyncSender<()>);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                Ok(buffer.len())
            }
        }
        impl Drop for Endless {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let (ended, is_over) = sync_channel(1);
        let mut reader = Ahead::new(Box::new(Endless(ended)));
        assert!(reader.read(&mut [0; 8]).unwrap() > 0);
        drop(reader);
        is_over.recv().expect("the input is dropped with the thread");
    }
}
