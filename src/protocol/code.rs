//! The numbers of the protocol: request and response codes (spec 1.8, 2.0), versions (spec 1.6).

/// A request that a name server serves (spec 2.0). `RequestCode` of the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i32)]
pub enum RequestCode {
    /// `PUT_KV_CONFIG`
    PutKvConfig = 100,
    /// `GET_KV_CONFIG`
    GetKvConfig = 101,
    /// `DELETE_KV_CONFIG`
    DeleteKvConfig = 102,
    /// `REGISTER_BROKER`
    RegisterBroker = 103,
    /// `UNREGISTER_BROKER`
    UnregisterBroker = 104,
    /// `GET_ROUTEINFO_BY_TOPIC`
    GetRouteInfoByTopic = 105,
    /// `GET_BROKER_CLUSTER_INFO`
    GetBrokerClusterInfo = 106,
    /// `WIPE_WRITE_PERM_OF_BROKER`
    WipeWritePermOfBroker = 205,
    /// `GET_ALL_TOPIC_LIST_FROM_NAMESERVER`
    GetAllTopicListFromNameServer = 206,
    /// `DELETE_TOPIC_IN_NAMESRV`
    DeleteTopicInNamesrv = 216,
    /// `REGISTER_TOPIC_IN_NAMESRV`
    RegisterTopicInNamesrv = 217,
    /// `GET_KVLIST_BY_NAMESPACE`
    GetKvListByNamespace = 219,
    /// `GET_TOPICS_BY_CLUSTER`
    GetTopicsByCluster = 224,
    /// `GET_SYSTEM_TOPIC_LIST_FROM_NS`
    GetSystemTopicListFromNs = 304,
    /// `GET_UNIT_TOPIC_LIST`
    GetUnitTopicList = 311,
    /// `GET_HAS_UNIT_SUB_TOPIC_LIST`
    GetHasUnitSubTopicList = 312,
    /// `GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST`
    GetHasUnitSubUnunitTopicList = 313,
    /// `UPDATE_NAMESRV_CONFIG`
    UpdateNamesrvConfig = 318,
    /// `GET_NAMESRV_CONFIG`
    GetNamesrvConfig = 319,
    /// `QUERY_DATA_VERSION`
    QueryDataVersion = 322,
    /// `ADD_WRITE_PERM_OF_BROKER`
    AddWritePermOfBroker = 327,
    /// `GET_BROKER_MEMBER_GROUP`
    GetBrokerMemberGroup = 901,
    /// `BROKER_HEARTBEAT`
    BrokerHeartbeat = 904,
}

impl RequestCode {
    /// Every code served, in ascending order.
    pub const ALL: [Self; 23] = [
        Self::PutKvConfig,
        Self::GetKvConfig,
        Self::DeleteKvConfig,
        Self::RegisterBroker,
        Self::UnregisterBroker,
        Self::GetRouteInfoByTopic,
        Self::GetBrokerClusterInfo,
        Self::WipeWritePermOfBroker,
        Self::GetAllTopicListFromNameServer,
        Self::DeleteTopicInNamesrv,
        Self::RegisterTopicInNamesrv,
        Self::GetKvListByNamespace,
        Self::GetTopicsByCluster,
        Self::GetSystemTopicListFromNs,
        Self::GetUnitTopicList,
        Self::GetHasUnitSubTopicList,
        Self::GetHasUnitSubUnunitTopicList,
        Self::UpdateNamesrvConfig,
        Self::GetNamesrvConfig,
        Self::QueryDataVersion,
        Self::AddWritePermOfBroker,
        Self::GetBrokerMemberGroup,
        Self::BrokerHeartbeat,
    ];

    /// The request with this number, if a name server serves it. A table the compiler can jump through, since every request
    /// comes this way.
    #[must_use]
    pub const fn from_i32(code: i32) -> Option<Self> {
        match code {
            100 => Some(Self::PutKvConfig),
            101 => Some(Self::GetKvConfig),
            102 => Some(Self::DeleteKvConfig),
            103 => Some(Self::RegisterBroker),
            104 => Some(Self::UnregisterBroker),
            105 => Some(Self::GetRouteInfoByTopic),
            106 => Some(Self::GetBrokerClusterInfo),
            205 => Some(Self::WipeWritePermOfBroker),
            206 => Some(Self::GetAllTopicListFromNameServer),
            216 => Some(Self::DeleteTopicInNamesrv),
            217 => Some(Self::RegisterTopicInNamesrv),
            219 => Some(Self::GetKvListByNamespace),
            224 => Some(Self::GetTopicsByCluster),
            304 => Some(Self::GetSystemTopicListFromNs),
            311 => Some(Self::GetUnitTopicList),
            312 => Some(Self::GetHasUnitSubTopicList),
            313 => Some(Self::GetHasUnitSubUnunitTopicList),
            318 => Some(Self::UpdateNamesrvConfig),
            319 => Some(Self::GetNamesrvConfig),
            322 => Some(Self::QueryDataVersion),
            327 => Some(Self::AddWritePermOfBroker),
            901 => Some(Self::GetBrokerMemberGroup),
            904 => Some(Self::BrokerHeartbeat),
            _ => None,
        }
    }
}

/// `NOTIFY_MIN_BROKER_ID_CHANGE`, which a name server sends and never receives (spec 2.16).
pub const NOTIFY_MIN_BROKER_ID_CHANGE: i32 = 905;

/// The result of a request (spec 1.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ResponseCode {
    /// `SUCCESS`
    Success = 0,
    /// `SYSTEM_ERROR`
    SystemError = 1,
    /// `SYSTEM_BUSY`
    SystemBusy = 2,
    /// `REQUEST_CODE_NOT_SUPPORTED`
    RequestCodeNotSupported = 3,
    /// `NO_PERMISSION`
    NoPermission = 16,
    /// `TOPIC_NOT_EXIST`
    TopicNotExist = 17,
    /// `QUERY_NOT_FOUND`
    QueryNotFound = 22,
    /// `GO_AWAY`
    GoAway = 1500,
}

/// How many languages have a number: 0 (JAVA) to 13 (NODE_JS) (spec 1.5).
pub const LANGUAGE_CODES: i32 = 14;

/// Version ordinals at which the protocol changes (spec 1.6).
pub mod version {
    /// What this server says of itself: 5.3.3.
    pub const OURS: i32 = 479;
    /// 3.0.11: below it a register body is the bare wrapper object (spec 2.3).
    pub const REGISTER_BODY: i32 = 37;
    /// 4.9.4: from it on routes are written in strict JSON (spec 2.7).
    pub const STRICT_JSON: i32 = 401;
    /// 5.0.0: from it on a compressed register body ends with the static-topic mappings (spec 2.3).
    pub const TOPIC_QUEUE_MAPPING: i32 = 413;
    /// 5.3.1: clients above it understand `GO_AWAY` (spec 1.8).
    pub const GO_AWAY: i32 = 475;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_found_by_its_number_and_nothing_else_is() {
        for code in RequestCode::ALL {
            assert_eq!(RequestCode::from_i32(code as i32), Some(code));
        }
        let known = (-1..2_000).filter_map(RequestCode::from_i32).count();
        assert_eq!(known, RequestCode::ALL.len());
    }
}
