//! What operators and their tools ask: lists, permissions, topics, KV configuration, configuration (spec 2.8, 2.10 to 2.15).

use std::sync::Arc;

use bytes::Bytes;

use super::{
    Context, Outcome, answer, answer_body, listed_namespace, reply_to, system_error, text,
};
use crate::{
    protocol::{
        code::ResponseCode,
        command::{RemotingCommand, Response},
        name::TopicName,
        register_body,
    },
    registry::{
        Command,
        command::ReplyTo,
        query::{FLAG_UNIT, FLAG_UNIT_SUB},
    },
};

/// 106: always plain JSON, and so are the other lists (spec 2.11).
pub(super) fn cluster_info(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    answer_body(request, out, |out| context.snapshot.write_cluster_info(out))
}

/// 304
pub(super) fn system_topics(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    answer_body(request, out, |out| {
        context.snapshot.write_system_topics(out)
    })
}

/// 206
pub(super) fn all_topics(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let enabled = context.snapshot.settings().enable_all_topic_list;
    answer_list(enabled, request, out, |out| {
        context.snapshot.write_all_topics(out)
    })
}

/// 224
pub(super) fn topics_by_cluster(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let enabled = context.snapshot.settings().enable_topic_list;
    let cluster = request.ext.get("cluster");
    answer_list(enabled, request, out, |out| {
        context.snapshot.write_topics_of_cluster(cluster, out);
    })
}

/// 311, 312, 313: by the bits of `topicSysFlag` that must and must not be set.
pub(super) fn unit_topics(
    flags: UnitFlags,
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let enabled = context.snapshot.settings().enable_topic_list;
    answer_list(enabled, request, out, |out| {
        context
            .snapshot
            .write_topics_by_flag(flags.with, flags.without, out);
    })
}

/// Which topics a unit list wants (spec 2.11).
#[derive(Debug, Clone, Copy)]
pub(super) struct UnitFlags {
    with: i32,
    without: i32,
}

impl UnitFlags {
    /// 311
    pub(super) const UNIT: Self = Self {
        with: FLAG_UNIT,
        without: 0,
    };
    /// 312
    pub(super) const UNIT_SUB: Self = Self {
        with: FLAG_UNIT_SUB,
        without: 0,
    };
    /// 313
    pub(super) const UNIT_SUB_ONLY: Self = Self {
        with: FLAG_UNIT_SUB,
        without: FLAG_UNIT,
    };
}

fn answer_list(
    enabled: bool,
    request: &RemotingCommand<'_>,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) -> Outcome {
    if enabled {
        answer_body(request, out, write)
    } else {
        answer(request, out, &system_error("disable"))
    }
}

/// 205
pub(super) fn wipe_write_perm(request: &RemotingCommand<'_>, context: &Context<'_>) -> Outcome {
    let (to, broker_name) = write_perm(request, context);
    Outcome::Submit(Command::WipeWritePerm(to, broker_name))
}

/// 327
pub(super) fn add_write_perm(request: &RemotingCommand<'_>, context: &Context<'_>) -> Outcome {
    let (to, broker_name) = write_perm(request, context);
    Outcome::Submit(Command::AddWritePerm(to, broker_name))
}

/// A missing name is that of no broker, which has no topics: the count must be in the answer, the admin client unboxes it
/// (spec 2.10).
fn write_perm(request: &RemotingCommand<'_>, context: &Context<'_>) -> (ReplyTo, Arc<str>) {
    let broker_name = text(request, "brokerName").unwrap_or_default();
    tracing::info!(
        "write permission of broker[{broker_name}] changed by {}",
        context.peer
    );
    (reply_to(request, context), broker_name)
}

/// 216: an empty cluster name means everywhere; deleting what is not there succeeds (spec 2.12, Q33).
pub(super) fn delete_topic(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let Some(topic) = request.ext.get("topic") else {
        return answer(request, out, &Response::success());
    };
    tracing::info!("deleteTopicInNamesrv {topic} called by {}", context.peer);
    let cluster = text(request, "clusterName").filter(|cluster| !cluster.is_empty());
    Outcome::Submit(Command::DeleteTopic(
        reply_to(request, context),
        TopicName::from(topic),
        cluster,
    ))
}

/// 217 (spec 2.13).
pub(super) fn register_topic(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let queues = match register_body::decode_queue_datas(request.body) {
        Ok(queues) => queues,
        Err(error) => {
            return answer(
                request,
                out,
                &system_error(format!("failed to decode TopicRouteData, {error}")),
            );
        }
    };
    match request.ext.get("topic") {
        Some(topic) if !queues.is_empty() => {
            let queues = queues
                .into_iter()
                .map(|(broker, settings)| (Arc::from(broker), settings))
                .collect();
            Outcome::Submit(Command::RegisterTopic(
                reply_to(request, context),
                TopicName::from(topic),
                queues,
            ))
        }
        _ => answer(request, out, &Response::success()),
    }
}

/// 100
pub(super) fn put_kv(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let (Some(namespace), Some(key)) = (text(request, "namespace"), text(request, "key")) else {
        return answer(request, out, &system_error("namespace or key is null"));
    };
    Outcome::Submit(Command::PutKv(
        reply_to(request, context),
        namespace,
        key,
        text(request, "value"),
    ))
}

/// 101
pub(super) fn get_kv(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let (namespace, key) = (request.ext.get("namespace"), request.ext.get("key"));
    let value = namespace
        .zip(key)
        .and_then(|(namespace, key)| context.snapshot.kv().get(namespace, key));
    let response = match value {
        Some(value) => Response::success().with_ext("value", value.to_string()),
        None => {
            let (namespace, key) = (namespace.unwrap_or("null"), key.unwrap_or("null"));
            let remark = format!("No config item, Namespace: {namespace} Key: {key}");
            Response::error(ResponseCode::QueryNotFound, remark).with_empty_ext()
        }
    };
    answer(request, out, &response)
}

/// 102: deleting what is not there succeeds.
pub(super) fn delete_kv(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let (Some(namespace), Some(key)) = (text(request, "namespace"), text(request, "key")) else {
        return answer(request, out, &Response::success());
    };
    Outcome::Submit(Command::DeleteKv(
        reply_to(request, context),
        namespace,
        key,
    ))
}

/// 219
pub(super) fn list_kv(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    match listed_namespace(request, context.snapshot) {
        Some(namespace) => answer_body(request, out, |out| namespace.write_list(out)),
        None => {
            let name = request.ext.get("namespace").unwrap_or("null");
            let remark = format!("No config item, Namespace: {name}");
            answer(
                request,
                out,
                &Response::error(ResponseCode::QueryNotFound, remark),
            )
        }
    }
}

/// 318
pub(super) fn update_config(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    tracing::info!("updateConfig called by {}", context.peer);
    if request.body.is_empty() {
        return answer(request, out, &Response::success());
    }
    Outcome::Submit(Command::UpdateConfig(
        reply_to(request, context),
        Bytes::copy_from_slice(request.body),
    ))
}

/// 319
pub(super) fn get_config(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    answer(
        request,
        out,
        &Response::success().with_body(context.snapshot.config_text()),
    )
}
