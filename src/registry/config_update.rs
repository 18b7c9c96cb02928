//! `UPDATE_NAMESRV_CONFIG` (spec 5.4): like a KV change, durable before visible and applied whole or not at all.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;

use super::{
    Effect, FileContent, Registry,
    command::{PersistFile, PersistTicket, ReplyTo},
};
use crate::{
    config::Config,
    limits,
    protocol::{code::ResponseCode, command::Response},
    time::Timestamp,
};

const NO_PERMISSION: i32 = ResponseCode::NoPermission as i32;

/// What is on its way to the disk. One update at a time: the next one starts from what this one leaves.
#[derive(Debug, Default)]
pub(super) struct ConfigWriter {
    waiting: VecDeque<(ReplyTo, Bytes)>,
    out: Option<Out>,
    last_number: u64,
}

#[derive(Debug)]
struct Out {
    number: u64,
    to: ReplyTo,
    config: Config,
    response: Response,
}

impl Registry {
    pub(super) fn update_config(&mut self, to: ReplyTo, body: Bytes) {
        if self.config.waiting.len() >= limits::CONFIG_WAITING_MAX {
            let remark = "[OVERLOAD]system busy, start flow control for a while";
            self.reply(to, Response::error(ResponseCode::SystemBusy, remark));
            return;
        }
        self.config.waiting.push_back((to, body));
    }

    /// Works through the waiting updates up to the first that has to be written.
    pub(super) fn start_config_persist(&mut self) {
        while self.config.out.is_none() {
            let Some((to, body)) = self.config.waiting.pop_front() else {
                return;
            };
            let update = match self.working.config.update(&body) {
                Ok(update) => update,
                Err(refusal) => {
                    tracing::warn!("updateConfig refused, {}: {refusal:?}", refusal.remark());
                    let code = if refusal.code() == NO_PERMISSION {
                        ResponseCode::NoPermission
                    } else {
                        ResponseCode::SystemError
                    };
                    self.reply(to, Response::error(code, refusal.remark()));
                    continue;
                }
            };
            let response = Response {
                remark: update.remark.map(Into::into),
                ..Response::success()
            };
            if !update.changed {
                self.reply(to, response);
                continue;
            }
            self.config.last_number += 1;
            let number = self.config.last_number;
            let file = update.config.to_file_text();
            self.effects.push(Effect::Persist(
                PersistTicket {
                    file: PersistFile::Properties,
                    number,
                },
                FileContent::Text(file),
            ));
            self.config.out = Some(Out {
                number,
                to,
                config: update.config,
                response,
            });
        }
    }

    pub(super) fn config_persisted(
        &mut self,
        number: u64,
        result: Result<(), String>,
        now: Timestamp,
    ) {
        let Some(out) = self.config.out.take_if(|out| out.number == number) else {
            return;
        };
        let response = match result {
            Ok(()) => {
                tracing::info!(
                    "updateConfig applied, {}",
                    out.response.remark.as_deref().unwrap_or("no remark")
                );
                self.working.settings = out.config.live();
                self.working.config = Arc::new(out.config);
                self.changed = true;
                self.reschedule_scan(now);
                out.response
            }
            Err(error) => {
                tracing::error!("persist configuration Exception, {error}");
                let remark = format!("configuration could not be stored and is unchanged: {error}");
                Response::error(ResponseCode::SystemError, remark)
            }
        };
        self.reply(out.to, response);
    }
}
