//! Reads lists that come in pages, with bounds on pages, entries and time, and never the same page twice.

use std::collections::HashSet;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams,
};
use serde_json::Value;
use tokio::time::timeout_at;

use crate::clock::after;
use crate::error::{CallErrorKind, bytes, seconds};
use crate::requester::{RequestDeadline, RequestError, Requester};
use crate::settings::Bounds;

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

/// The entries of a list as the server wrote them, and why some may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The entries.
    pub items: Vec<Value>,
    /// What was left out, and why.
    pub warnings: Vec<String>,
}

impl ListKind {
    fn request(self, cursor: Option<String>) -> ClientRequest {
        let page = Some(PaginatedRequestParams::default().with_cursor(cursor));
        match self {
            ListKind::Tools => ClientRequest::ListToolsRequest(ListToolsRequest { params: page, ..Default::default() }),
            ListKind::Prompts => {
                ClientRequest::ListPromptsRequest(ListPromptsRequest { params: page, ..Default::default() })
            }
            ListKind::Resources => {
                ClientRequest::ListResourcesRequest(ListResourcesRequest { params: page, ..Default::default() })
            }
            ListKind::Templates => ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
                params: page,
                ..Default::default()
            }),
        }
    }

    fn field(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
            ListKind::Resources => "resources",
            ListKind::Templates => "resourceTemplates",
        }
    }

    fn method(self) -> &'static str {
        match self {
            ListKind::Tools => "tools/list",
            ListKind::Prompts => "prompts/list",
            ListKind::Resources => "resources/list",
            ListKind::Templates => "resources/templates/list",
        }
    }
}

/// Reads a whole list, as far as the bounds allow. It fails only if the first page does not come.
pub(crate) async fn list(requester: &Requester, kind: ListKind, bounds: &Bounds) -> Result<Listing, RequestError> {
    let end = after(bounds.listing);
    let mut listing = Listing::default();
    let mut seen = HashSet::new();
    let (mut cursor, mut room) = (None, bounds.list);
    let name = kind.field();
    for page in 0..bounds.pages {
        let (items, next) = match timeout_at(end, fetch(requester, kind, cursor, bounds)).await {
            Ok(Ok(page)) => page,
            Ok(Err(failure)) if page == 0 => return Err(failure),
            Ok(Err(_)) => return Ok(listing.cut(&format!("page {} of its {name} cannot be read", page + 1))),
            Err(_) if page == 0 => {
                let (what, after) = (kind.method().to_owned(), bounds.listing);
                return Err(RequestError::Failed(CallErrorKind::TimedOut { what, after }));
            }
            Err(_) => return Ok(listing.cut(&format!("listing its {name} took over {}", seconds(bounds.listing)))),
        };
        if let Err(why) = listing.take(items, &mut room, kind, bounds) {
            return Ok(listing.cut(&why));
        }
        let Some(next) = next else {
            return Ok(listing);
        };
        if next.len() > bounds.cursor {
            return Ok(listing.cut(&format!("its word for the next page of {name} is over {} bytes", bounds.cursor)));
        }
        if !seen.insert(next.clone()) {
            return Ok(listing.cut(&format!("its pages of {name} go round in circles")));
        }
        cursor = Some(next);
    }
    Ok(listing.cut(&format!("it lists its {name} on more than {} pages", bounds.pages)))
}

impl Listing {
    /// Takes the entries of a page as far as there is room; fails with the reason why some were left out.
    fn take(&mut self, items: Vec<Value>, room: &mut usize, kind: ListKind, bounds: &Bounds) -> Result<(), String> {
        let name = kind.field();
        for item in items {
            if self.items.len() == bounds.items {
                return Err(format!("it lists more than {} {name}", bounds.items));
            }
            let left = room.checked_sub(item.to_string().len());
            *room = left.ok_or_else(|| format!("its {name} take more than {}", bytes(bounds.list)))?;
            self.items.push(item);
        }
        Ok(())
    }

    fn cut(mut self, why: &str) -> Self {
        self.warnings.push(format!("{why}; the rest is left out"));
        self
    }
}

async fn fetch(
    requester: &Requester,
    kind: ListKind,
    cursor: Option<String>,
    bounds: &Bounds,
) -> Result<(Vec<Value>, Option<String>), RequestError> {
    let deadline = RequestDeadline::new(bounds.listing, bounds.listing);
    let answer = requester.ask(kind.request(cursor), kind.method(), deadline, None).await?;
    let mut answer = serde_json::to_value(answer).unwrap_or_default();
    let Some(Value::Array(items)) = answer.get_mut(kind.field()).map(Value::take) else {
        let text = format!("its answer to `{}` has no list of {}", kind.method(), kind.field());
        return Err(RequestError::Failed(CallErrorKind::Unexpected(text)));
    };
    let next = answer.get("nextCursor").and_then(Value::as_str).filter(|next| !next.is_empty());
    Ok((items, next.map(str::to_owned)))
}
