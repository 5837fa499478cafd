//! What the kernel path needs of the machine, among the settings.

use super::Hot;
use super::checks::{Seen, Verdict};
use super::files::Files;
use crate::xdp::caps;

/// Whether this process may load programs and open AF_XDP sockets, and whether the kernel has them.
pub(super) fn rights(files: &Files, _: &Hot) -> Seen {
    let protocols = files.text("proc/net/protocols").unwrap_or_default();
    if protocols.is_empty() {
        return Seen::unseen("no /proc/net/protocols");
    }
    if !protocols.lines().any(|line| line.starts_with("XDP ")) {
        return Seen::new(
            Verdict::Choice,
            "this kernel was built without AF_XDP (CONFIG_XDP_SOCKETS)",
        );
    }
    let Some(status) = files.text("proc/self/status") else {
        return Seen::unseen("no /proc/self/status");
    };
    let missing = caps::missing_of(&status);
    match missing.is_empty() {
        true => Seen::good("AF_XDP in the kernel, every capability"),
        false => {
            let names: Vec<&str> = missing.iter().map(|c| c.name()).collect();
            Seen::new(
                Verdict::Choice,
                format!("this process lacks {}", names.join(", ")),
            )
        }
    }
}

/// Whether programs run as native code.
pub(super) fn compiler(files: &Files, _: &Hot) -> Seen {
    let path = "proc/sys/net/core/bpf_jit_enable";
    match files.number(path) {
        // A kernel that always compiles has no such file, or one that says 1.
        None => Seen::unseen(format!("no /{path}: the kernel compiles always, or never")),
        Some(0) => Seen::new(Verdict::Harmful, "off: programs are interpreted").with(vec![super::Write {
            path: path.into(),
            before: "0".into(),
            after: "1".into(),
        }]),
        Some(_) => {
            let hardened = files.number("proc/sys/net/core/bpf_jit_harden").unwrap_or(0);
            match hardened {
                2 => Seen::new(
                    Verdict::Choice,
                    "on; constants are blinded for everybody (bpf_jit_harden 2)",
                ),
                _ => Seen::good("on"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Tree;
    use super::*;
    use std::path::Path;

    const PROTOCOLS: &str =
        "protocol  size sockets  memory press maxhdr\nXDP        1024      0      -1   NI       0\n";

    fn seen(look: fn(&Files, &Hot) -> Seen, files: &[(&str, &str)]) -> (Verdict, String) {
        let test = std::thread::current()
            .name()
            .unwrap_or_default()
            .replace("::", "-");
        let tree = Tree::new(&test, files);
        let seen = look(&Files::new(&tree.0), &Hot::choose(Path::new("/"), None));
        (seen.verdict, seen.value)
    }

    #[test]
    fn what_is_missing_is_named() {
        let with = |caps: &str| {
            let status = format!("Name:\tx\nCapEff:\t{caps}\n");
            seen(
                rights,
                &[("proc/net/protocols", PROTOCOLS), ("proc/self/status", &status)],
            )
        };
        assert_eq!(with("000001ffffffffff").0, Verdict::Good);
        let (verdict, words) = with("000000c000001000");
        assert_eq!(
            (verdict, words.as_str()),
            (Verdict::Choice, "this process lacks CAP_NET_RAW")
        );
        let (verdict, words) = seen(rights, &[("proc/net/protocols", "protocol\nTCP 1\n")]);
        assert_eq!(verdict, Verdict::Choice);
        assert!(words.contains("CONFIG_XDP_SOCKETS"), "{words}");
        assert_eq!(seen(rights, &[]).0, Verdict::Unseen);
    }

    #[test]
    fn programs_that_are_interpreted_are_harmful() {
        let with = |jit: &str, harden: &str| {
            let files = [
                ("proc/sys/net/core/bpf_jit_enable", jit),
                ("proc/sys/net/core/bpf_jit_harden", harden),
            ];
            seen(compiler, &files).0
        };
        assert_eq!(with("0", "0"), Verdict::Harmful);
        assert_eq!(with("1", "0"), Verdict::Good);
        assert_eq!(with("1", "2"), Verdict::Choice);
        assert_eq!(seen(compiler, &[]).0, Verdict::Unseen);
    }
}
