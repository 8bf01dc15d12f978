//! The real controller on a real API server, beside what the same server takes raw from the same client.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use e2e::{ControlPlane, Controller};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::json;
use tenure::api::{Claim, ClaimSpec, Phase, Request, Resource, ResourceSpec};
use tokio::sync::Mutex;

use super::figure::Figure;

type Problem = Box<dyn std::error::Error + Send + Sync>;

/// Requests on their way at a time.
const TOGETHER: usize = 32;
/// How long a phase may take.
const BOUND: Duration = Duration::from_secs(180);

/// All figures of a cluster.
pub async fn measure(quick: bool, figures: &mut Vec<Figure>) -> Result<(), Problem> {
    let plane = ControlPlane::start().await?;
    let kubeconfig = plane.install().await?.to_owned();
    let client = plane.client().await?;
    let (rounds, count) = if quick { (3, 300) } else { (5, 1_000) };
    let raw = raw(&plane, &client, rounds, count).await?;
    figures.push(Figure::new("raw_writes_per_second", "1/s", raw));
    make_resources(&client, count).await?;
    let mut controller = plane.controller("bench", &kubeconfig, &[]).await?;
    controller.ready(Duration::from_secs(30)).await?;
    controller.logged("everything has been read", Duration::from_secs(30)).await?;
    let (mut rates, mut writes, mut p50, mut p99) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let before = written(&controller).await?;
        let (rate, latencies, after) = grants(&plane, &client, &controller, round, count).await?;
        writes.push((after - before) / count as f64);
        rates.push(rate);
        let latencies = Figure::new("", "ms", latencies);
        p50.push(latencies.at(500));
        p99.push(latencies.at(990));
    }
    figures.push(Figure::new("claims_per_second", "1/s", rates));
    figures.push(Figure::new("granted_ms_p50", "ms", p50));
    figures.push(Figure::new("granted_ms_p99", "ms", p99));
    figures.push(Figure::new("writes_per_claim", "writes", writes));
    let mut made = 0;
    for (name, claims) in [("controller_mib_1000", 1_000), ("controller_mib_10000", 10_000)] {
        let namespace = plane.new_namespace("memory").await?;
        make_claims(&client, &namespace, made..claims, count).await?;
        made = claims;
        tokio::time::sleep(Duration::from_secs(3)).await;
        figures.push(Figure::new(name, "MiB", vec![resident_mib(controller.pid())?]));
    }
    controller.terminate(Duration::from_secs(10)).await?;
    Ok(())
}

fn claim(name: &str, resource: usize, wait: i64) -> Claim {
    let request = Request { name: "it".to_owned(), resource: Some(format!("bench-{resource}")), ..Default::default() };
    let spec = ClaimSpec { requests: vec![request], max_wait_seconds: Some(wait), lease_seconds: Some(86_400), ..Default::default() };
    Claim::new(name, spec)
}

/// Creates claims and writes a status of each, as fast as the server takes it. Writes a second.
async fn raw(plane: &ControlPlane, client: &Client, rounds: usize, count: usize) -> Result<Vec<f64>, Problem> {
    let mut rates = Vec::new();
    for round in 0..rounds {
        let namespace = plane.new_namespace(&format!("raw-{round}")).await?;
        let api: Api<Claim> = Api::namespaced(client.clone(), &namespace);
        let begin = Instant::now();
        let api = &api;
        stream::iter(0..count)
            .map(Ok::<usize, kube::Error>)
            .try_for_each_concurrent(TOGETHER, |place| async move {
                let mut made = api.create(&PostParams::default(), &claim(&format!("c{place}"), place, 0)).await?;
                let status =
                    json!({"phase": "Queued", "ticket": place, "message": "as long as a real one usually is, so that it costs the same"});
                made.status = serde_json::from_value(status).ok();
                api.replace_status(&made.name_any(), &PostParams::default(), &made).await.map(|_| ())
            })
            .await?;
        rates.push(2.0 * count as f64 / begin.elapsed().as_secs_f64());
        plane.delete_namespace(&namespace).await?;
    }
    Ok(rates)
}

async fn make_resources(client: &Client, count: usize) -> Result<(), Problem> {
    let api: Api<Resource> = Api::all(client.clone());
    let api = &api;
    stream::iter(0..count)
        .map(Ok::<usize, kube::Error>)
        .try_for_each_concurrent(TOGETHER, |place| async move {
            api.create(&PostParams::default(), &Resource::new(&format!("bench-{place}"), ResourceSpec::default())).await.map(|_| ())
        })
        .await?;
    Ok(())
}

async fn make_claims(client: &Client, namespace: &str, places: std::ops::Range<usize>, resources: usize) -> Result<(), Problem> {
    let api: Api<Claim> = Api::namespaced(client.clone(), namespace);
    let api = &api;
    stream::iter(places)
        .map(Ok::<usize, kube::Error>)
        .try_for_each_concurrent(TOGETHER, |place| async move {
            api.create(&PostParams::default(), &claim(&format!("m{place}"), place % resources, 3_600)).await.map(|_| ())
        })
        .await?;
    Ok(())
}

/// One claim for each Resource, from the first create until the last is seen Active: claims a second, each one's milliseconds, and
/// how many writes the controller had made by then. Afterwards all are released.
async fn grants(
    plane: &ControlPlane,
    client: &Client,
    controller: &Controller,
    round: usize,
    count: usize,
) -> Result<(f64, Vec<f64>, f64), Problem> {
    let namespace = plane.new_namespace(&format!("grants-{round}")).await?;
    let api: Api<Claim> = Api::namespaced(client.clone(), &namespace);
    let began: Arc<Mutex<HashMap<String, Instant>>> = Arc::default();
    let watched = tokio::spawn(watch(api.clone(), began.clone(), count));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let begin = Instant::now();
    let (api, started) = (&api, &began);
    stream::iter(0..count)
        .map(Ok::<usize, kube::Error>)
        .try_for_each_concurrent(TOGETHER, |place| async move {
            let name = format!("g{place}");
            started.lock().await.insert(name.clone(), Instant::now());
            api.create(&PostParams::default(), &claim(&name, place, 0)).await.map(|_| ())
        })
        .await?;
    let latencies = tokio::time::timeout(BOUND, watched).await???;
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    let after = written(controller).await?;
    let release = Patch::Merge(json!({"spec": {"release": {}}}));
    let release = &release;
    stream::iter(0..count)
        .map(Ok::<usize, kube::Error>)
        .try_for_each_concurrent(TOGETHER, |place| async move {
            api.patch(&format!("g{place}"), &PatchParams::default(), release).await.map(|_| ())
        })
        .await?;
    settle(client, count).await?;
    Ok((rate, latencies, after))
}

async fn watch(api: Api<Claim>, began: Arc<Mutex<HashMap<String, Instant>>>, count: usize) -> Result<Vec<f64>, Problem> {
    let mut claims = watcher(api, watcher::Config::default()).applied_objects().boxed();
    let mut latencies: HashMap<String, f64> = HashMap::new();
    while latencies.len() < count {
        let Some(claim) = claims.try_next().await? else { return Err("the watch ended".into()) };
        let phase = claim.status.as_ref().map(|status| status.phase).unwrap_or_default();
        let name = claim.name_any();
        if phase == Phase::Active && !latencies.contains_key(&name) {
            let Some(begin) = began.lock().await.get(&name).copied() else { continue };
            latencies.insert(name, begin.elapsed().as_secs_f64() * 1e3);
        } else if phase.is_final() {
            return Err(format!("{name} is {}", phase.as_str()).into());
        }
    }
    Ok(latencies.into_values().collect())
}

/// Waits until nothing occupies the Resources any more.
async fn settle(client: &Client, count: usize) -> Result<(), Problem> {
    let api: Api<Resource> = Api::all(client.clone());
    let begin = Instant::now();
    while begin.elapsed() < BOUND {
        let resources = api.list(&Default::default()).await?;
        let free = resources.iter().filter(|resource| resource.status.as_ref().is_some_and(|status| status.occupants.is_empty())).count();
        if free >= count {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    Err("the Resources are not free in time".into())
}

/// How many writes of ledgers and claims the controller has made.
async fn written(controller: &Controller) -> Result<f64, Problem> {
    let text = controller.metrics().await?;
    let lines = text.lines().filter(|line| line.starts_with("tenure_writes_total{") && line.contains("outcome=\"Written\""));
    Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
}

fn resident_mib(pid: u32) -> Result<f64, Problem> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    let kib: f64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kib / 1_024.0)
}
