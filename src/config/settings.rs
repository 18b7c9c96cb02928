//! What a running server reads: typed getters, and the few settings that are looked up at each request.

use std::time::Duration;

use super::{
    Config, Environment,
    key::KeyId,
    value::{Value, unbracketed, zone_minutes},
};
use crate::limits::SCAN_INTERVAL_MIN;

/// Stands for "never" where a duration is needed: a century, which any clock can still add.
pub const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What a running server looks up at each request: small enough to travel with every snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSettings {
    /// `orderMessageEnable`
    pub order_message_enable: bool,
    /// `returnOrderTopicConfigToBroker`
    pub return_order_topic_config_to_broker: bool,
    /// `supportActingMaster`
    pub support_acting_master: bool,
    /// `enableAllTopicList`
    pub enable_all_topic_list: bool,
    /// `enableTopicList`
    pub enable_topic_list: bool,
    /// `notifyMinBrokerIdChanged`
    pub notify_min_broker_id_changed: bool,
    /// `deleteTopicWithBrokerRegistration`
    pub delete_topic_with_broker_registration: bool,
    /// `needWaitForService`
    pub need_wait_for_service: bool,
    /// `waitSecondsForService`
    pub wait_for_service: Duration,
    /// `waypost.brokerNameConflict` is `reject`
    pub reject_broker_name_conflict: bool,
    /// `enableShutdownGracefully`
    pub enable_shutdown_gracefully: bool,
    /// `shutdownWaitTimeSeconds`
    pub shutdown_wait: Duration,
    /// `serverChannelMaxIdleTimeSeconds`; [`NEVER`] if that is 0
    pub channel_max_idle: Duration,
    /// `scanNotActiveBrokerInterval`, at least [`SCAN_INTERVAL_MIN`]
    pub scan_interval: Duration,
}

impl Default for LiveSettings {
    fn default() -> Self {
        Config::defaults(&Environment::default()).live()
    }
}

/// What the server reads at start. Out-of-range values are clamped here, but [`Config::validate`] refuses them before.
impl Config {
    /// What the running server looks up.
    #[must_use]
    pub fn live(&self) -> LiveSettings {
        LiveSettings {
            order_message_enable: self.boolean(KeyId::OrderMessageEnable),
            return_order_topic_config_to_broker: self
                .boolean(KeyId::ReturnOrderTopicConfigToBroker),
            support_acting_master: self.boolean(KeyId::SupportActingMaster),
            enable_all_topic_list: self.boolean(KeyId::EnableAllTopicList),
            enable_topic_list: self.boolean(KeyId::EnableTopicList),
            notify_min_broker_id_changed: self.boolean(KeyId::NotifyMinBrokerIdChanged),
            delete_topic_with_broker_registration: self
                .boolean(KeyId::DeleteTopicWithBrokerRegistration),
            need_wait_for_service: self.boolean(KeyId::NeedWaitForService),
            wait_for_service: self.seconds(KeyId::WaitSecondsForService),
            reject_broker_name_conflict: self.text(KeyId::BrokerNameConflict) == "reject",
            enable_shutdown_gracefully: self.boolean(KeyId::EnableShutdownGracefully),
            shutdown_wait: self.shutdown_wait_time(),
            channel_max_idle: self.server_channel_max_idle_time(),
            scan_interval: self.scan_not_active_broker_interval(),
        }
    }

    /// `listenPort`; 0 = any free one.
    #[must_use]
    pub fn listen_port(&self) -> u16 {
        u16::try_from(self.number(KeyId::ListenPort)).unwrap_or(u16::MAX)
    }

    /// `bindAddress`: a host name or an address, an IPv6 one without brackets.
    #[must_use]
    pub fn bind_address(&self) -> &str {
        unbracketed(self.text(KeyId::BindAddress))
    }

    /// `kvConfigPath`
    #[must_use]
    pub fn kv_config_path(&self) -> &str {
        self.text(KeyId::KvConfigPath)
    }

    /// `configStorePath`: the `-c` file if there is one.
    #[must_use]
    pub fn config_store_path(&self) -> &str {
        self.text(KeyId::ConfigStorePath)
    }

    /// `scanNotActiveBrokerInterval`, or [`SCAN_INTERVAL_MIN`] if that is more.
    #[must_use]
    pub fn scan_not_active_broker_interval(&self) -> Duration {
        let millis = u64::try_from(self.number(KeyId::ScanNotActiveBrokerInterval)).unwrap_or(0);
        Duration::from_millis(millis).clamp(SCAN_INTERVAL_MIN, NEVER)
    }

    /// `serverChannelMaxIdleTimeSeconds`; [`NEVER`] if that is 0.
    #[must_use]
    pub fn server_channel_max_idle_time(&self) -> Duration {
        let idle = self.seconds(KeyId::ServerChannelMaxIdleTimeSeconds);
        if idle.is_zero() { NEVER } else { idle }
    }

    /// `shutdownWaitTimeSeconds`
    #[must_use]
    pub fn shutdown_wait_time(&self) -> Duration {
        self.seconds(KeyId::ShutdownWaitTimeSeconds)
    }

    /// `serverSocketBacklog`
    #[must_use]
    pub fn server_socket_backlog(&self) -> i32 {
        i32::try_from(self.number(KeyId::ServerSocketBacklog)).unwrap_or(i32::MAX)
    }

    /// `serverSocketSndBufSize`; `None` = the system's.
    #[must_use]
    pub fn server_socket_snd_buf_size(&self) -> Option<usize> {
        self.positive(KeyId::ServerSocketSndBufSize)
    }

    /// `serverSocketRcvBufSize`; `None` = the system's.
    #[must_use]
    pub fn server_socket_rcv_buf_size(&self) -> Option<usize> {
        self.positive(KeyId::ServerSocketRcvBufSize)
    }

    /// `writeBufferHighWaterMark`; `None` unless both marks are set.
    #[must_use]
    pub fn write_buffer_high_water_mark(&self) -> Option<usize> {
        self.water_marks().map(|(_, high)| high)
    }

    /// `writeBufferLowWaterMark`; `None` unless both marks are set.
    #[must_use]
    pub fn write_buffer_low_water_mark(&self) -> Option<usize> {
        self.water_marks().map(|(low, _)| low)
    }

    /// `com.rocketmq.remoting.frameMaxLength`: largest incoming frame, its 4 length bytes included.
    #[must_use]
    pub fn frame_max_length(&self) -> usize {
        self.positive(KeyId::FrameMaxLength)
            .unwrap_or(crate::limits::FRAME_LEN_MAX)
    }

    /// `waypost.workerThreads`; `None` = one fewer than the processors, at least one.
    #[must_use]
    pub fn worker_threads(&self) -> Option<usize> {
        self.positive(KeyId::WorkerThreads)
    }

    /// `waypost.logLevel`: a lower-case word, `off` to `trace`.
    #[must_use]
    pub fn log_level(&self) -> &str {
        self.text(KeyId::LogLevel)
    }

    /// `waypost.logOutput`: `stdout` or `stderr`.
    #[must_use]
    pub fn log_output(&self) -> &str {
        self.text(KeyId::LogOutput)
    }

    /// `waypost.logTimeZone` as its offset to GMT in minutes.
    #[must_use]
    pub fn log_offset_minutes(&self) -> i32 {
        zone_minutes(self.text(KeyId::LogTimeZone)).unwrap_or(0)
    }
}

impl Config {
    pub(super) fn boolean(&self, id: KeyId) -> bool {
        *self.value(id) == Value::Boolean(true)
    }

    pub(super) fn number(&self, id: KeyId) -> i64 {
        if let Value::Number(value) = *self.value(id) {
            value
        } else {
            0
        }
    }

    pub(super) fn text(&self, id: KeyId) -> &str {
        if let Value::Text(value) = self.value(id) {
            value
        } else {
            ""
        }
    }

    fn seconds(&self, id: KeyId) -> Duration {
        Duration::from_secs(u64::try_from(self.number(id)).unwrap_or(0))
    }

    fn positive(&self, id: KeyId) -> Option<usize> {
        usize::try_from(self.number(id))
            .ok()
            .filter(|&size| size > 0)
    }

    /// Low and high mark, if both are set.
    pub(super) fn water_marks(&self) -> Option<(usize, usize)> {
        self.positive(KeyId::WriteBufferLowWaterMark)
            .zip(self.positive(KeyId::WriteBufferHighWaterMark))
    }
}
