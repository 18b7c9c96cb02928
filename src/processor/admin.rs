//! What operators and their tools ask: lists, permissions, topics, KV configuration, configuration (spec 2.8, 2.10 to 2.15).

use std::sync::Arc;

use bytes::Bytes;

use super::{Context, Outcome, answer, answer_body, reply_to, system_error, text};
use crate::{
    protocol::{
        code::{RequestCode, ResponseCode},
        command::{RemotingCommand, Response},
        name::TopicName,
        register_body,
    },
    registry::{
        Command,
        query::{FLAG_UNIT, FLAG_UNIT_SUB},
    },
};

/// 106, 206, 224, 304, 311, 312, 313: always plain JSON (spec 2.11).
pub(super) fn list(
    code: RequestCode,
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let snapshot = context.snapshot;
    let enabled = match code {
        RequestCode::GetBrokerClusterInfo | RequestCode::GetSystemTopicListFromNs => true,
        RequestCode::GetAllTopicListFromNameServer => snapshot.settings().enable_all_topic_list,
        _ => snapshot.settings().enable_topic_list,
    };
    if !enabled {
        return answer(request, out, &system_error("disable"));
    }
    answer_body(request, out, |out| match code {
        RequestCode::GetBrokerClusterInfo => snapshot.write_cluster_info(out),
        RequestCode::GetSystemTopicListFromNs => snapshot.write_system_topics(out),
        RequestCode::GetTopicsByCluster => {
            snapshot.write_topics_of_cluster(request.ext.get("cluster"), out)
        }
        RequestCode::GetUnitTopicList => snapshot.write_topics_by_flag(FLAG_UNIT, 0, out),
        RequestCode::GetHasUnitSubTopicList => snapshot.write_topics_by_flag(FLAG_UNIT_SUB, 0, out),
        RequestCode::GetHasUnitSubUnunitTopicList => {
            snapshot.write_topics_by_flag(FLAG_UNIT_SUB, FLAG_UNIT, out)
        }
        _ => snapshot.write_all_topics(out),
    })
}

/// 205, 327. An unknown broker has no topics; the count must be there, the admin client unboxes it (spec 2.10).
pub(super) fn write_perm(
    code: RequestCode,
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    _: &mut Vec<u8>,
) -> Outcome {
    let (to, broker_name) = (
        reply_to(request, context),
        text(request, "brokerName").unwrap_or_default(),
    );
    tracing::info!(
        "{code:?} of broker[{broker_name}] called by {}",
        context.peer
    );
    Outcome::Submit(match code {
        RequestCode::WipeWritePermOfBroker => Command::WipeWritePerm(to, broker_name),
        _ => Command::AddWritePerm(to, broker_name),
    })
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
    let name = request.ext.get("namespace");
    match name.and_then(|name| context.snapshot.kv_list(name)) {
        Some(body) => answer(request, out, &Response::success().with_body(body)),
        None => {
            let remark = format!("No config item, Namespace: {}", name.unwrap_or("null"));
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
