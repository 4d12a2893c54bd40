//! Where queue managers are.

use core::fmt;
use core::str::FromStr;
use std::net::IpAddr;

use ferrymq_transport::Target;

/// Where a queue manager can be reached: `http://127.0.0.1:1414` for plain text, which is for loopback only, or
/// `https://host:port[,host:port...]`, tried in that order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    secure: bool,
    targets: Vec<Target>,
}

/// Why a text is no [`ServerUrl`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerUrlError {
    /// Neither `http://` nor `https://`.
    #[error("the address `{0}` begins with neither http:// nor https://")]
    Scheme(String),
    /// Not `host:port`.
    #[error("`{0}` is not host:port")]
    Address(String),
    /// Plain text to another machine.
    #[error("`{0}` is not this machine: plain text is for loopback only, use https://")]
    NotLoopback(String),
}

impl ServerUrl {
    /// Whether the connection is made over TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The addresses in the order in which they are tried.
    #[must_use]
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

impl FromStr for ServerUrl {
    type Err = ServerUrlError;

    fn from_str(text: &str) -> Result<Self, ServerUrlError> {
        let (secure, rest) = if let Some(rest) = text.strip_prefix("https://") {
            (true, rest)
        } else if let Some(rest) = text.strip_prefix("http://") {
            (false, rest)
        } else {
            return Err(ServerUrlError::Scheme(text.to_owned()));
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let mut targets = Vec::new();
        for address in rest.split(',').map(str::trim) {
            let target = address
                .parse()
                .ok()
                .filter(|target: &Target| target.port != 0);
            let target = target.ok_or_else(|| ServerUrlError::Address(address.to_owned()))?;
            if !secure && !is_loopback(&target.host) {
                return Err(ServerUrlError::NotLoopback(address.to_owned()));
            }
            targets.push(target);
        }
        Ok(Self { secure, targets })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        let targets: Vec<String> = self.targets.iter().map(Target::to_string).collect();
        write!(f, "{scheme}://{}", targets.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_print_as_they_were() {
        for url in [
            "http://127.0.0.1:1414",
            "http://localhost:1414",
            "http://[::1]:1414",
            "https://qm1.example:1414,qm2.example:1415",
        ] {
            let parsed: ServerUrl = url.parse().unwrap();
            assert_eq!(parsed.to_string(), url);
            assert_eq!(parsed.is_secure(), url.starts_with("https"));
        }
        let slash: ServerUrl = "https://h:1/".parse().unwrap();
        assert_eq!(slash.to_string(), "https://h:1");
    }

    #[test]
    fn plain_text_to_another_machine_is_refused() {
        let check = |url: &str| url.parse::<ServerUrl>().unwrap_err();
        assert_eq!(
            check("http://192.0.2.1:1414"),
            ServerUrlError::NotLoopback("192.0.2.1:1414".into())
        );
        assert_eq!(
            check("http://127.0.0.1:1414,h:1"),
            ServerUrlError::NotLoopback("h:1".into())
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let check = |url: &str| url.parse::<ServerUrl>().unwrap_err();
        assert_eq!(
            check("127.0.0.1:1414"),
            ServerUrlError::Scheme("127.0.0.1:1414".into())
        );
        for (url, part) in [
            ("https://h", "h"),
            ("https://h:0", "h:0"),
            ("https://h:65536", "h:65536"),
            ("https://:1", ":1"),
            ("https://::1:1", "::1:1"),
            ("https://h:1,", ""),
            ("https://user@h:1", "user@h:1"),
            ("https://h:1/path", "h:1/path"),
        ] {
            assert_eq!(check(url), ServerUrlError::Address(part.into()), "{url}");
        }
    }
}
