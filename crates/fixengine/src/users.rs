//! Who may log on to a session that listens: names and passwords (553, 554) of the configuration or of a
//! file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use tickwire_fix::{LogonRequest, Secret};
use tickwire_runtime::files;

use crate::observer::Observer;

/// Names with their passwords. Prints without passwords.
#[derive(Clone, Default)]
pub struct Users(BTreeMap<Vec<u8>, Secret>);

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.0.len())
    }
}

impl Users {
    /// One of them.
    pub fn one(name: &[u8], password: Secret) -> Users {
        Users(BTreeMap::from([(name.to_vec(), password)]))
    }

    /// Lines of `name:password`; `#` begins a comment, the first colon ends the name.
    pub fn read(path: &Path, observer: &dyn Observer) -> Result<Users, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut users = Users::default();
        for (number, line) in text.lines().enumerate() {
            // A wrong line is not repeated: it may be secret.
            let wrong = |why: &str| format!("{}, line {}: {why}", path.display(), number + 1);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, password) = line
                .split_once(':')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| wrong("must be name:password"))?;
            let password = Secret::new(password.as_bytes())
                .ok_or_else(|| wrong("the password must be at most 63 printable ASCII characters"))?;
            if users.0.insert(name.into(), password).is_some() {
                return Err(wrong("this name a second time"));
            }
        }
        if let Some(mode) = files::is_readable_by_others(path) {
            observer.warn(format_args!(
                "{} holds passwords and others may read it (mode {mode:04o}): chmod go-rwx {}",
                path.display(),
                path.display()
            ));
        }
        match users.0.is_empty() {
            true => Err(format!("{} names nobody: nobody could log on", path.display())),
            false => Ok(users),
        }
    }

    /// Whether somebody may log on; if not, what to tell.
    pub fn judge(&self, request: &LogonRequest<'_>) -> Result<(), &'static str> {
        let known = self.0.get(request.username());
        let password = known.map_or(&b""[..], Secret::expose);
        // Who is not known takes as long as who is.
        let is_right = is_same(password, request.password()) & known.is_some();
        match (is_right, request.new_password().is_empty()) {
            (false, _) => Err("Invalid username or password"),
            (true, false) => Err("NewPassword is not taken here"),
            (true, true) => Ok(()),
        }
    }
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn is_same(own: &[u8], given: &[u8]) -> bool {
    let at = |text: &[u8], n: usize| text.get(n).copied().unwrap_or(0);
    let differ = (0..64).fold(own.len() ^ given.len(), |differ, n| {
        differ | usize::from(at(own, n) ^ at(given, n))
    });
    differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_compared_whole() {
        assert!(is_same(b"", b"") && is_same(b"open sesame", b"open sesame"));
        for other in [&b"open sesam"[..], b"open sesame ", b"Open sesame", b""] {
            assert!(!is_same(b"open sesame", other));
        }
        let long = [b'x'; 63];
        assert!(is_same(&long, &long) && !is_same(&long, &[b'x'; 200]));
    }

    #[test]
    fn a_file_of_users_says_which_line_is_wrong_and_not_what_it_says() {
        let path = std::env::temp_dir().join(format!("tickwire-users-{}", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Users::read(&path, &crate::observer::Silent)
        };
        let users = read("# traders\nann:se:cret\n\nbob:\n").unwrap();
        assert_eq!(users.0[&b"ann"[..]].expose(), b"se:cret");
        assert_eq!(format!("{users:?}"), "2 users");
        for (text, why) in [
            ("ann:1\nsecret\n", "line 2: must be"),
            ("ann:1\nann:2\n", "line 2: this name"),
            ("bob:\u{fc}\n", "line 1: the password"),
            ("# nobody\n", "names nobody"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(why) && !said.contains("secret"), "{said}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
