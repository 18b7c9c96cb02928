mod file;
mod property;
mod update;

use std::time::Duration;

use super::{key::Reach, *};

const PATH_KEYS: [&str; 4] = [
    "configBlackList",
    "configStorePath",
    "kvConfigPath",
    "rocketmqHome",
];

fn environment() -> Environment {
    Environment {
        user_home: Some("/home/rocketmq".to_owned()),
        rocketmq_home: Some("/opt/rocketmq".to_owned()),
    }
}

fn defaults() -> Config {
    Config::defaults(&environment())
}

fn loaded(text: &str) -> (Config, Vec<String>) {
    let mut config = defaults();
    let findings = config.load_file("/etc/ns.properties", text.as_bytes());
    (config, findings.iter().map(Finding::to_string).collect())
}

/// The configuration after a restart: its file read on top of the defaults.
fn restarted(config: &Config) -> Config {
    let mut again = defaults();
    again.load_file(config.config_store_path(), config.to_file_text().as_bytes());
    again
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

#[test]
fn the_table_is_in_the_order_of_its_names_and_names_nothing_twice() {
    for (at, key) in KEYS.iter().enumerate() {
        assert_eq!(key.id as usize, at, "{}", key.name);
        assert_eq!(Key::named(key.name).map(|found| found.id), Some(key.id));
        assert!(!key.meaning.contains('|') && !key.name.contains(char::is_whitespace));
    }
    let blocked: BTreeSet<_> = KEYS
        .iter()
        .filter(|key| key.reach == Reach::Blocked)
        .map(|key| key.name)
        .collect();
    assert_eq!(
        blocked,
        PATH_KEYS
            .iter()
            .copied()
            .chain(["waypost.configUpdateEnable"])
            .collect()
    );
}

#[test]
fn e10_the_wire_text_of_the_defaults_is_the_one_of_java() {
    let wanted = "bindAddress=0.0.0.0\n\
        clientRequestThreadPoolNums=8\n\
        clientRequestThreadPoolQueueCapacity=50000\n\
        clusterTest=false\n\
        configBlackList=configBlackList;configStorePath;kvConfigPath\n\
        configStorePath=/home/rocketmq/namesrv/namesrv.properties\n\
        defaultThreadPoolNums=16\n\
        defaultThreadPoolQueueCapacity=10000\n\
        deleteTopicWithBrokerRegistration=false\n\
        enableAllTopicList=true\n\
        enableControllerInNamesrv=false\n\
        enableShutdownGracefully=false\n\
        enableTopicList=true\n\
        kvConfigPath=/home/rocketmq/namesrv/kvConfig.json\n\
        listenPort=9876\n\
        needWaitForService=false\n\
        notifyMinBrokerIdChanged=false\n\
        orderMessageEnable=false\n\
        productEnvName=center\n\
        returnOrderTopicConfigToBroker=true\n\
        rocketmqHome=/opt/rocketmq\n\
        scanNotActiveBrokerInterval=5000\n\
        serverAsyncSemaphoreValue=64\n\
        serverCallbackExecutorThreads=0\n\
        serverChannelMaxIdleTimeSeconds=120\n\
        serverNettyWorkerGroupEnable=true\n\
        serverOnewaySemaphoreValue=256\n\
        serverPooledByteBufAllocatorEnable=true\n\
        serverSelectorThreads=3\n\
        serverSocketBacklog=1024\n\
        serverSocketRcvBufSize=0\n\
        serverSocketSndBufSize=0\n\
        serverWorkerThreads=8\n\
        shutdownWaitTimeSeconds=30\n\
        supportActingMaster=false\n\
        unRegisterBrokerQueueCapacity=3000\n\
        useEpollNativeSelector=false\n\
        waitSecondsForService=45\n\
        writeBufferHighWaterMark=0\n\
        writeBufferLowWaterMark=0\n";
    assert_eq!(defaults().to_wire_text(), wanted);
}

#[test]
fn the_defaults_start_and_are_what_java_starts_with() {
    for environment in [environment(), Environment::default()] {
        assert_eq!(Config::defaults(&environment).validate(), Ok(()));
    }
    let config = defaults();
    assert_eq!(
        (config.bind_address(), config.listen_port()),
        ("0.0.0.0", 9876)
    );
    assert_eq!(config.frame_max_length(), crate::limits::FRAME_LEN_MAX);
    assert_eq!(config.server_socket_backlog(), 1024);
    assert_eq!(config.server_socket_snd_buf_size(), None);
    assert_eq!(config.write_buffer_high_water_mark(), None);
    assert_eq!(config.worker_threads(), None);
    let live = config.live();
    assert_eq!(live.scan_interval, Duration::from_secs(5));
    assert_eq!(live.channel_max_idle, Duration::from_secs(120));
    assert_eq!(live.wait_for_service, Duration::from_secs(45));
    assert_eq!(live.shutdown_wait, Duration::from_secs(30));
    assert!(
        live.enable_topic_list
            && live.enable_all_topic_list
            && live.return_order_topic_config_to_broker
    );
    assert!(
        !live.order_message_enable && !live.need_wait_for_service && !live.support_acting_master
    );
    assert_eq!(
        Config::defaults(&Environment::default()).kv_config_path(),
        "./namesrv/kvConfig.json"
    );
}

#[test]
fn a_home_that_is_not_set_is_left_out_of_319_and_printed_as_nothing() {
    let config = Config::defaults(&Environment {
        rocketmq_home: None,
        ..environment()
    });
    assert!(!config.to_wire_text().contains("rocketmqHome"));
    assert!(has_line(&config.print_items(), "rocketmqHome="));
}
