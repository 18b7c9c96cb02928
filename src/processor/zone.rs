//! The zone filter of route answers (spec 7.2).

use crate::protocol::command::RemotingCommand;

/// The zone a requester wants to stay in; `None`: all zones. The name is not trimmed, but a blank one does not count.
pub(super) fn wanted<'a>(request: &'a RemotingCommand<'_>) -> Option<&'a str> {
    // Few ask for it, so the mode is looked for first and the name only then.
    if !super::boolean(request, "__ZONE_MODE").unwrap_or(false) {
        return None;
    }
    let name = request.ext.get("__ZONE_NAME")?;
    (!name.trim().is_empty()).then_some(name)
}
