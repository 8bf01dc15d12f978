//! Terms number the leaders: each takes one more than any Lease or ledger ever carried, so a ledger refuses an older leader.

use kube::Client;
use serde::Deserialize;

/// The Lease's annotation with its holder's term.
pub const TERM_ANNOTATION: &str = "tenure.dev/term";

/// Ledgers read in one request.
const PAGE: usize = 500;
/// Pages read before giving up: ten million ledgers.
const PAGES: usize = 20_000;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Page {
    metadata: PageMeta,
    items: Vec<Item>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMeta {
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    status: Option<Ledger>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ledger {
    term: i64,
}

/// The highest term in any ledger, 0 when there is none.
///
/// # Errors
/// When Resources can't be listed: not installed, forbidden, or no answer.
pub async fn highest_term(client: &Client) -> Result<i64, kube::Error> {
    let mut highest = 0;
    let mut next = String::new();
    for _ in 0..PAGES {
        let path = format!("/apis/tenure.dev/v1alpha1/resources?limit={PAGE}{next}");
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let page: Page = client.request(request).await?;
        let terms = page.items.into_iter().filter_map(|item| item.status).map(|ledger| ledger.term);
        highest = terms.fold(highest, i64::max);
        match page.metadata.next.filter(|token| !token.is_empty()) {
            Some(token) => next = format!("&continue={token}"),
            None => break,
        }
    }
    Ok(highest)
}
