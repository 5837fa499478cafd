//! Child processes that never outlive their owner.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::affinity::Cores;
use crate::sys;

/// A child process, ended when this is dropped.
#[derive(Debug)]
pub struct ChildGuard {
    child: Child,
    ended: Option<ExitStatus>,
}

impl ChildGuard {
    /// Starts a command. For the case that this process is killed, the child calls
    /// [`crate::signal::die_with_parent`]. The child may use every core that this process may, though the
    /// calling thread be pinned to one.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn spawn(command: &mut Command) -> io::Result<ChildGuard> {
        Cores::count().give_to(command);
        Ok(ChildGuard {
            child: command.spawn()?,
            ended: None,
        })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The child, for its pipes.
    pub fn child_mut(&mut self) -> &mut Child {
        &mut self.child
    }

    /// How it ended, `None` while it runs. Never waits.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }

    /// Waits up to `patience` for it to end; `None` if it still runs.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait_for(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + patience;
        loop {
            let status = self.try_wait()?;
            if status.is_some() || Instant::now() >= deadline {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Takes it off its core until [`ChildGuard::resume`] (SIGSTOP): for measuring something else there.
    ///
    /// # Errors
    /// What the kernel says; that the child has ended is none.
    pub fn pause(&mut self) -> io::Result<()> {
        self.signal(libc::SIGSTOP)
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Errors
    /// As [`ChildGuard::pause`].
    pub fn resume(&mut self) -> io::Result<()> {
        self.signal(libc::SIGCONT)
    }

    fn signal(&mut self, signal: i32) -> io::Result<()> {
        match self.try_wait()? {
            Some(_) => Ok(()),
            // The process has not been waited for, so its id still belongs to it.
            None => sys::send_signal(self.child.id(), signal),
        }
    }

    /// Asks it to stop (SIGTERM), waits up to `patience`, then kills it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn stop(&mut self, patience: Duration) -> io::Result<ExitStatus> {
        if let Some(status) = self.try_wait()? {
            return Ok(status);
        }
        // The process has not been waited for, so its id still belongs to it.
        sys::send_signal(self.child.id(), libc::SIGTERM)?;
        // One that is paused hears of it only when it goes on.
        sys::send_signal(self.child.id(), libc::SIGCONT)?;
        if let Some(status) = self.wait_for(patience)? {
            return Ok(status);
        }
        self.child.kill()?;
        let status = self.child.wait()?;
        self.ended = Some(status);
        Ok(status)
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Nothing better can be done about a failure here.
        let _ = self.stop(Duration::from_millis(500));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_stopped_child_ends_by_sigterm_and_a_deaf_one_is_killed() {
        let mut child = ChildGuard::spawn(Command::new("sleep").arg("60")).expect("sleep exists");
        assert_eq!(
            child.stop(Duration::from_secs(5)).expect("stopped").signal(),
            Some(libc::SIGTERM)
        );
        let mut deaf =
            ChildGuard::spawn(Command::new("sh").args(["-c", "trap '' TERM; while :; do sleep 0.05; done"]))
                .expect("sh exists");
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(
            deaf.stop(Duration::from_millis(50)).expect("stopped").signal(),
            Some(libc::SIGKILL)
        );
    }

    #[test]
    fn a_dropped_guard_leaves_no_process_behind() {
        let child = ChildGuard::spawn(Command::new("sleep").arg("60")).expect("sleep exists");
        let pid = child.id();
        drop(child);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
    #[test]
    fn a_child_of_a_pinned_thread_may_use_every_core_that_the_process_may() {
        let cores = Cores::count();
        let path = std::env::temp_dir().join(format!("tickwire-child-cores-{}", std::process::id()));
        let (core, file) = (cores.usable()[0], path.clone());
        let spawn = move || {
            cores.pin(core).expect("available");
            let command = format!("grep ^Cpus_allowed: /proc/self/status > '{}'", file.display());
            let mut child = ChildGuard::spawn(Command::new("sh").args(["-c", &command])).expect("sh exists");
            child.wait_for(Duration::from_secs(60)).expect("the kernel says")
        };
        let ended = std::thread::spawn(spawn).join().expect("no panic");
        assert!(ended.is_some_and(|status| status.success()));
        let said = std::fs::read_to_string(&path).expect("written");
        std::fs::remove_file(&path).expect("there");
        let mask = said.split_whitespace().last().expect("a mask").replace(',', "");
        let allowed: u32 = mask
            .chars()
            .filter_map(|c| c.to_digit(16))
            .map(u32::count_ones)
            .sum();
        assert_eq!(allowed as usize, cores.usable().len(), "{said}");
    }
}
