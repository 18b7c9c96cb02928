//! What brokers say of themselves: registration, heartbeats, data versions, departure (spec 2.3 to 2.6, 2.9).

use std::{borrow::Cow, sync::Arc};

use super::{
    Context, Outcome, answer, answer_body, answer_with, boolean, long, reply_to, system_error, text,
};
use crate::{
    limits::NAME_LEN_MAX,
    protocol::{
        body::{BodyError, DataVersion},
        command::{RemotingCommand, Response},
        register_body,
    },
    registry::{
        Command,
        command::{BindHeartbeat, BrokerIdentity, RegisterBroker, ReplyTo},
        query::BrokerLive,
    },
};

/// 103. Everything that can be wrong with the message is found here, before the writer sees it.
pub(super) fn register(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    match read_registration(request, context) {
        Ok(broker) => Outcome::Submit(Command::Register(
            reply_to(request, context),
            Box::new(broker),
        )),
        Err(refusal) => answer(request, out, &refusal.into_response()),
    }
}

/// Why a registration is not even tried.
enum Refusal {
    CrcMismatch,
    Malformed(Cow<'static, str>),
}

impl Refusal {
    fn malformed(remark: impl Into<Cow<'static, str>>) -> Self {
        Self::Malformed(remark.into())
    }

    fn too_long(what: &str) -> Self {
        Self::malformed(format!("{what} is longer than {NAME_LEN_MAX} bytes"))
    }

    fn into_response(self) -> Response {
        match self {
            Self::CrcMismatch => system_error("crc32 not match").with_empty_ext(),
            Self::Malformed(remark) => system_error(remark),
        }
    }
}

fn read_registration(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
) -> Result<RegisterBroker, Refusal> {
    let expected_crc = long(request, "bodyCrc32")
        .and_then(|crc| i32::try_from(crc).ok())
        .unwrap_or(0);
    if !register_body::crc_matches(request.body, expected_crc) {
        tracing::warn!(
            "receive registerBroker request,crc32 not match,from {}",
            context.peer
        );
        return Err(Refusal::CrcMismatch);
    }
    if request.version < 0 {
        return Err(Refusal::malformed(format!(
            "version {} is negative",
            request.version
        )));
    }
    let compressed = boolean(request, "compressed").unwrap_or(false);
    let body = register_body::decode_register_body(request.body, compressed, request.version);
    let body = body.map_err(|error| {
        Refusal::malformed(format!("failed to decode RegisterBrokerBody, {error}"))
    })?;
    let body = body.ok_or_else(|| Refusal::malformed("RegisterBrokerBody is null"))?;
    let broker_id = long(request, "brokerId")
        .ok_or_else(|| Refusal::malformed("brokerId is missing or not a number"))?;
    if body.mappings.iter().any(|mapping| {
        let names = [&mapping.broker_name, &mapping.scope, &mapping.topic];
        names
            .into_iter()
            .flatten()
            .any(|name| name.len() > NAME_LEN_MAX)
    }) {
        return Err(Refusal::too_long("a static-topic mapping's name"));
    }
    Ok(RegisterBroker {
        cluster_name: required(request, "clusterName")?,
        broker_name: required(request, "brokerName")?,
        broker_id,
        broker_addr: broker_addr(request)?,
        ha_server_addr: bounded(request, "haServerAddr")?,
        zone_name: bounded(request, "__ZONE_NAME")?,
        heartbeat_timeout_millis: long(request, "heartbeatTimeoutMillis"),
        enable_acting_master: boolean(request, "enableActingMaster"),
        body,
    })
}

/// A name that is repeated in answers must not be long.
fn bounded(request: &RemotingCommand<'_>, name: &'static str) -> Result<Option<Arc<str>>, Refusal> {
    match request.ext.get(name) {
        Some(text) if text.len() > NAME_LEN_MAX => Err(Refusal::too_long(name)),
        text => Ok(text.map(Arc::from)),
    }
}

/// The original answers success and corrupts its tables (spec Q15).
fn required(request: &RemotingCommand<'_>, name: &'static str) -> Result<Arc<str>, Refusal> {
    bounded(request, name)?
        .filter(|text| !text.is_empty())
        .ok_or_else(|| Refusal::malformed(format!("{name} is missing")))
}

/// An address with a comma, a quote or a blank would be cut in pieces by the Go client, which reads routes as text (fault H3).
fn broker_addr(request: &RemotingCommand<'_>) -> Result<Arc<str>, Refusal> {
    let addr = required(request, "brokerAddr")?;
    let odd = |char: char| char == ',' || char == '"' || char.is_whitespace() || char.is_control();
    if addr.contains(odd) {
        return Err(Refusal::malformed(
            "brokerAddr contains a comma, a quote, a blank or a control character",
        ));
    }
    Ok(addr)
}

/// 104. A request that does not name a broker changes nothing and is answered like the rest (spec 2.4).
pub(super) fn unregister(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let identity = || {
        long(request, "brokerId")?;
        Some(BrokerIdentity {
            cluster_name: text(request, "clusterName")?,
            broker_name: text(request, "brokerName")?,
            broker_addr: text(request, "brokerAddr")?,
        })
    };
    match identity() {
        Some(identity) => {
            Outcome::Submit(Command::Unregister(reply_to(request, context), identity))
        }
        None => answer(request, out, &Response::success()),
    }
}

/// 904. Silent about unknown brokers (spec 2.5, Q22).
pub(super) fn heartbeat(
    request: &RemotingCommand<'_>,
    context: &mut Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let Some((cluster, addr)) = live_key(request) else {
        return answer(request, out, &no_live_key());
    };
    let live = context.snapshot.live_broker(cluster, addr);
    let binding = refresh(request, context, live);
    and_bind(answer(request, out, &Response::success()), binding)
}

/// 322: whether the broker's topics differ from what is stored, and a heartbeat besides (spec 2.6, Q21).
pub(super) fn query_data_version(
    request: &RemotingCommand<'_>,
    context: &mut Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let Some((cluster, addr)) = live_key(request) else {
        return answer(request, out, &no_live_key());
    };
    let live = context.snapshot.live_broker(cluster, addr);
    let changed = match differs(request.body, live.map(Arc::as_ref)) {
        Ok(changed) => changed,
        Err(error) => {
            let error = system_error(format!("failed to decode DataVersion, {error}"));
            return answer(request, out, &error);
        }
    };
    let binding = refresh(request, context, live);
    let changed = if changed { "true" } else { "false" };
    let answered = answer_with(request, out, Some(&[("changed", changed)]), |out| {
        if let Some(live) = live {
            out.extend_from_slice(&live.data_version_json);
        }
    });
    and_bind(answered, binding)
}

/// Whether a broker's data version is another than what is stored of it.
fn differs(body: &[u8], live: Option<&BrokerLive>) -> Result<bool, BodyError> {
    // Understanding the same bytes again would give the same version (`cargo bench --bench codec`, `answer/322_data_version`).
    if live.is_some_and(|live| *live.data_version_json == *body) {
        return Ok(false);
    }
    let theirs = DataVersion::decode(body)?;
    Ok(live.is_none() || live.map(|live| live.data_version) != theirs)
}

/// What a heartbeat is looked up by (spec 2.5).
fn live_key<'a>(request: &'a RemotingCommand<'_>) -> Option<(&'a str, &'a str)> {
    request
        .ext
        .get("clusterName")
        .zip(request.ext.get("brokerAddr"))
}

fn no_live_key() -> Response {
    system_error("clusterName or brokerAddr is missing")
}

/// Notes that a broker is alive. The command to send if the connection is not known to carry it (spec Q42).
fn refresh(
    request: &RemotingCommand<'_>,
    context: &mut Context<'_>,
    live: Option<&Arc<BrokerLive>>,
) -> Option<Command> {
    let live = live?;
    live.last_heartbeat.refresh(context.now);
    if !context.known_brokers.insert(live.generation) {
        return None;
    }
    let to = ReplyTo {
        oneway: true,
        ..reply_to(request, context)
    };
    let binding = BindHeartbeat {
        broker_addr: Arc::clone(&live.addr),
        generation: live.generation,
    };
    Some(Command::BindHeartbeat(to, binding))
}

fn and_bind(outcome: Outcome, binding: Option<Command>) -> Outcome {
    match binding {
        Some(command) => Outcome::AnsweredAndSubmit(command),
        None => outcome,
    }
}

/// 901: the raw members of a group; an unknown one is empty (spec 2.9).
pub(super) fn get_member_group(
    request: &RemotingCommand<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let (cluster, broker_name) = (
        request.ext.get("clusterName"),
        request.ext.get("brokerName"),
    );
    answer_body(request, out, |out| {
        context
            .snapshot
            .write_member_group(cluster, broker_name, out)
    })
}
