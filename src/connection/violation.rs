//! What a peer did that ends its connection (spec 1.9, 1.11).

use std::fmt;

use crate::protocol::{frame::FrameError, header::DecodeError};

/// Why a connection is closed without an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Violation {
    /// No frame can start like this.
    Frame(FrameError),
    /// A frame whose header cannot be read.
    Decode(DecodeError),
    /// It greets in TLS.
    TlsNotSupported,
    /// It greets with a PROXY protocol header.
    ProxyNotSupported,
}

impl Violation {
    /// Whether this is likely to come from a peer that its operator wants served, and not from a stray one.
    #[must_use]
    pub fn is_of_a_wanted_peer(&self) -> bool {
        match self {
            Self::Frame(FrameError::TooLarge { .. })
            | Self::TlsNotSupported
            | Self::ProxyNotSupported => true,
            Self::Frame(_) | Self::Decode(_) => false,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // What is too large is nearly always a broker with very many topics: its operator reads this line.
            Self::Frame(error @ FrameError::TooLarge { .. }) => write!(
                f,
                "{error}; raise com.rocketmq.remoting.frameMaxLength here, or let the broker register its topics in \
                 slices (enableSplitRegistration=true)"
            ),
            Self::Frame(error) => write!(f, "{error}"),
            Self::Decode(error) => write!(f, "{error}"),
            Self::TlsNotSupported => write!(
                f,
                "it greets in TLS; TLS is not supported yet, set tls.enable=false at the peer"
            ),
            Self::ProxyNotSupported => write!(
                f,
                "it starts with a PROXY protocol header; that is not supported yet, switch it off at the load balancer"
            ),
        }
    }
}

impl std::error::Error for Violation {}

impl From<FrameError> for Violation {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

impl From<DecodeError> for Violation {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}
