//! Ports on loopback, and the smallest HTTP client that can ask a health endpoint.

use std::{
    hash::{BuildHasher as _, RandomState},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{
        LazyLock,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::Error;

/// Below the range from which Linux takes the ports of outgoing connections, so that a server that is restarted finds its port.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;
const TRIES: u16 = 500;

/// Where to look next: each process begins somewhere else, and looks at no port again soon, so that no two tests get the same.
static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
    let seed = RandomState::new().hash_one(std::process::id());
    AtomicU16::new(u16::try_from(seed % u64::from(COUNT)).unwrap_or_default())
});

/// `N` addresses on loopback at which nothing listens now, and which this process wasn't given before.
///
/// # Errors
/// When none of hundreds of ports is free.
pub(crate) fn free_addresses<const N: usize>() -> Result<[SocketAddr; N], Error> {
    // All are held until all are found, so that none is found twice.
    let mut held = Vec::with_capacity(N);
    for _ in 0..TRIES {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT));
        if let Ok(listener) = TcpListener::bind(address) {
            held.push((listener, address));
        }
        if held.len() == N {
            break;
        }
    }
    let addresses: Vec<SocketAddr> = held.iter().map(|(_, address)| *address).collect();
    addresses.try_into().map_err(|found: Vec<_>| Error::Machine {
        what: format!("{N} free ports on loopback"),
        why: format!("only {} of {TRIES} tried from {FIRST} on are free", found.len()),
    })
}

/// The body of `GET path`, if the answer is 200 and comes within two seconds.
///
/// # Errors
/// Says what came instead.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<String, String> {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(Duration::from_secs(2), ask).await.map_err(|_| format!("{path}: no answer in 2 s"))?;
    let answer = answer.map_err(|error| format!("{path}: {error}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let first = head.lines().next().unwrap_or_default();
    if first.split(' ').nth(1) == Some("200") { Ok(body.to_owned()) } else { Err(format!("{path}: {first}: {body}")) }
}
