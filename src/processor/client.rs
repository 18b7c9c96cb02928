//! What clients ask: `GET_ROUTEINFO_BY_TOPIC` (spec 2.7). The hot path: no allocation, no wait.

use super::{Context, Outcome, answer, answer_body, boolean, system_error, zone};
use crate::{
    protocol::{
        code::{RequestCode, ResponseCode, version},
        command::{RemotingCommand, Response},
        fastjson::Dialect,
    },
    registry::query::RouteView,
};

pub(super) fn get_route_info(
    request: &RemotingCommand<'_>,
    context: &mut Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let settings = context.snapshot.settings();
    if settings.need_wait_for_service
        && context.snapshot.age(context.now) < settings.wait_for_service
    {
        return answer(request, out, &system_error("name server not ready"));
    }
    let topic = || request.ext.get("topic");
    let found = || context.snapshot.route(topic()?);
    let Some(route) = context.route.or_else(found) else {
        // A server that is being left must not tell anyone that a topic does not exist (fault D2).
        let response = if context.go_away {
            system_error("name server is shutting down")
        } else {
            not_found(topic().unwrap_or("null"))
        };
        return answer(request, out, &response);
    };
    let view = RouteView {
        dialect: dialect(request),
        zone: zone::wanted(request),
    };
    answer_body(request, out, |out| {
        context.route_cache.write(&route, view, out)
    })
}

/// The topic whose route a request asks for, if it does.
pub(super) fn route_topic<'a>(request: &'a RemotingCommand<'_>) -> Option<&'a str> {
    if request.is_response() || request.code != RequestCode::GetRouteInfoByTopic as i32 {
        return None;
    }
    request.ext.get("topic")
}

/// Peers from 4.9.4 on, and those that ask for it, get standard JSON (spec 2.7 step 4, fault H1).
fn dialect(request: &RemotingCommand<'_>) -> Dialect {
    let strict = request.version >= version::STRICT_JSON
        || boolean(request, "acceptStandardJsonOnly").unwrap_or(false);
    if strict {
        Dialect::Strict
    } else {
        Dialect::Plain
    }
}

fn not_found(topic: &str) -> Response {
    let remark = format!(
        "No topic route info in name server for the topic: {topic}\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
    );
    Response::error(ResponseCode::TopicNotExist, remark)
}
