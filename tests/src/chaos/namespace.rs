//! A host of its own for a process: a network namespace with one TUN device.

use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use nix::sched::{CloneFlags, unshare};
use tun_rs::{DeviceBuilder, SyncDevice};

/// Bits of the network part: all hosts are in one network.
const PREFIX: u8 = 24;

/// Bytes of a packet, as on most networks.
const MTU: u16 = 1500;

/// What the thread of a namespace is asked to do.
type Job = Box<dyn FnOnce() + Send>;

/// A network namespace. It is a thread that has left the namespace of its process: what it starts is in there too. It ends
/// when it is dropped and the last process in it has ended.
#[derive(Debug)]
pub struct Namespace {
    address: Ipv4Addr,
    jobs: Sender<Job>,
}

impl Namespace {
    /// Makes a namespace whose only way out is the device that comes with it.
    ///
    /// # Errors
    /// The system allows no namespaces, or no TUN devices.
    pub fn create(address: Ipv4Addr) -> io::Result<(Self, SyncDevice)> {
        let (jobs, to_do) = mpsc::channel();
        let (ready, made) = mpsc::channel();
        thread::Builder::new()
            .name(format!("host {address}"))
            .spawn(move || live(address, &ready, &to_do))?;
        let device = made.recv().map_err(|_| ended())??;
        Ok((Self { address, jobs }, device))
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Starts a process in it.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn spawn(&self, command: Command) -> io::Result<Child> {
        self.run(move || {
            let mut command = command;
            command.spawn()
        })?
    }

    /// Does something in it. Threads that this starts are in it as well.
    ///
    /// # Errors
    /// Its thread has ended: something that was done before had panicked.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (answer, answered) = mpsc::channel();
        let job = Box::new(move || {
            // Nobody listens any more if the asker has panicked.
            drop(answer.send(job()));
        });
        self.jobs.send(job).map_err(|_| ended())?;
        answered.recv().map_err(|_| ended())
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread of the namespace has ended")
}

fn live(address: Ipv4Addr, ready: &Sender<io::Result<SyncDevice>>, jobs: &Receiver<Job>) {
    let left = unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
    let made = left.and_then(|()| {
        DeviceBuilder::new()
            .name("ferry0")
            .ipv4(address, PREFIX, None)
            .mtu(MTU)
            .build_sync()
    });
    let fine = made.is_ok();
    if ready.send(made).is_err() || !fine {
        return;
    }
    for job in jobs {
        job();
    }
}
