//! Reads from the store what a claim is about to be refused for, and Claims that ledgers name and no watch has told of.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, header};
use kube::{
    Client, Resource as _,
    api::{GetParams, ListParams},
    core::{Request, Selector, request},
};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::sleep,
};

use super::{
    backoff::Backoff,
    call::{Answer, call},
    listing::Listing,
    observed::Observed,
    write::{ReadBack, read_back},
};
use crate::{
    api::{ClaimReference, Resource},
    engine::{
        event::{Event, Finding, Target},
        look::Sought,
    },
};

/// How long one reading may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Readings at one time at most.
const PLACES: usize = 16;
/// How often one is tried before the claim goes on without: about a minute.
const TRIES: u32 = 16;
/// Objects on a page, and pages at most: every Resource of a large cluster.
const PAGE: u32 = 500;
const PAGES: usize = 100;

/// Reads on demand. What goes on ends with it.
pub struct Looker {
    client: Client,
    events: mpsc::Sender<Vec<Event>>,
    places: Arc<Semaphore>,
    readings: JoinSet<()>,
}

impl Looker {
    /// One that tells what it found as events.
    #[must_use]
    pub fn new(client: Client, events: mpsc::Sender<Vec<Event>>) -> Self {
        Self { client, events, places: Arc::new(Semaphore::new(PLACES)), readings: JoinSet::new() }
    }

    /// Reads a Claim that a ledger names, then tells what became of it.
    pub fn find(&mut self, claim: ClaimReference) {
        while self.readings.try_join_next().is_some() {}
        let (client, events, places) = (self.client.clone(), self.events.clone(), self.places.clone());
        self.readings.spawn(async move {
            let Ok(_place) = places.acquire().await else { return };
            let finding = find(&client, &claim).await;
            let _ = events.send(vec![Event::Found { uid: claim.uid, finding }]).await;
        });
    }

    /// Reads all of it for a claim, then tells it once.
    pub fn look(&mut self, claim: String, sought: Vec<Sought>) {
        while self.readings.try_join_next().is_some() {}
        let (client, events, places) = (self.client.clone(), self.events.clone(), self.places.clone());
        self.readings.spawn(async move {
            let Ok(_place) = places.acquire().await else { return };
            let mut found = Vec::new();
            for one in &sought {
                found.extend(read(&client, one).await);
            }
            // The loop is gone when nobody listens.
            let _ = events.send(vec![Event::Looked { claim, found }]).await;
        });
    }
}

async fn find(client: &Client, claim: &ClaimReference) -> Finding {
    let mut backoff = Backoff::new(100, 5_000);
    let target = Target::Claim(claim.namespace.clone(), claim.name.clone());
    for _ in 0..TRIES {
        let why = match read_back(client, &target).await {
            Ok(ReadBack::Absent) => return Finding::Absent,
            Ok(ReadBack::Present(Event::Claim(claim))) => return Finding::Present(claim),
            Ok(ReadBack::Undecodable(found, _)) if found.uid != claim.uid => return Finding::Absent,
            Ok(ReadBack::Undecodable(_, why)) | Err(why) => why,
            Ok(ReadBack::Present(other)) => format!("the API server answered with {other:?}"),
        };
        tracing::warn!(
            claim = claim.name,
            namespace = claim.namespace,
            why,
            "can't find out about a claim that a ledger names, trying again"
        );
        sleep(backoff.pause()).await;
    }
    Finding::Unknown
}

async fn read(client: &Client, sought: &Sought) -> Vec<Resource> {
    let mut backoff = Backoff::new(100, 5_000);
    for _ in 0..TRIES {
        let read = match sought {
            Sought::Resource(name) => get(client, name).await,
            Sought::Key(key) => by_key(client, key).await,
            Sought::Selector(selector) => match Selector::try_from(selector.clone()) {
                Ok(selector) => list(client, ListParams::default().labels_from(&selector)).await,
                Err(error) => Err(error.to_string()),
            },
        };
        match read {
            Ok(found) => return found,
            Err(why) => {
                tracing::warn!(?sought, why, "can't look at what a claim names, trying again");
                sleep(backoff.pause()).await;
            }
        }
    }
    Vec::new()
}

/// A Resource that names no key has its own name for one.
async fn by_key(client: &Client, key: &str) -> Result<Vec<Resource>, String> {
    let mut found = list(client, ListParams::default().fields(&format!("spec.key={}", escaped(key)))).await?;
    if key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.') {
        found.extend(get(client, key).await?.into_iter().filter(|resource| resource.spec.key.is_none()));
    }
    Ok(found)
}

/// A value in a field selector.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}

async fn get(client: &Client, name: &str) -> Result<Vec<Resource>, String> {
    let answer = ask(client, resources().get(name, &GetParams::default())).await?;
    if answer.is_absent(name) {
        return Ok(Vec::new());
    }
    if !answer.is_good() {
        return Err(answer.refusal().message);
    }
    let mut resource: Resource = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    resource.slim();
    Ok(vec![resource])
}

async fn list(client: &Client, mut parameters: ListParams) -> Result<Vec<Resource>, String> {
    parameters.limit = Some(PAGE);
    let mut found = Vec::new();
    for _ in 0..PAGES {
        let answer = ask(client, resources().list(&parameters)).await?;
        if !answer.is_good() {
            return Err(answer.refusal().message);
        }
        let page = Listing::<Resource>::read(&answer.body).map_err(|error| error.to_string())?;
        // One that can't be decoded is reported by the watch.
        found.extend(page.items.into_iter().flatten().map(|mut resource| {
            resource.slim();
            resource
        }));
        if page.next.is_empty() {
            break;
        }
        parameters.continue_token = Some(page.next);
    }
    Ok(found)
}

fn resources() -> Request {
    Request::new(Resource::url_path(&(), None))
}

async fn ask(client: &Client, request: Result<http::Request<Vec<u8>>, request::Error>) -> Result<Answer, String> {
    let mut request = request.map_err(|error| error.to_string())?;
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    call(client, request, LIMIT).await.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::fake::{Asked, Reaction, client, refusal};

    fn resource(name: &str) -> Value {
        json!({"apiVersion": "tenure.dev/v1alpha1", "kind": "Resource",
            "metadata": {"name": name, "uid": name, "resourceVersion": "5", "managedFields": [{"manager": "x"}]}, "spec": {}})
    }

    async fn looked(react: impl Fn(&Asked, usize) -> Reaction + Send + Sync + 'static, sought: Vec<Sought>) -> (Vec<String>, Vec<String>) {
        let (client, log) = client(react);
        let (sender, mut events) = mpsc::channel(4);
        let mut looker = Looker::new(client, sender);
        looker.look("u-1".into(), sought);
        let told = events.recv().await.unwrap().remove(0);
        let Event::Looked { claim, found } = told else { panic!("{told:?}") };
        assert_eq!(claim, "u-1");
        assert!(found.iter().all(|resource| resource.metadata.managed_fields.is_none()));
        let names = found.into_iter().map(|resource| resource.metadata.name.unwrap()).collect();
        let asked = log.lock().unwrap().iter().map(|asked| format!("{}?{}", asked.path, asked.query)).collect();
        (names, asked)
    }

    #[tokio::test(start_paused = true)]
    async fn q2_what_is_missing_is_told_as_such_and_a_failure_is_tried_again() {
        let react = |asked: &Asked, before: usize| match asked.path.rsplit('/').next() {
            Some("gone") => refusal(404, "NotFound", "gone"),
            Some("gpu") if before == 0 => refusal(500, "InternalError", "gpu"),
            _ => Reaction::Answer(200, resource("gpu")),
        };
        let (found, asked) = looked(react, vec![Sought::Resource("gone".into()), Sought::Resource("gpu".into())]).await;
        assert_eq!((found, asked.len()), (vec!["gpu".to_owned()], 3));
    }

    #[tokio::test(start_paused = true)]
    async fn m3_a_key_is_found_by_a_field_selector_page_by_page() {
        let react = |asked: &Asked, _| {
            let (name, next) = if asked.query.contains("continue=more") { ("b", "") } else { ("a", "more") };
            Reaction::Answer(200, json!({"metadata": {"continue": next}, "items": [resource(name)]}))
        };
        let (found, asked) = looked(react, vec![Sought::Key("a/b=c,d".into())]).await;
        assert_eq!(found, ["a", "b"]);
        let query = r"spec.key%3Da%2Fb%5C%3Dc%5C%2Cd";
        assert!(asked[0].contains(query), "{asked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn m3_a_resource_without_a_key_is_found_by_its_name() {
        let react = |asked: &Asked, _| match asked.path.rsplit('/').next() {
            Some("resources") => Reaction::Answer(200, json!({"metadata": {}, "items": []})),
            _ => Reaction::Answer(200, resource("gpu")),
        };
        let (found, asked) = looked(react, vec![Sought::Key("gpu".into())]).await;
        assert_eq!((found, asked.len()), (vec!["gpu".to_owned()], 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_always_fails_ends() {
        let (found, asked) = looked(|_, _| Reaction::Break, vec![Sought::Resource("gpu".into())]).await;
        assert_eq!((found.len(), asked.len()), (0, TRIES as usize));
    }
}
