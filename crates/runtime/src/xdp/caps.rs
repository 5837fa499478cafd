//! What the kernel path needs of the system, and what is missing, in words.

use std::fs;

/// A capability of capabilities(7) that the kernel path needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capability {
    /// Loading programs and maps.
    Bpf,
    /// Attaching to an interface; `TCP_REPAIR`.
    NetAdmin,
    /// AF_XDP sockets.
    NetRaw,
    /// Reading packets at places that are known at run time only.
    PerfMon,
}

impl Capability {
    /// All that the filter and AF_XDP need.
    pub const ALL: [Capability; 4] = [
        Capability::Bpf,
        Capability::NetAdmin,
        Capability::NetRaw,
        Capability::PerfMon,
    ];

    /// Its name in capabilities(7).
    pub const fn name(self) -> &'static str {
        match self {
            Capability::Bpf => "CAP_BPF",
            Capability::NetAdmin => "CAP_NET_ADMIN",
            Capability::NetRaw => "CAP_NET_RAW",
            Capability::PerfMon => "CAP_PERFMON",
        }
    }

    const fn bit(self) -> u64 {
        1 << match self {
            Capability::NetAdmin => 12,
            Capability::NetRaw => 13,
            Capability::PerfMon => 38,
            Capability::Bpf => 39,
        }
    }
}

/// CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON, as it did before Linux 5.8 had them.
const SYS_ADMIN: u64 = 1 << 21;

/// Those that this process lacks.
pub fn missing() -> Vec<Capability> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    missing_of(&status)
}

/// The same by the text of a /proc/PID/status.
pub(crate) fn missing_of(status: &str) -> Vec<Capability> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    let effective = effective.unwrap_or(0);
    let has = |c: &Capability| {
        let stands_in = matches!(c, Capability::Bpf | Capability::PerfMon) && effective & SYS_ADMIN != 0;
        stands_in || effective & c.bit() != 0
    };
    Capability::ALL.into_iter().filter(|c| !has(c)).collect()
}

/// One sentence: what is needed, what is missing, how to get it.
pub fn explained(missing: &[Capability]) -> String {
    let names: Vec<&str> = missing.iter().map(|c| c.name()).collect();
    format!(
        "the kernel path needs CAP_BPF, CAP_NET_ADMIN, CAP_NET_RAW and CAP_PERFMON; this process lacks {}: run it as root, or after \
         `sudo setcap cap_bpf,cap_net_admin,cap_net_raw,cap_perfmon+ep PROGRAM` (lost whenever the program is built anew)",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_read_from_the_status_and_said_with_its_remedy() {
        let of = |bits: &str| missing_of(&format!("Name:\tx\nCapEff:\t{bits}\n"));
        assert_eq!(of("0000000000000000"), Capability::ALL);
        assert_eq!(of("000001ffffffffff"), []);
        assert_eq!(of("0000000000203000"), []);
        assert_eq!(of("000000c000001000"), [Capability::NetRaw]);
        assert_eq!(missing_of(""), Capability::ALL);
        let words = explained(&of("0000004000003000"));
        assert!(
            words.contains("lacks CAP_BPF: run it as root") && words.contains("setcap"),
            "{words}"
        );
    }
}
