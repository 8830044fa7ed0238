//! Posts the event to an address.

#[cfg(feature = "http")]
mod address;
#[cfg(feature = "http")]
mod payload;
#[cfg(feature = "http")]
mod request;

#[cfg(feature = "http")]
pub(super) use payload::{NAME as TASK, read as read_task};
#[cfg(feature = "http")]
pub(super) use request::prepare;

#[cfg(not(feature = "http"))]
pub(super) fn prepare(
    _: &ollm_protocol::hook::action::HttpTarget,
    _: &super::ActionContext<'_>,
) -> super::PreparedAction {
    let why = "http hooks are not supported by this build, which lacks the feature `http`";
    super::PreparedAction::Impossible(why.to_owned())
}
