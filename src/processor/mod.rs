//! One request against one snapshot: an answer, or a command for the writer. No state, no I/O, no clock of its own.

mod admin;
mod broker;
mod client;
mod route_cache;
mod zone;

use std::{net::SocketAddr, sync::Arc};

use admin::UnitFlags;
pub use route_cache::RouteCache;
use smallvec::SmallVec;

use crate::{
    ids::ConnectionId,
    limits,
    protocol::{
        code::{RequestCode, ResponseCode, version},
        command::{RemotingCommand, Response},
        encode, register_body,
    },
    registry::{
        Command, KvNamespace, RouteSnapshot,
        command::ReplyTo,
        query::{Route, Routes},
    },
    time::Timestamp,
};

/// What a request is processed against.
#[derive(Debug)]
pub struct Context<'a> {
    /// The state to answer from: one for the whole request.
    pub snapshot: &'a RouteSnapshot,
    /// The request's route, if it was looked up ahead and found.
    pub route: Option<Route<'a>>,
    /// The moment of this turn.
    pub now: Timestamp,
    /// Where the request came from.
    pub connection: ConnectionId,
    /// The same for log lines.
    pub peer: SocketAddr,
    /// What this connection has been bound to already.
    pub known_brokers: &'a mut KnownBrokers,
    /// Encoded routes at hand, shared by the connections of a worker.
    pub route_cache: &'a mut RouteCache,
    /// Whether the server is leaving and says so (spec 1.8).
    pub go_away: bool,
}

/// The live entries, by generation, that a connection has asked to be bound to: a heartbeat asks once.
#[derive(Debug, Clone, Default)]
pub struct KnownBrokers {
    generations: SmallVec<[u64; 1]>,
}

impl KnownBrokers {
    /// Notes a generation. Says whether it is new; the oldest is forgotten when there are too many.
    fn insert(&mut self, generation: u64) -> bool {
        if self.generations.contains(&generation) {
            return false;
        }
        if self.generations.len() >= limits::KNOWN_BROKERS_MAX {
            self.generations.remove(0);
        }
        self.generations.push(generation);
        true
    }
}

/// What became of a request.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The answer is written.
    Answered,
    /// There is nothing to send.
    Silent,
    /// The writer must do something; the answer comes as [`crate::registry::Effect::Reply`].
    Submit(Command),
    /// Whatever is to be sent is written, and the writer must do something besides.
    AnsweredAndSubmit(Command),
}

/// Processes one request; an answer is appended to `out` as a whole frame.
pub fn process(
    request: &RemotingCommand<'_>,
    context: &mut Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    if request.is_response() {
        return Outcome::Silent; // nothing of ours waits for it (spec 1.4)
    }
    if context.go_away && request.version > version::GO_AWAY {
        return answer(
            request,
            out,
            &Response::error(ResponseCode::GoAway, "please go away"),
        );
    }
    let Some(code) = RequestCode::from_i32(request.code) else {
        let remark = format!(" request type {} not supported", request.code);
        return answer(
            request,
            out,
            &Response::error(ResponseCode::RequestCodeNotSupported, remark),
        );
    };
    match code {
        RequestCode::GetRouteInfoByTopic => client::get_route_info(request, context, out),
        RequestCode::RegisterBroker => broker::register(request, context, out),
        RequestCode::UnregisterBroker => broker::unregister(request, context, out),
        RequestCode::BrokerHeartbeat => broker::heartbeat(request, context, out),
        RequestCode::QueryDataVersion => broker::query_data_version(request, context, out),
        RequestCode::GetBrokerMemberGroup => broker::get_member_group(request, context, out),
        RequestCode::GetBrokerClusterInfo => admin::cluster_info(request, context, out),
        RequestCode::GetAllTopicListFromNameServer => admin::all_topics(request, context, out),
        RequestCode::GetTopicsByCluster => admin::topics_by_cluster(request, context, out),
        RequestCode::GetSystemTopicListFromNs => admin::system_topics(request, context, out),
        RequestCode::GetUnitTopicList => admin::unit_topics(UnitFlags::UNIT, request, context, out),
        RequestCode::GetHasUnitSubTopicList => {
            admin::unit_topics(UnitFlags::UNIT_SUB, request, context, out)
        }
        RequestCode::GetHasUnitSubUnunitTopicList => {
            admin::unit_topics(UnitFlags::UNIT_SUB_ONLY, request, context, out)
        }
        RequestCode::WipeWritePermOfBroker => admin::wipe_write_perm(request, context),
        RequestCode::AddWritePermOfBroker => admin::add_write_perm(request, context),
        RequestCode::DeleteTopicInNamesrv => admin::delete_topic(request, context, out),
        RequestCode::RegisterTopicInNamesrv => admin::register_topic(request, context, out),
        RequestCode::PutKvConfig => admin::put_kv(request, context, out),
        RequestCode::GetKvConfig => admin::get_kv(request, context, out),
        RequestCode::DeleteKvConfig => admin::delete_kv(request, context, out),
        RequestCode::GetKvListByNamespace => admin::list_kv(request, context, out),
        RequestCode::UpdateNamesrvConfig => admin::update_config(request, context, out),
        RequestCode::GetNamesrvConfig => admin::get_config(request, context, out),
    }
}

/// Looks for the routes that several requests ask for together: what was found is to be given back as [`Context::route`].
#[must_use]
pub fn look_ahead<'s>(requests: &[RemotingCommand<'_>], snapshot: &'s RouteSnapshot) -> Routes<'s> {
    snapshot.routes(requests.iter().map(client::route_topic))
}

/// Whether executing a request takes so long that other connections should not wait for it.
#[must_use]
pub fn is_heavy(request: &RemotingCommand<'_>, snapshot: &RouteSnapshot) -> bool {
    // What is asked most is settled first.
    if request.code == RequestCode::GetRouteInfoByTopic as i32 {
        return false;
    }
    let Some(code) = RequestCode::from_i32(request.code) else {
        return false;
    };
    let (topics, groups, _) = snapshot.counts();
    if is_list_of_all(code) {
        topics.max(groups) > limits::HELPED_ENTRIES
    } else if code == RequestCode::GetTopicsByCluster {
        topics > limits::HELPED_ENTRIES
    } else if code == RequestCode::GetKvListByNamespace {
        listed_namespace(request, snapshot).is_some_and(|namespace| {
            namespace.len() > limits::HELPED_ENTRIES
                || namespace.list_len() > limits::HELPED_BODY_LEN
        })
    } else if [
        RequestCode::RegisterBroker,
        RequestCode::RegisterTopicInNamesrv,
    ]
    .contains(&code)
    {
        let labelled = boolean(request, "compressed").unwrap_or(false);
        let len_max = if register_body::is_compressed(request.body, labelled) {
            limits::HELPED_COMPRESSED_LEN
        } else {
            limits::HELPED_BODY_LEN
        };
        request.body.len() > len_max
    } else {
        false
    }
}

/// Whether the answer is the same for all who ask while nothing changes, and long.
#[must_use]
pub fn is_list_of_all(code: RequestCode) -> bool {
    const LISTS: [RequestCode; 6] = [
        RequestCode::GetBrokerClusterInfo,
        RequestCode::GetAllTopicListFromNameServer,
        RequestCode::GetSystemTopicListFromNs,
        RequestCode::GetUnitTopicList,
        RequestCode::GetHasUnitSubTopicList,
        RequestCode::GetHasUnitSubUnunitTopicList,
    ];
    LISTS.contains(&code)
}

/// The KV namespace that a request asks for the list of.
pub(crate) fn listed_namespace<'s>(
    request: &RemotingCommand<'_>,
    snapshot: &'s RouteSnapshot,
) -> Option<&'s KvNamespace> {
    snapshot.kv().namespace(request.ext.get("namespace")?)
}

/// Whether a connection that sends this may from then on carry a broker, so that the writer must learn of its end.
#[must_use]
pub fn marks_connection(command: &Command) -> bool {
    matches!(command, Command::Register(..) | Command::BindHeartbeat(..))
}

fn answer(request: &RemotingCommand<'_>, out: &mut Vec<u8>, response: &Response) -> Outcome {
    if request.is_oneway() {
        return Outcome::Silent;
    }
    encode::write_response(out, request.reply_head(), response);
    Outcome::Answered
}

/// Answers code 0 with a body that `write` appends in place.
fn answer_body(
    request: &RemotingCommand<'_>,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) -> Outcome {
    answer_with(request, out, None, write)
}

/// The same with ext fields.
fn answer_with(
    request: &RemotingCommand<'_>,
    out: &mut Vec<u8>,
    ext: Option<&[(&str, &str)]>,
    write: impl FnOnce(&mut Vec<u8>),
) -> Outcome {
    if request.is_oneway() {
        return Outcome::Silent;
    }
    let (head, code) = (request.reply_head(), ResponseCode::Success);
    let frame = encode::begin_response(out, head, code, None, ext);
    write(out);
    frame.finish(out);
    Outcome::Answered
}

fn system_error(remark: impl Into<std::borrow::Cow<'static, str>>) -> Response {
    Response::error(ResponseCode::SystemError, remark)
}

fn reply_to(request: &RemotingCommand<'_>, context: &Context<'_>) -> ReplyTo {
    ReplyTo {
        connection: context.connection,
        head: request.reply_head(),
        oneway: request.is_oneway(),
    }
}

/// A field as shared text.
fn text(request: &RemotingCommand<'_>, name: &str) -> Option<Arc<str>> {
    request.ext.get(name).map(Arc::from)
}

/// A field as the original's `Long`: a decimal number; anything else counts as missing (spec 1.8).
fn long(request: &RemotingCommand<'_>, name: &str) -> Option<i64> {
    request.ext.get(name)?.parse().ok()
}

/// A field as the original's `Boolean`: "true" in any case, else false; missing is missing.
fn boolean(request: &RemotingCommand<'_>, name: &str) -> Option<bool> {
    request
        .ext
        .get(name)
        .map(|value| value.eq_ignore_ascii_case("true"))
}
