//! Posts the event to an address.

use ollm_protocol::hook::action::HttpTarget;

use super::{ActionContext, Prepared, Run};

#[cfg(feature = "http")]
mod address;
#[cfg(feature = "http")]
mod payload;
#[cfg(feature = "http")]
mod request;

#[cfg(feature = "http")]
pub(super) use payload::{NAME as TASK, read as read_task};

impl Run for HttpTarget {
    #[cfg(feature = "http")]
    fn prepare(&self, context: &ActionContext<'_>) -> Prepared {
        request::prepare(self, context)
    }

    #[cfg(not(feature = "http"))]
    fn prepare(&self, _: &ActionContext<'_>) -> Prepared {
        let why = "http hooks are not supported by this build, which lacks the feature `http`";
        Prepared::Impossible(why.to_owned())
    }
}
