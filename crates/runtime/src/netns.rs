//! Two network namespaces joined by a pair of virtual Ethernet devices: a network of two hosts on one
//! machine. Made by `ip` (iproute2) as root, and removed when dropped. And namespaces that others have made,
//! by their names.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

/// Addresses of the two ends (RFC 2544 keeps 198.18.0.0/15 for measuring).
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];
/// Hardware addresses, locally administered, so that neither end has to ask for the other's.
const HARDWARE: [&str; 2] = ["02:00:00:00:18:01", "02:00:00:00:18:02"];

/// A network namespace that there is already.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// The one that `ip netns` knows by this name.
    ///
    /// # Errors
    /// What the kernel says: there is none of that name, or it may not be read.
    pub fn named(name: &str) -> io::Result<Namespace> {
        let is_name = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        match is_name {
            true => File::open(format!("/var/run/netns/{name}")).map(Namespace),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("'{name}' is no name of a network namespace"),
            )),
        }
    }

    /// The one that the calling thread is in.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn own() -> io::Result<Namespace> {
        File::open("/proc/thread-self/ns/net").map(Namespace)
    }

    /// Moves the calling thread into it: sockets and interfaces that it opens, and processes that it starts
    /// from now on are there.
    ///
    /// # Errors
    /// What the kernel says, without CAP_SYS_ADMIN that it is not permitted.
    pub fn enter(&self) -> io::Result<()> {
        sys::enter_network_namespace(&self.0)
    }
}

/// Both namespaces.
#[derive(Debug)]
pub struct VethPair {
    names: [String; 2],
}

impl VethPair {
    /// Makes them, with names that begin with `prefix` (at most 8 letters and digits) and are this process's
    /// own.
    ///
    /// # Errors
    /// The `ip` command that failed and what it said: without root, without iproute2, without veth in the
    /// kernel.
    pub fn create(prefix: &str) -> io::Result<VethPair> {
        VethPair::with_queues(prefix, 1)
    }

    /// The same with so many queues at each end. What a processor sends comes by the queue of its number, as
    /// far as there is one, and is received there.
    ///
    /// # Errors
    /// As [`VethPair::create`].
    pub fn with_queues(prefix: &str, queues: u32) -> io::Result<VethPair> {
        // Two of one process are two.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let id = std::process::id();
        let n = MADE.fetch_add(1, Ordering::Relaxed);
        let pair = VethPair {
            names: ["a", "b"].map(|end| format!("{prefix}-{id}-{n}{end}")),
        };
        let [a, b] = &pair.names;
        // From here on dropping `pair` removes what was made.
        ip(&["netns", "add", a])?;
        ip(&["netns", "add", b])?;
        let count = queues.to_string();
        let of_queues = ["numtxqueues", &count, "numrxqueues", &count];
        let near = ["link", "add", "veth0", "address", HARDWARE[0], "netns", a];
        let far = [
            "type",
            "veth",
            "peer",
            "name",
            "veth0",
            "address",
            HARDWARE[1],
            "netns",
            b,
        ];
        ip(&[&near[..], &of_queues, &far, &of_queues].concat())?;
        for (i, name) in pair.names.iter().enumerate() {
            let address = format!("{}/24", ADDRESSES[i]);
            let other = ADDRESSES[1 - i].to_string();
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            ip(&["-n", name, "addr", "add", &address, "dev", "veth0"])?;
            ip(&["-n", name, "link", "set", "veth0", "up"])?;
            ip(&["-n", name, "route", "add", "224.0.0.0/4", "dev", "veth0"])?;
            let far = HARDWARE[1 - i];
            ip(&[
                "-n",
                name,
                "neigh",
                "add",
                &other,
                "lladdr",
                far,
                "dev",
                "veth0",
                "nud",
                "permanent",
            ])?;
        }
        if queues > 1 {
            for (name, queue) in pair
                .names
                .iter()
                .flat_map(|name| (0..queues).map(move |queue| (name, queue)))
            {
                // The folder of a device is its namespace's, which `ip netns exec` shows.
                let mask = format!("{:x}", 1_u64 << queue.min(63));
                let command = format!("echo {mask} > /sys/class/net/veth0/queues/tx-{queue}/xps_cpus");
                ip(&["netns", "exec", name, "sh", "-c", &command])?;
            }
        }
        Ok(pair)
    }

    /// The name of an end's namespace, 0 or 1, as `ip netns exec` takes it.
    pub fn name(&self, end: usize) -> &str {
        &self.names[end]
    }

    /// Changes the network of an end, 0 or 1, by an `ip` command, such as `route del`.
    ///
    /// # Errors
    /// The command and what it said.
    pub fn ip(&self, end: usize, arguments: &[&str]) -> io::Result<()> {
        self.run("ip", end, arguments)
    }

    /// Changes how an end, 0 or 1, queues what it sends, by a `tc` command, such as `qdisc del`.
    ///
    /// # Errors
    /// The command and what it said.
    pub fn tc(&self, end: usize, arguments: &[&str]) -> io::Result<()> {
        self.run("tc", end, arguments)
    }

    fn run(&self, program: &str, end: usize, arguments: &[&str]) -> io::Result<()> {
        let mut all = vec!["-n", self.name(end)];
        all.extend(arguments);
        run(program, &all)
    }

    /// The address of an end, 0 or 1.
    pub fn address(&self, end: usize) -> Ipv4Addr {
        ADDRESSES[end]
    }

    /// Moves the calling thread into the namespace of an end, 0 or 1: sockets and interfaces that it opens
    /// from now on are those of that host.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn enter(&self, end: usize) -> io::Result<()> {
        Namespace::named(&self.names[end])?.enter()
    }
}

impl Drop for VethPair {
    fn drop(&mut self) {
        for name in &self.names {
            // The devices go with their namespace; one that was never made cannot be removed.
            let _ = ip(&["netns", "del", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> io::Result<()> {
    run("ip", arguments)
}

fn run(program: &str, arguments: &[&str]) -> io::Result<()> {
    let output = Command::new(program).args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "`{program} {}`: {}",
        arguments.join(" "),
        said.trim()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Interface;

    #[test]
    fn two_pairs_of_one_process_are_two_networks() {
        let (Ok(one), Ok(other)) = (VethPair::create("twtwo"), VethPair::create("twtwo")) else {
            return tickwire_testdata::not_tested("no network namespaces here");
        };
        drop(other);
        one.ip(0, &["link", "show", "veth0"])
            .expect("the other took only its own with it");
    }

    #[test]
    fn queues_of_an_end_are_those_of_its_namespace() {
        for queues in [1, 2] {
            let Ok(pair) = VethPair::with_queues("twqueue", queues) else {
                return tickwire_testdata::not_tested("no network namespaces here");
            };
            std::thread::scope(|scope| {
                let inside = scope.spawn(|| {
                    pair.enter(1).expect("entered");
                    let device = Interface::find("veth0").expect("it is there");
                    assert_eq!(device.receive_queues(), queues);
                    assert!(device.is_local(), "by its driver");
                    assert_eq!(crate::xdp::card_clock("veth0").expect("it is asked"), None);
                    let loopback = Interface::loopback().expect("it is there");
                    assert_eq!(loopback.receive_queues(), 1, "its driver does not say");
                });
                inside.join().expect("no panic");
            });
        }
    }

    #[test]
    fn a_thread_comes_back_to_its_own_namespace_and_a_path_is_no_name() {
        let wrong = Namespace::named("../../etc/passwd").expect_err("no name");
        assert_eq!(wrong.kind(), io::ErrorKind::InvalidInput);
        let pair = match VethPair::create("twown") {
            Ok(pair) => pair,
            Err(why) => return tickwire_testdata::not_tested(format!("no network namespaces here: {why}")),
        };
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let own = Namespace::own().expect("a thread has one");
                let before = Interface::all().len();
                pair.enter(1).expect("entered");
                assert!(Interface::find("veth0").is_ok());
                own.enter().expect("back");
                assert_eq!(Interface::all().len(), before);
            });
            thread.join().expect("no panic");
        });
    }

    #[test]
    fn a_thread_in_a_namespace_sees_its_end_only_and_nothing_is_left_behind() {
        let pair = match VethPair::create("twtest") {
            Ok(pair) => pair,
            Err(why) => return tickwire_testdata::not_tested(format!("no network namespaces here: {why}")),
        };
        for end in [0, 1] {
            std::thread::scope(|scope| {
                let inside = scope.spawn(|| {
                    pair.enter(end).expect("entered");
                    let device = Interface::find("veth0").expect("it is there");
                    assert_eq!(device.address(), Some(pair.address(end)));
                });
                inside.join().expect("no panic");
            });
        }
        let names = pair.names.clone();
        drop(pair);
        assert!(
            names
                .iter()
                .all(|name| !std::path::Path::new(&format!("/var/run/netns/{name}")).exists())
        );
    }
}
