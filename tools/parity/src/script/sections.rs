//! Which themes are asked of which server.

use super::{Section, Theme};
use super::{
    acting, body_compressed, body_plain, config, errors, framing, header_binary, header_json,
    hostile, kv, lists, liveness, register, route, topics_admin, unregister,
};

/// The whole script: one server start for each section.
///
/// Within a section, themes that show all brokers come before themes that leave traces in the original's tables.
#[must_use]
pub fn sections() -> Vec<Section> {
    vec![
        section("wire", &[], wire()),
        section("routes", &[], routes()),
        section(
            "bodies",
            &[],
            vec![
                unregister::theme(),
                body_plain::theme(),
                body_compressed::theme(),
            ],
        ),
        section(
            "hostile",
            &[],
            vec![hostile::residue(), hostile::missing_names()],
        ),
        section(
            "liveness",
            &[("scanNotActiveBrokerInterval", "500")],
            liveness_themes(),
        ),
        section(
            "acting",
            &[
                ("supportActingMaster", "true"),
                ("notifyMinBrokerIdChanged", "true"),
            ],
            vec![acting::theme(), acting::others()],
        ),
        section(
            "config",
            &[
                ("needWaitForService", "true"),
                ("waitSecondsForService", "3600"),
                ("extraKey", "kept"),
            ],
            vec![config::waiting(), config::theme()],
        ),
        section(
            "shutdown",
            &[
                ("enableShutdownGracefully", "true"),
                ("shutdownWaitTimeSeconds", "5"),
            ],
            vec![config::shutdown()],
        ),
    ]
}

fn wire() -> Vec<Theme> {
    vec![
        framing::theme(),
        header_json::theme(),
        header_binary::theme(),
        errors::theme(),
        kv::theme(),
        kv::order(),
    ]
}

fn routes() -> Vec<Theme> {
    vec![
        lists::theme(),
        route::theme(),
        route::zone(),
        route::static_topics(),
        topics_admin::permission(),
        topics_admin::deletion(),
        topics_admin::registration(),
        register::theme(),
        register::updates(),
    ]
}

fn liveness_themes() -> Vec<Theme> {
    vec![
        liveness::answers(),
        liveness::connections(),
        liveness::timeouts(),
        liveness::idle(),
    ]
}

fn section(
    name: &'static str,
    settings: &[(&'static str, &'static str)],
    themes: Vec<Theme>,
) -> Section {
    Section {
        name,
        settings: settings.to_vec(),
        themes,
    }
}
