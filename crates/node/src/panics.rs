//! What a panic of the trading thread says, kept until its orders are cancelled.
//!
//! The standard library's hook writes the message and the backtrace before anything unwinds. Names for a
//! backtrace are looked up in the whole program's symbols, and whoever reads standard error may read no more:
//! until then, or for ever, orders would stay at the venue that nobody watches any more.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::sync::Once;

use tickwire_console::note;

thread_local! {
    static OF_THIS_THREAD: RefCell<Panics> = const { RefCell::new(Panics::AreSaid) };
}

/// What becomes of a thread's panics.
enum Panics {
    /// They are no business of ours.
    AreSaid,
    AreKept,
    Kept(String, Backtrace),
}

/// While this is there, what the panics of this thread say is kept; it is said when this is dropped, which
/// never waits for a reader. Declare it in front of what has the connections.
#[must_use]
pub struct KeptPanics(());

impl KeptPanics {
    /// Begins to keep, on the calling thread alone. What other threads say is said at once, as before.
    pub fn begin() -> KeptPanics {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if !keep(panic) {
                    before(panic);
                }
            }));
        });
        OF_THIS_THREAD.with_borrow_mut(|panics| *panics = Panics::AreKept);
        KeptPanics(())
    }
}

impl Drop for KeptPanics {
    fn drop(&mut self) {
        let kept = OF_THIS_THREAD.with_borrow_mut(|panics| std::mem::replace(panics, Panics::AreSaid));
        if let Panics::Kept(words, trace) = kept {
            match trace.status() {
                BacktraceStatus::Captured => note(format_args!("{words}\nstack backtrace:\n{trace}")),
                _ => note(format_args!(
                    "{words}\nnote: run with `RUST_BACKTRACE=1` for a backtrace"
                )),
            }
        }
    }
}

/// Keeps it where this thread keeps; what a later one says stands behind the first, whose backtrace counts:
/// it comes of what the first has left.
fn keep(panic: &PanicHookInfo<'_>) -> bool {
    OF_THIS_THREAD.with(|panics| {
        // Borrowed already: a panic of what stands here, which is said.
        let Ok(mut panics) = panics.try_borrow_mut() else {
            return false;
        };
        let thread = std::thread::current();
        let said = format!("thread '{}' {panic}", thread.name().unwrap_or("without a name"));
        match &mut *panics {
            Panics::AreSaid => return false,
            Panics::AreKept => *panics = Panics::Kept(said, Backtrace::capture()),
            Panics::Kept(words, _) => {
                words.push('\n');
                words.push_str(&said);
            }
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn kept() -> Option<String> {
        OF_THIS_THREAD.with_borrow(|panics| match panics {
            Panics::Kept(words, _) => Some(words.clone()),
            Panics::AreSaid | Panics::AreKept => None,
        })
    }

    #[test]
    fn panics_of_the_thread_are_kept_until_they_are_said() {
        let panics = KeptPanics::begin();
        assert_eq!(kept(), None);
        for nth in 1..=2 {
            let ended = catch_unwind(AssertUnwindSafe(|| panic!("number {nth}")));
            assert!(ended.is_err());
        }
        let words = kept().expect("one is kept");
        assert!(
            words.contains("number 1") && words.contains("panics.rs"),
            "{words}"
        );
        // Another thread's is none of it.
        let other = std::thread::spawn(|| {
            let ended = catch_unwind(|| panic!("another thread's"));
            (ended.is_err(), kept())
        });
        assert_eq!(other.join().expect("it ends"), (true, None));
        drop(panics);
        assert_eq!(kept(), None);
        let ended = catch_unwind(|| panic!("said at once"));
        assert!(ended.is_err() && kept().is_none());
    }
}
