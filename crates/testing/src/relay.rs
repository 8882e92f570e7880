//! Passes bytes between clients and a server, and records those of the clients.

use crate::http2::Parser;
use crate::record::{Connection, Record};
use std::io::{self, Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Listens on loopback for clients of one server. Ends when dropped; open connections end with
/// their clients.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    started: Instant,
    record: Mutex<Record>,
    is_over: AtomicBool,
}

impl Relay {
    /// A relay to `server` at a port of the system's choice.
    ///
    /// # Errors
    /// If the system has no port or no thread for it.
    pub fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            started: Instant::now(),
            record: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let ours = Arc::clone(&shared);
        thread(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if ours.is_over.load(Ordering::Relaxed) {
                    return;
                }
                // A client whose connection cannot be passed on sees it closed.
                let _ = ours.pass_on(client, server);
            }
        })?;
        Ok(Self { address, shared })
    }

    /// Where clients find the server now: `http://127.0.0.1:…`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What clients sent so far.
    pub fn record(&self) -> Record {
        self.shared.lock(|record| record.clone())
    }

    /// Waits until `is_enough` holds of the record, at most for `limit`. Returns whether it does.
    pub fn wait_until(&self, limit: Duration, is_enough: impl Fn(&Record) -> bool) -> bool {
        let began = Instant::now();
        loop {
            if self.shared.lock(|record| is_enough(record)) {
                return true;
            }
            if began.elapsed() > limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for clients.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn lock<T>(&self, look: impl FnOnce(&mut Record) -> T) -> T {
        look(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn pass_on(self: &Arc<Self>, mut client: TcpStream, server: SocketAddr) -> io::Result<()> {
        let mut server = TcpStream::connect(server)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let opened = self.now();
        let number = self.lock(|record| {
            record.connections.push(Connection { opened, ..Connection::default() });
            record.connections.len() - 1
        });
        let (mut to_client, mut from_server) = (client.try_clone()?, server.try_clone()?);
        thread(move || {
            let _ = io::copy(&mut from_server, &mut to_client);
            let _ = to_client.shutdown(Shutdown::Write);
        })?;
        let ours = Arc::clone(self);
        thread(move || {
            let mut parser = Parser::default();
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read @ 1..) = client.read(&mut buffer) {
                let at = ours.now();
                ours.lock(|record| {
                    let connection = &mut record.connections[number];
                    connection.bytes += read as u64;
                    parser.take(&buffer[..read], at, connection);
                });
                if server.write_all(&buffer[..read]).is_err() {
                    break;
                }
            }
            let closed = Some(ours.now());
            ours.lock(|record| record.connections[number].closed = closed);
            let _ = server.shutdown(Shutdown::Write);
        })
    }
}

fn thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name("relay".to_owned()).spawn(work).map(drop)
}
