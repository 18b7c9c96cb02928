//! Getting and starting the Java name servers that are the oracles.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};
use crate::launch::{Launcher, Pace, Server, free_port, fresh_folder, start, write_conf};

/// The one log configuration, for every file name a release may ask for.
const LOGBACK: &str = r#"<configuration>
  <appender name="F" class="ch.qos.logback.core.FileAppender"><file>${user.home}/rocketmq.log</file>
    <encoder><pattern>%d{HH:mm:ss.SSS} %p %c{0} %t - %m%n</pattern></encoder></appender>
  <root level="INFO"><appender-ref ref="F"/></root>
</configuration>
"#;

/// Starts Java name servers of one release, one at a time.
#[derive(Debug)]
pub struct JavaLauncher {
    release: String,
    work: PathBuf,
}

impl JavaLauncher {
    /// Makes the jars of `release` present under `work`, downloading them with Maven when they are not.
    ///
    /// # Errors
    /// Maven fails.
    pub fn prepare(release: &str, work: &Path) -> Result<JavaLauncher> {
        fs::create_dir_all(work)?;
        let launcher = JavaLauncher {
            release: release.to_owned(),
            work: work.canonicalize()?,
        };
        if !launcher.jars().is_dir() {
            launcher.download()?;
        }
        Ok(launcher)
    }

    fn folder(&self) -> PathBuf {
        self.work.join("libs").join(&self.release)
    }

    fn jars(&self) -> PathBuf {
        self.folder().join("lib")
    }

    fn download(&self) -> Result<()> {
        let folder = self.folder();
        fs::create_dir_all(&folder)?;
        let pom = format!(
            "<project><modelVersion>4.0.0</modelVersion><groupId>parity</groupId><artifactId>oracle</artifactId>\
             <version>1</version><dependencies><dependency><groupId>org.apache.rocketmq</groupId>\
             <artifactId>rocketmq-namesrv</artifactId><version>{}</version></dependency></dependencies></project>\n",
            self.release
        );
        fs::write(folder.join("pom.xml"), pom)?;
        let status = Command::new("mvn")
            .args([
                "-B",
                "-q",
                "dependency:copy-dependencies",
                "-DoutputDirectory=lib.part",
            ])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(Error::new(format!(
                "mvn cannot get rocketmq-namesrv {}",
                self.release
            )));
        }
        // Renamed only when complete, so that an interrupted download is not taken for a finished one.
        fs::rename(folder.join("lib.part"), self.jars())?;
        Ok(())
    }

    /// The folder that plays the part of the RocketMQ installation.
    fn home(&self) -> Result<PathBuf> {
        let home = self.folder().join("home");
        let conf = home.join("conf");
        fs::create_dir_all(&conf)?;
        for name in [
            "logback.xml",
            "logback_namesrv.xml",
            "logback_broker.xml",
            "logback_tools.xml",
        ] {
            fs::write(conf.join(name), LOGBACK)?;
        }
        Ok(home)
    }

    fn command(&self, user_home: &Path, conf: &Path) -> Result<Command> {
        let home = self.home()?;
        let mut command = Command::new("java");
        command
            .args([
                "-Xms64m",
                "-Xmx512m",
                "-XX:MaxDirectMemorySize=512m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
            ])
            .arg(format!("-Duser.home={}", user_home.display()))
            .arg(format!("-Drocketmq.home.dir={}", home.display()))
            .arg(format!(
                "-Drmq.logback.configurationFile={}",
                home.join("conf/logback.xml").display()
            ));
        for package in ["java.lang", "java.nio", "sun.nio.ch", "jdk.internal.ref"] {
            command.arg(format!("--add-opens=java.base/{package}=ALL-UNNAMED"));
        }
        command
            .arg("-cp")
            .arg(self.jars().join("*"))
            .arg("org.apache.rocketmq.namesrv.NamesrvStartup")
            .arg("-c")
            .arg(conf)
            .env("ROCKETMQ_HOME", &home)
            .env_remove("NAMESRV_ADDR")
            .env_remove("ROCKETMQ_SERIALIZE_TYPE")
            .env_remove("JAVA_TOOL_OPTIONS");
        Ok(command)
    }
}

impl Launcher for JavaLauncher {
    fn name(&self) -> String {
        self.release.clone()
    }

    fn pace(&self) -> Pace {
        Pace::patient()
    }

    fn launch(&mut self, section: &str, settings: &[(&str, &str)]) -> Result<Box<dyn Server>> {
        let folder = fresh_folder(&self.work, section)?;
        let port = free_port()?;
        let conf = write_conf(&folder, port, settings)?;
        let command = self.command(&folder, &conf)?;
        // 4.9.x does not print its address, and listens on the wildcard one.
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Ok(Box::new(start(command, folder, false, Some(address))?))
    }
}
