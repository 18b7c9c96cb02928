//! The configuration as 319 shows it and 318 changes it (spec 5), of the keys that the simulator uses.

use std::collections::BTreeMap;

use super::request::Name;

/// What a fresh server shows, its paths aside (spec 5.4).
const DEFAULTS: &str = "bindAddress=0.0.0.0
clientRequestThreadPoolNums=8
clientRequestThreadPoolQueueCapacity=50000
clusterTest=false
configBlackList=configBlackList;configStorePath;kvConfigPath
configStorePath=/home/rocketmq/test.properties
defaultThreadPoolNums=16
defaultThreadPoolQueueCapacity=10000
deleteTopicWithBrokerRegistration=false
enableAllTopicList=true
enableControllerInNamesrv=false
enableShutdownGracefully=false
enableTopicList=true
kvConfigPath=/home/rocketmq/namesrv/kvConfig.json
listenPort=9876
needWaitForService=false
notifyMinBrokerIdChanged=false
orderMessageEnable=false
productEnvName=center
returnOrderTopicConfigToBroker=true
scanNotActiveBrokerInterval=5000
serverAsyncSemaphoreValue=64
serverCallbackExecutorThreads=0
serverChannelMaxIdleTimeSeconds=120
serverNettyWorkerGroupEnable=true
serverOnewaySemaphoreValue=256
serverPooledByteBufAllocatorEnable=true
serverSelectorThreads=3
serverSocketBacklog=1024
serverSocketRcvBufSize=0
serverSocketSndBufSize=0
serverWorkerThreads=8
shutdownWaitTimeSeconds=30
supportActingMaster=false
unRegisterBrokerQueueCapacity=3000
useEpollNativeSelector=false
waitSecondsForService=45
writeBufferHighWaterMark=0
writeBufferLowWaterMark=0
";

/// Keys that scripts change.
pub(super) const USED: [Name; 10] = [
    "deleteTopicWithBrokerRegistration",
    "enableAllTopicList",
    "enableTopicList",
    "needWaitForService",
    "notifyMinBrokerIdChanged",
    "orderMessageEnable",
    "productEnvName",
    "returnOrderTopicConfigToBroker",
    "scanNotActiveBrokerInterval",
    "supportActingMaster",
];

/// Keys that 318 refuses (spec 5.4).
const BLACK_LIST: [Name; 4] = [
    "configBlackList",
    "configStorePath",
    "kvConfigPath",
    "rocketmqHome",
];

/// Keys by name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings(BTreeMap<String, String>);

/// Why a change is refused as a whole, by its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    BlackListed,
    ControlCharacter,
}

impl Settings {
    /// Those of a server started with these lines.
    pub(super) fn started_with(lines: &[(Name, Name)]) -> Self {
        let defaults = DEFAULTS.lines().filter_map(|line| line.split_once('='));
        let lines = defaults.chain(lines.iter().copied());
        Self(
            lines
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }

    pub(super) fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    pub(super) fn is(&self, key: &str) -> bool {
        self.text(key) == "true"
    }

    /// The body of 319.
    pub(super) fn shown(&self) -> String {
        self.0
            .iter()
            .map(|(key, value)| format!("{key}={value}\n"))
            .collect()
    }

    /// What 318 makes of them: unknown keys and values that do not parse or do not work are ignored (spec 5.4, D-18).
    pub(super) fn changed(&self, lines: &[(Name, Name)]) -> Result<Self, Refusal> {
        if lines.iter().any(|(key, _)| BLACK_LIST.contains(key)) {
            return Err(Refusal::BlackListed);
        }
        if lines.iter().any(|(_, value)| value.contains("\\n")) {
            return Err(Refusal::ControlCharacter);
        }
        let mut changed = self.clone();
        let last_of_each: BTreeMap<Name, Name> = lines.iter().copied().collect();
        for (key, value) in last_of_each {
            let Some(old) = changed.0.get_mut(key) else {
                continue;
            };
            *old = match key {
                "productEnvName" => value.to_string(),
                "scanNotActiveBrokerInterval" => match value.parse::<u64>() {
                    Ok(1..=3_600_000) => value.to_string(),
                    _ => continue,
                },
                _ => value.eq_ignore_ascii_case("true").to_string(),
            };
        }
        Ok(changed)
    }
}
