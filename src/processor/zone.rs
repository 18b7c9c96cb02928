//! The zone filter of route answers (spec 7.2).

use crate::protocol::command::RemotingCommand;

/// The zone a requester wants to stay in; `None`: all zones. The name is not trimmed, but a blank one does not count.
pub(super) fn wanted<'a>(request: &'a RemotingCommand<'_>) -> Option<&'a str> {
    let enabled = super::boolean(request, "__ZONE_MODE").unwrap_or(false);
    request
        .ext
        .get("__ZONE_NAME")
        .filter(|name| enabled && !name.trim().is_empty())
}
