//! Writes the inputs that fuzzing starts from: the frames that the parity script sends, which are those of real peers and odd
//! ones, and the bodies in them. `cargo run --example seeds -- FOLDER` makes a folder for each target.

use std::{collections::BTreeMap, fs, io::Read as _, path::Path};

use parity::{
    frame::Codec,
    script::{Action, sections},
};

/// Frames above this length teach nothing that shorter ones do not.
const FRAME_LEN_MAX: usize = 8 * 1024;

/// Frames that share one input of the target `connection`.
const FRAMES_A_STREAM: usize = 6;

fn main() {
    write_seeds(Path::new(&std::env::args().nth(1).expect("a folder")));
}

pub(crate) fn write_seeds(folder: &Path) {
    let mut seeds = Seeds::default();
    for section in sections() {
        let settings: Vec<_> = section
            .settings
            .iter()
            .map(|(key, value)| format!("{key}={value}\n"))
            .collect();
        seeds.add("config_text", settings.concat().into_bytes());
        for theme in section.themes {
            let actions = theme.steps.into_iter().map(|step| step.action);
            let frames: Vec<_> = actions
                .flat_map(frames_of)
                .filter(|frame| frame.len() <= FRAME_LEN_MAX)
                .collect();
            for frame in &frames {
                seeds.add_frame(frame);
            }
            for (number, frames) in (0_u32..).zip(frames.chunks(FRAMES_A_STREAM)) {
                let schedule = number.wrapping_mul(0x9E37_79B9).to_le_bytes();
                seeds.add("connection", [&schedule[..], &frames.concat()].concat());
            }
        }
    }
    for text in KV_FILES {
        seeds.add("kv_file", text.as_bytes().to_vec());
    }
    for text in CONFIG_TEXTS {
        seeds.add("config_text", text.as_bytes().to_vec());
    }
    seeds.write(folder);
}

const KV_FILES: [&str; 4] = [
    r#"{"configTable":{"ORDER_TOPIC_CONFIG":{"TopicA":"broker-a:4;broker-b:2","\u4e2d":"\ud83d\ude00"},"ns":{}}}"#,
    "{ /* by hand */ configTable : { 'ns' : { \"a\" : 1, \"b\" : true, \"c\" : \"\", \"d\" : null, }, }, x: [1.5e3, {}] }\n",
    r#"{"configTable":null,"configTable":{"ns":null,"ns":{"a":"0","a":"1","\"\\\/\b\f\n\r\t\x41\7":"x"}}}"#,
    "null",
];

const CONFIG_TEXTS: [&str; 5] = [
    "# comment\nlistenPort = 9877\nbindAddress:127.0.0.1\norderMessageEnable true\nkvConfigPath=/tmp/\\\n  kv.json\n",
    "configBlackList=configBlackList;configStorePath;kvConfigPath;x\nwaypost.configUpdateEnable=false\nwaypost.logTimeZone=GMT-03:30\n",
    "writeBufferLowWaterMark=100\nwriteBufferHighWaterMark=50\nserverChannelMaxIdleTimeSeconds=0\nremembered=\\u4e2d\\ud83d\\ude00\n",
    "scanNotActiveBrokerInterval=5000\r\nlistenport=1\r\naccessKey=secret\r\ntls.enable=true\r\nrocketmqHome=\\\\x\r\n",
    "\u{feff}com.rocketmq.remoting.frameMaxLength=65536\nwaypost.workerThreads=2\nwaypost.brokerNameConflict=reject\n=x\na=\\u12\n",
];

/// What an action sends, frame by frame.
fn frames_of(action: Action) -> Vec<Vec<u8>> {
    match action {
        Action::Ask(frame)
        | Action::Lines(frame, _)
        | Action::Quiet(frame)
        | Action::Until(frame, _) => vec![frame.encode(7)],
        Action::Pipeline(frames) | Action::Repeat(_, frames) => (1..)
            .zip(frames)
            .map(|(opaque, frame)| frame.encode(opaque))
            .collect(),
        Action::Raw(chunks, _) => vec![chunks.concat()],
        Action::AwaitClose
        | Action::Close
        | Action::Reset
        | Action::HalfClose
        | Action::Settle
        | Action::Listen
        | Action::Heard
        | Action::Unheard
        | Action::Terminate => Vec::new(),
    }
}

#[derive(Default)]
struct Seeds {
    /// By target.
    inputs: BTreeMap<&'static str, Vec<Vec<u8>>>,
}

impl Seeds {
    fn add(&mut self, target: &'static str, input: Vec<u8>) {
        let inputs = self.inputs.entry(target).or_default();
        if !inputs.contains(&input) {
            inputs.push(input);
        }
    }

    /// Adds a frame, its header and its body to the targets that read such.
    fn add_frame(&mut self, frame: &[u8]) {
        self.add("frame", frame.to_vec());
        let Some((&[type_byte, high, middle, low], rest)) =
            frame.get(4..).and_then(|frame| frame.split_first_chunk())
        else {
            return;
        };
        let header_len = u32::from_be_bytes([0, high, middle, low]);
        let Some((header, body)) = rest.split_at_checked(header_len as usize) else {
            return;
        };
        if type_byte == Codec::RocketMq as u8 {
            self.add("header_rocketmq", header.to_vec());
        } else {
            self.add("header_json", header.to_vec());
            self.add("header_scan", header.to_vec());
        }
        if body.starts_with(&[0x78]) {
            // Last of the versions, and as a stream; then what is inside it.
            self.add("register_body_compressed", [&[10], body].concat());
            let mut layout = vec![11];
            let inflated = flate2::read::ZlibDecoder::new(body).read_to_end(&mut layout);
            if inflated.is_ok() {
                self.add("register_body_compressed", layout);
            }
        } else if body.starts_with(b"{") {
            self.add("register_body", [&[5], body].concat());
        } else if !body.is_empty() {
            self.add("config_text", body.to_vec());
        }
    }

    fn write(&self, folder: &Path) {
        for (target, inputs) in &self.inputs {
            let folder = folder.join(target);
            fs::create_dir_all(&folder).expect("the folder can be made");
            for (number, input) in inputs.iter().enumerate() {
                fs::write(folder.join(format!("seed-{number:04}")), input)
                    .expect("the seed can be written");
            }
        }
    }
}
