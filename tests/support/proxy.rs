//! Provides a proxy between the daemon and its broker that loses, holds, delays and repeats requests, and cuts
//! connections. It parses only length, request key, version and correlation id.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub const PRODUCE: i16 = 0;
pub const FIND_COORDINATOR: i16 = 10;
pub const INIT_PRODUCER_ID: i16 = 22;
pub const ADD_PARTITIONS: i16 = 24;
pub const ADD_OFFSETS: i16 = 25;
pub const END_TXN: i16 = 26;
pub const TXN_OFFSET_COMMIT: i16 = 28;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection breaks before the request reaches the broker.
    CutBefore,
    /// The connection breaks before the response reaches the client.
    CutAfter,
    /// The connection breaks. The request arrives after responses to requests with these keys, in this order.
    Late(&'static [i16]),
    /// The request arrives, and again after these responses.
    Twice(&'static [i16]),
    Delay(Duration),
    /// The request waits for [`Proxy::let_go`].
    Stall,
    /// The response contains this error, after a response to a produce request. Only for responses of a throttle time
    /// and an error.
    Refuse(i16),
}

struct Armed {
    key: i16,
    /// Requests with that key to skip.
    skip: usize,
    fault: Fault,
}

struct Late {
    until: Vec<i16>,
    key: i16,
    frame: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    pub key: i16,
    /// Error in the broker's response, if it follows a throttle time.
    pub error: i16,
}

#[derive(Default)]
struct Inside {
    upstream: Option<SocketAddr>,
    armed: Vec<Armed>,
    late: Vec<Late>,
    delivered: Vec<Delivered>,
    stalled: usize,
    gate_open: bool,
    produced: usize,
}

#[derive(Default)]
struct Shared {
    inside: Mutex<Inside>,
    changed: Condvar,
}

pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Pending {
    key: i16,
    cut: bool,
    refuse: Option<i16>,
}

type Numbered = Arc<Mutex<HashMap<i32, Pending>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    pub fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound port").port();
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Some(upstream) = lock(&accepting.inside).upstream else { continue };
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(upstream)) else { continue };
                accepting.connect(&client, &server);
            }
        });
        Self { port, shared }
    }

    pub fn forward_to(&self, port: u16) {
        lock(&self.shared.inside).upstream = Some(SocketAddr::from(([127, 0, 0, 1], port)));
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Applies to the next request with this key after `skip` others.
    pub fn arm(&self, key: i16, skip: usize, fault: Fault) {
        lock(&self.shared.inside).armed.push(Armed { key, skip, fault });
    }

    pub fn calm(&self) {
        let mut inside = lock(&self.shared.inside);
        *inside = Inside { upstream: inside.upstream, gate_open: true, ..Inside::default() };
        self.shared.changed.notify_all();
    }

    /// Returns whether all faults have been applied, and all held requests delivered.
    pub fn is_done(&self) -> bool {
        let inside = lock(&self.shared.inside);
        inside.armed.is_empty() && inside.late.is_empty()
    }

    pub fn delivered(&self) -> Vec<Delivered> {
        lock(&self.shared.inside).delivered.clone()
    }

    pub fn stalled(&self) -> usize {
        lock(&self.shared.inside).stalled
    }

    pub fn let_go(&self) {
        lock(&self.shared.inside).gate_open = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        let pending = Numbered::default();
        let ends = [(client, server), (server, client)].map(|(from, to)| {
            from.set_nodelay(true).expect("a socket");
            (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"))
        });
        let [up, down] = ends;
        for ((from, to), requests) in [(up, true), (down, false)] {
            let (shared, pending) = (Arc::clone(self), Arc::clone(&pending));
            std::thread::spawn(move || {
                let (mut reading, mut writing) = (from, to);
                while let Some(frame) = frame(&mut reading) {
                    let goes_on = if requests {
                        shared.request(&frame, &mut writing, &pending)
                    } else {
                        shared.answer(frame, &mut writing, &pending)
                    };
                    if !goes_on {
                        break;
                    }
                }
                // The second direction finds the sockets closed.
                for socket in [&reading, &writing] {
                    socket.shutdown(Shutdown::Both).unwrap_or_default();
                }
            });
        }
    }

    /// Returns false to cut the connection.
    fn request(&self, frame: &[u8], server: &mut TcpStream, pending: &Numbered) -> bool {
        let key = i16::from_be_bytes([frame[4], frame[5]]);
        let number = i32::from_be_bytes([frame[8], frame[9], frame[10], frame[11]]);
        let mut answer = Pending { key, cut: false, refuse: None };
        match self.fate(key, frame) {
            None | Some(Fault::Twice(_)) => {}
            Some(Fault::CutBefore | Fault::Late(_)) => return false,
            Some(Fault::CutAfter) => answer.cut = true,
            Some(Fault::Refuse(error)) => answer.refuse = Some(error),
            Some(Fault::Delay(time)) => std::thread::sleep(time),
            Some(Fault::Stall) => {
                let mut inside = lock(&self.inside);
                inside.stalled += 1;
                while !inside.gate_open {
                    inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        lock(pending).insert(number, answer);
        server.write_all(frame).is_ok()
    }

    fn fate(&self, key: i16, frame: &[u8]) -> Option<Fault> {
        let mut inside = lock(&self.inside);
        let mut fate = None;
        inside.armed.retain_mut(|armed| {
            if armed.key != key || fate.is_some() {
                return true;
            }
            if armed.skip > 0 {
                armed.skip -= 1;
                return true;
            }
            fate = Some(armed.fault.clone());
            false
        });
        match fate {
            Some(Fault::Late(until) | Fault::Twice(until)) => {
                inside.late.push(Late { until: until.to_vec(), key, frame: frame.to_vec() });
            }
            Some(Fault::Stall) => inside.gate_open = false,
            _ => {}
        }
        fate
    }

    /// Requests that wait for the response reach the broker first.
    fn answer(&self, mut frame: Vec<u8>, client: &mut TcpStream, pending: &Numbered) -> bool {
        let number = i32::from_be_bytes([frame[4], frame[5], frame[6], frame[7]]);
        let Some(Pending { key, cut, refuse }) = lock(pending).remove(&number) else { return false };
        for late in self.due(key) {
            self.deliver(&late);
        }
        if key == PRODUCE {
            lock(&self.inside).produced += 1;
            self.changed.notify_all();
        }
        if let Some(error) = refuse {
            // Without a record in a topic there would be no transaction to abort.
            let nothing = |inside: &mut Inside| inside.produced == 0;
            let inside = lock(&self.inside);
            drop(self.changed.wait_timeout_while(inside, Duration::from_secs(5), nothing));
            frame[12..14].copy_from_slice(&error.to_be_bytes());
        }
        !cut && client.write_all(&frame).is_ok()
    }

    fn due(&self, answered: i16) -> Vec<Late> {
        let mut inside = lock(&self.inside);
        let mut due = Vec::new();
        let mut still = Vec::new();
        for mut late in std::mem::take(&mut inside.late) {
            if late.until.first() == Some(&answered) {
                late.until.remove(0);
            }
            if late.until.is_empty() { due.push(late) } else { still.push(late) }
        }
        inside.late = still;
        due
    }

    fn deliver(&self, late: &Late) {
        let upstream = lock(&self.inside).upstream.expect("requests came from somewhere");
        let mut server = TcpStream::connect(upstream).expect("the broker listens");
        server.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        server.write_all(&late.frame).expect("the broker reads");
        let answer = frame(&mut server).unwrap_or_default();
        let error = answer.get(12..14).map_or(-1, |e| i16::from_be_bytes([e[0], e[1]]));
        lock(&self.inside).delivered.push(Delivered { key: late.key, error });
    }
}

fn frame(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).ok()?;
    let mut frame = length.to_vec();
    frame.resize(4 + usize::try_from(i32::from_be_bytes(length)).ok()?, 0);
    from.read_exact(&mut frame[4..]).ok()?;
    Some(frame)
}

pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}
