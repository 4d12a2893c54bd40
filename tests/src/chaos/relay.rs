//! The network between hosts: one task for each device that passes packets on, and does to them what the link says.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tun_rs::{AsyncDevice, SyncDevice};

use super::packet;

/// Longest packet that a device hands over.
const PACKET_MAX: usize = 2048;

/// Bytes that wait for a slow link; more are lost, as in a router.
const BACKLOG_MAX: u64 = 256 * 1024;

/// What happens to packets from one host to another. Probabilities are per packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Nothing passes.
    pub cut: bool,
    /// Lost.
    pub loss: f64,
    /// Sent twice.
    pub duplicate: f64,
    /// One bit is turned.
    pub corrupt: f64,
    /// Held back, so that later ones overtake it.
    pub reorder: f64,
    /// On the way for so long.
    pub delay: Duration,
    /// And up to so much longer, evenly distributed.
    pub jitter: Duration,
    /// Bytes a second; 0 is as fast as the machine.
    pub bandwidth: u64,
    /// Replaced by an end of its connection.
    pub reset: f64,
}

impl Link {
    /// A good network.
    pub const CLEAR: Self = Self {
        cut: false,
        loss: 0.0,
        duplicate: 0.0,
        corrupt: 0.0,
        reorder: 0.0,
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        bandwidth: 0,
        reset: 0.0,
    };
}

/// What links did to packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Passed on.
    pub passed: u64,
    /// Lost, at a cut or by chance.
    pub lost: u64,
    /// Sent twice.
    pub duplicated: u64,
    /// Changed.
    pub corrupted: u64,
    /// Held back or late.
    pub delayed: u64,
    /// Ended connections.
    pub reset: u64,
}

impl Counts {
    /// Packets to which something happened.
    #[must_use]
    pub const fn touched(&self) -> u64 {
        self.lost + self.duplicated + self.corrupted + self.delayed + self.reset
    }
}

#[derive(Debug)]
struct Shared {
    links: BTreeMap<(Ipv4Addr, Ipv4Addr), Link>,
    /// When a link with a bandwidth has sent what waits.
    free: BTreeMap<(Ipv4Addr, Ipv4Addr), Instant>,
    counts: Counts,
    random: StdRng,
}

/// The network: a thread that lives as long as this value.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Mutex<Shared>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Joins hosts.
    ///
    /// # Errors
    /// A device cannot be read, or there is no thread.
    pub fn start(devices: Vec<(Ipv4Addr, SyncDevice)>, seed: u64) -> io::Result<Self> {
        let shared = Arc::new(Mutex::new(Shared {
            links: BTreeMap::new(),
            free: BTreeMap::new(),
            counts: Counts::default(),
            random: StdRng::seed_from_u64(seed),
        }));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let devices = {
            let _context = runtime.enter();
            let opened = devices
                .into_iter()
                .map(|(address, device)| Ok((address, Arc::new(AsyncDevice::new(device)?))));
            opened.collect::<io::Result<BTreeMap<_, _>>>()?
        };
        let (stop, stopped) = oneshot::channel();
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("relay".into())
            .spawn(move || {
                runtime.block_on(async move {
                    let all = Arc::new(devices);
                    for device in all.values() {
                        tokio::spawn(pass_on(
                            Arc::clone(device),
                            Arc::clone(&all),
                            Arc::clone(&for_thread),
                        ));
                    }
                    // An error means that the relay was dropped: the same.
                    drop(stopped.await);
                });
            })?;
        Ok(Self {
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }

    /// Sets what happens between two hosts, in one direction.
    pub fn set(&self, from: Ipv4Addr, to: Ipv4Addr, link: Link) {
        let mut shared = self.shared();
        shared.free.remove(&(from, to));
        shared.links.insert((from, to), link);
    }

    /// Makes every link good.
    pub fn heal(&self) {
        let mut shared = self.shared();
        shared.free.clear();
        shared.links.clear();
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared().counts
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // An error means that the thread has ended.
            stop.send(()).ok();
        }
        if let Some(thread) = self.thread.take() {
            // It panics only where a test has failed already.
            drop(thread.join());
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What becomes of one packet.
enum Fate {
    Lost,
    /// Sent so often, after a time.
    Sent(u32, Duration),
    /// Both ends hear that their connection ended.
    Reset,
}

impl Shared {
    fn decide(&mut self, from: Ipv4Addr, to: Ipv4Addr, packet: &mut [u8]) -> Fate {
        let Some(link) = self.links.get(&(from, to)).copied() else {
            self.counts.passed += 1;
            return Fate::Sent(1, Duration::ZERO);
        };
        let chance = |random: &mut StdRng, of: f64| of > 0.0 && random.random_bool(of);
        if link.cut || chance(&mut self.random, link.loss) {
            self.counts.lost += 1;
            return Fate::Lost;
        }
        if chance(&mut self.random, link.reset) && packet::is_tcp(packet) {
            self.counts.reset += 1;
            return Fate::Reset;
        }
        if chance(&mut self.random, link.corrupt) {
            self.counts.corrupted += 1;
            let bit = self.random.random_range(0..packet.len() * 8);
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        let mut after = link.delay;
        if !link.jitter.is_zero() {
            after += self.random.random_range(Duration::ZERO..link.jitter);
        }
        if chance(&mut self.random, link.reorder) {
            after += Duration::from_millis(self.random.random_range(1..20));
        }
        if link.bandwidth > 0 {
            let now = Instant::now();
            let free = self.free.get(&(from, to)).copied().unwrap_or(now).max(now);
            let waiting = free.duration_since(now).as_secs_f64() * bytes(link.bandwidth);
            if waiting > bytes(BACKLOG_MAX) {
                self.counts.lost += 1;
                return Fate::Lost;
            }
            let length = u64::try_from(packet.len()).expect("a packet is short");
            let takes = Duration::from_secs_f64(bytes(length) / bytes(link.bandwidth));
            self.free.insert((from, to), free + takes);
            after += free.duration_since(now) + takes;
        }
        if !after.is_zero() {
            self.counts.delayed += 1;
        }
        self.counts.passed += 1;
        if chance(&mut self.random, link.duplicate) {
            self.counts.duplicated += 1;
            return Fate::Sent(2, after);
        }
        Fate::Sent(1, after)
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "rates need no more than 52 bits"
)]
fn bytes(count: u64) -> f64 {
    count as f64
}

/// Reads one device and passes on what it sends, until the device or the network is gone.
async fn pass_on(
    device: Arc<AsyncDevice>,
    all: Arc<BTreeMap<Ipv4Addr, Arc<AsyncDevice>>>,
    shared: Arc<Mutex<Shared>>,
) {
    let mut buffer = [0; PACKET_MAX];
    while let Ok(length) = device.recv(&mut buffer).await {
        let packet = &mut buffer[..length];
        let Some((from, to)) = packet::addresses(packet) else {
            continue;
        };
        let Some(target) = all.get(&to) else {
            continue;
        };
        let fate = lock(&shared).decide(from, to, packet);
        match fate {
            Fate::Lost => {}
            Fate::Sent(1, after) if after.is_zero() => send(target, packet).await,
            Fate::Sent(times, after) => {
                let (target, packet) = (Arc::clone(target), packet.to_vec());
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    for _ in 0..times {
                        send(&target, &packet).await;
                    }
                });
            }
            Fate::Reset => {
                if let Some((ahead, back)) = packet::resets(packet) {
                    send(target, &ahead).await;
                    send(&device, &back).await;
                }
            }
        }
    }
}

/// Sends, as a network does: what the other side cannot take is lost.
async fn send(device: &AsyncDevice, packet: &[u8]) {
    drop(device.send(packet).await);
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::super::namespace::Namespace;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Two hosts and the network between them; `None`, loudly, where the system allows no namespaces.
    fn two_hosts() -> Option<(Namespace, Namespace, Relay)> {
        let address = |last| Ipv4Addr::new(10, 99, 1, last);
        match (Namespace::create(address(1)), Namespace::create(address(2))) {
            (Ok((a, device_a)), Ok((b, device_b))) => {
                let devices = vec![(a.address(), device_a), (b.address(), device_b)];
                Some((a, b, Relay::start(devices, 1).expect("a relay")))
            }
            (Err(why), _) | (_, Err(why)) => {
                eprintln!("SKIPPED: no network namespaces here: {why}");
                None
            }
        }
    }

    /// A connection between the hosts: its two ends.
    fn connect(a: &Namespace, b: &Namespace) -> (TcpStream, TcpStream) {
        let to = SocketAddr::new(b.address().into(), 7000);
        let listener = b.run(move || TcpListener::bind(to)).expect("alive");
        let listener = listener.expect("bound");
        let near = a.run(move || TcpStream::connect(to)).expect("alive");
        let near = near.expect("connected");
        let (far, _) = listener.accept().expect("accepted");
        for end in [&near, &far] {
            end.set_read_timeout(Some(PATIENCE)).expect("set");
        }
        (near, far)
    }

    #[test]
    fn a_bad_link_costs_time_and_no_bytes_of_a_connection() {
        let Some((a, b, relay)) = two_hosts() else {
            return;
        };
        let bad = Link {
            loss: 0.05,
            duplicate: 0.05,
            corrupt: 0.05,
            reorder: 0.1,
            delay: Duration::from_millis(2),
            jitter: Duration::from_millis(2),
            ..Link::CLEAR
        };
        relay.set(a.address(), b.address(), bad);
        relay.set(b.address(), a.address(), bad);
        let (mut near, mut far) = connect(&a, &b);
        let sent: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        let expected = sent.clone();
        let writer = std::thread::spawn(move || near.write_all(&sent).map(|()| near));
        let mut got = vec![0; expected.len()];
        far.read_exact(&mut got).expect("all of it");
        assert!(got == expected, "what came is what was sent");
        drop(writer.join().expect("written").expect("written"));
        let counts = relay.counts();
        for count in [
            counts.lost,
            counts.duplicated,
            counts.corrupted,
            counts.delayed,
        ] {
            assert!(count > 0, "{counts:?}");
        }
    }

    #[test]
    fn nothing_passes_a_cut_in_its_direction_and_all_does_when_it_is_healed() {
        let Some((a, b, relay)) = two_hosts() else {
            return;
        };
        let (mut near, mut far) = connect(&a, &b);
        let cut = Link {
            cut: true,
            ..Link::CLEAR
        };
        relay.set(a.address(), b.address(), cut);
        near.write_all(b"x").expect("in the buffer");
        far.set_read_timeout(Some(Duration::from_millis(300)))
            .expect("set");
        let mut byte = [0; 1];
        assert!(far.read(&mut byte).is_err(), "nothing came");
        assert!(relay.counts().lost > 0);
        relay.heal();
        far.set_read_timeout(Some(PATIENCE)).expect("set");
        far.read_exact(&mut byte).expect("it was sent again");
    }

    #[test]
    fn a_reset_ends_a_connection_at_both_ends() {
        let Some((a, b, relay)) = two_hosts() else {
            return;
        };
        let (mut near, mut far) = connect(&a, &b);
        let reset = Link {
            reset: 1.0,
            ..Link::CLEAR
        };
        relay.set(a.address(), b.address(), reset);
        near.write_all(b"x").expect("in the buffer");
        let mut byte = [0; 1];
        for end in [&mut near, &mut far] {
            let why = end.read(&mut byte).expect_err("ended").kind();
            assert_eq!(why, io::ErrorKind::ConnectionReset);
        }
    }
}
