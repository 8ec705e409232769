//! Provides free ports for programs that listen on a configured port.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ephemeral ports of Linux (32768 and above).
const PORTS: std::ops::Range<u32> = 10_000..32_000;

pub fn free_port() -> u16 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let count = PORTS.end - PORTS.start;
    // Parallel processes start at different ports.
    let first = std::process::id().wrapping_mul(997) % count;
    for _ in 0..count {
        let at = PORTS.start + (first + CALLS.fetch_add(1, Ordering::Relaxed)) % count;
        let port = u16::try_from(at).expect("a port");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("something listens at every port from {} to {}", PORTS.start, PORTS.end - 1);
}
