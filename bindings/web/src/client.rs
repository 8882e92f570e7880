//! One client, as JavaScript sees it.

use crate::errors::{note_panics, thrown};
use crate::shell::{Options, Shell, in_milliseconds, moment, now, wait_until};
use crate::table;
use js_sys::{Array, Uint8Array};
use privet_client::addresses::{self, Address};
use privet_client::conductor::{Conductor, ConductorOptions, Errand, IdleShelf, SameThread};
use privet_client::exchange::{Call, Delivery, Reader, goes_on};
use privet_client::session::{Clock, ExchangeId, LookupId, SessionOptions};
use privet_client::store::{Change, Keeping, KeptState};
use privet_client::{Patience, Progress, Target, Value};
use privet_core::{Epoch, Error, Result};
use privet_kernels::Kernels;
use privet_wire::StatusCode;
use privet_wire::frames::{Frame, Frames, frame};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wasm_bindgen::prelude::*;

/// For how long a server may leave a caller waiting, if nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(30);

type Outcome = Result<Option<Value>>;

/// A client of one table. Its worker keeps public parts and pins in files.
#[wasm_bindgen]
pub struct Client {
    conductor: Conductor<SameThread>,
    keeping: Keeping,
    /// The conductor's queries that are made ahead.
    shelf: Arc<IdleShelf>,
    addresses: Vec<Address>,
    notice: Option<String>,
    exchanges: BTreeMap<u32, Ongoing>,
    exchanges_begun: u32,
    /// The caller's numbers of lookups, and of refreshes.
    lookups: BTreeMap<LookupId, u32>,
    refreshes: BTreeMap<LookupId, u32>,
}

/// A request whose response is on its way.
struct Ongoing {
    id: ExchangeId,
    server: usize,
    frames: Frames,
    reader: Reader,
}

#[wasm_bindgen]
impl Client {
    /// A client that has yet to begin: [`run`](Self::run) it. It takes the files of pins, and their
    /// names. Throws an error whose name is its blame's.
    #[wasm_bindgen(constructor)]
    pub fn new(
        options: &Options,
        names: Vec<String>,
        files: Vec<Uint8Array>,
    ) -> Result<Self, js_sys::Error> {
        note_panics();
        let files = files.iter().map(Uint8Array::to_vec);
        Self::with(options, names.into_iter().zip(files).collect()).map_err(|error| thrown(&error))
    }

    /// Whether it wants a part's file before it begins. If it does not say, no pin names the part.
    pub fn wants(&self, name: &str) -> Option<bool> {
        self.keeping.wants(name)
    }

    /// Takes the file of a part.
    pub fn read(&self, name: String, file: Vec<u8>) {
        self.keeping.read(name, file);
    }

    /// What to keep in a file of pins, given what it holds now.
    pub fn pins(&self, name: &str, file: Option<Vec<u8>>) -> Result<Vec<u8>, js_sys::Error> {
        self.keeping.pins(name, file.as_deref()).map_err(|error| thrown(&error))
    }

    /// Asks for the value of a key: as somebody wrote it, or its bytes. What comes of it is told
    /// with the caller's number.
    pub fn lookup(&mut self, number: u32, key: &[u8], is_written: bool) {
        let target = if is_written { Target::written(key) } else { Target::key(key) };
        self.begin(number, target);
    }

    /// Asks for the value in a record, by its number from 0.
    #[wasm_bindgen(js_name = lookupRecord)]
    pub fn lookup_record(&mut self, number: u32, record: f64) {
        self.begin(number, Target::index(record as u64));
    }

    /// Moves on to the newest version that the servers have. What comes of it is told with the
    /// caller's number.
    pub fn refresh(&mut self, number: u32) {
        let refresh = self.conductor.refresh();
        self.refreshes.insert(refresh, number);
    }

    /// Does everything that can be done now. Returns when to call this again at the latest, in
    /// milliseconds of `performance.now`.
    pub fn run(&mut self, shell: &Shell) -> Option<f64> {
        if let Some(notice) = self.notice.take() {
            shell.notice(&notice);
        }
        self.conductor.handle_timeout(now());
        let mut outcomes = Vec::new();
        while let Some(errand) = self.conductor.poll(now()) {
            self.carry_out(errand, shell, &mut outcomes);
        }
        // Handing a longer value over takes longer, and erasing it too. The next query does not
        // wait for that: none is left to compute.
        for (number, outcome) in outcomes {
            tell(shell, number, &outcome);
        }
        self.keep(shell);
        self.conductor.wake_at().map(in_milliseconds)
    }

    /// Makes a query ahead, if one is lacking: when there is nothing else to do. Returns in how
    /// many milliseconds to call this again; nothing: after the next [`run`](Self::run).
    #[wasm_bindgen(js_name = makeAhead)]
    pub fn make_ahead(&self) -> Option<f64> {
        self.shelf.work().map(in_milliseconds)
    }

    /// Takes a piece of a response's body.
    pub fn feed(&mut self, exchange: u32, mut bytes: &[u8]) {
        while let Some(ongoing) = self.exchanges.get_mut(&exchange) {
            let delivery = match ongoing.frames.next(&mut bytes) {
                Ok(None) => return,
                Ok(Some(Frame::Message(message))) => ongoing.reader.message(message.into()),
                Ok(Some(Frame::Trailers(status))) => Some(match status.code {
                    StatusCode::Ok => ongoing.reader.end(),
                    _ => Err(status.into()),
                }),
                Err(error) => Some(Err(error)),
            };
            if let Some(delivery) = delivery {
                self.deliver(exchange, delivery);
            }
        }
    }

    /// Takes the status that came in a response's headers.
    pub fn refused(&mut self, exchange: u32, code: &str, message: &str) {
        if let Some(status) = privet_wire::WireStatus::from_headers(Some(code), Some(message)) {
            self.deliver(exchange, Err(status.into()));
        }
    }

    /// Takes the HTTP status of a response that is none of a Privet server.
    #[wasm_bindgen(js_name = answeredOtherwise)]
    pub fn answered_otherwise(&mut self, exchange: u32, status: u16) {
        let answers = format!("answers with HTTP status {status}");
        let error = match status {
            429 | 502..=504 => Error::unavailable(format!("{answers}; try again later")),
            _ => Error::peer_misbehaved(format!(
                "{answers}, and not as a Privet server does; check the address and its path"
            )),
        };
        self.deliver(exchange, Err(error));
    }

    /// No response came, or it broke off.
    #[wasm_bindgen(js_name = brokeOff)]
    pub fn broke_off(&mut self, exchange: u32) {
        let error = Error::unavailable(
            "cannot be reached, or its answer broke off; check the address, and that the server runs and lets pages of this origin use it",
        );
        self.deliver(exchange, Err(error));
    }

    /// What was done so far.
    pub fn stats(&self) -> JsValue {
        table::stats(self.conductor.stats(), self.shelf.given()).into()
    }
}

impl Client {
    fn with(options: &Options, pins: Vec<(String, Vec<u8>)>) -> Result<Self> {
        let urls = options.urls();
        let addresses: Vec<Address> =
            urls.iter().map(|url| Address::parse(url)).collect::<Result<_>>()?;
        addresses::check_distinct(&addresses)?;
        if !options.insecure() {
            addresses::check_encrypted(&addresses)?;
        }
        let mut session = SessionOptions::new(addresses.len(), Kernels::detect(), Clock::new(now));
        session.table = options.table();
        let schemes = options.schemes();
        session.schemes = schemes.iter().map(|name| name.parse()).collect::<Result<_>>()?;
        session.verified = options.verified();
        session.root = options.root().map(|root| root.parse()).transpose()?;
        session.publisher = options.publisher().map(|id| id.parse()).transpose()?;
        session.digest = options.digest().map(|digest| digest.parse()).transpose()?;
        session.at_least_epoch = options.at_least_epoch().map(|epoch| Epoch(epoch as u64));
        session.max_download = options.max_download() as u64;
        session.compare_streams = options.compare_streams();
        session.in_flight = options.in_flight() as usize;
        session.patience = Patience::within(options.timeout().map_or(TIMEOUT, |milliseconds| {
            Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or(TIMEOUT)
        }));
        let urls: Vec<_> = addresses.iter().map(Address::url).collect();
        session.accept_new_table = options.accept_new_table();
        let (table, accepting) = (session.table.as_deref(), session.accept_new_table);
        let (mut state, keeping) = KeptState::new(pins, &urls, table, accepting)?;
        session.recall(&mut state, &addresses)?;
        let shelf = Arc::new(IdleShelf::new(moment));
        session.shelf = Some(shelf.clone());
        let options = ConductorOptions {
            session,
            addresses: urls.iter().map(|url| (*url).to_owned()).collect(),
            // Nobody else uses what is in this memory.
            busy_patience: Duration::ZERO,
            max_time: None,
        };
        Ok(Self {
            conductor: Conductor::new(options, Box::new(state), SameThread::default(), now())?,
            keeping,
            shelf,
            notice: addresses::one_host_notice(&addresses),
            addresses,
            exchanges: BTreeMap::new(),
            exchanges_begun: 0,
            lookups: BTreeMap::new(),
            refreshes: BTreeMap::new(),
        })
    }

    fn begin(&mut self, number: u32, target: Target) {
        let lookup = self.conductor.lookup(target);
        self.lookups.insert(lookup, number);
    }

    fn carry_out(&mut self, errand: Errand, shell: &Shell, outcomes: &mut Vec<(u32, Outcome)>) {
        match errand {
            Errand::Send { exchange: id, server, request, patience } => {
                let reader = Reader::of(&request);
                let limit = self.conductor.longest_response(&request);
                let call = Call::new(request, limit, patience);
                let number = self.exchanges_begun;
                self.exchanges_begun = number.wrapping_add(1);
                let frames = Frames::new(call.limit);
                self.exchanges.insert(number, Ongoing { id, server, frames, reader });
                let url = format!("{}{}", self.addresses[server].url(), call.path);
                let deadline = call.deadline.map(in_milliseconds);
                shell.send(number, &url, frame(&call.message), deadline);
            }
            Errand::Abandon(exchange) => {
                let number = self.exchanges.iter().find(|(_, ongoing)| ongoing.id == exchange);
                if let Some(number) = number.map(|(number, _)| *number) {
                    self.exchanges.remove(&number);
                    shell.abandon(number);
                }
            }
            Errand::Wait { until } => wait_until(until),
            Errand::Reply { lookup, outcome } => {
                if let Some(number) = self.lookups.remove(&lookup) {
                    outcomes.push((number, outcome));
                } else if let (Some(number), Err(error)) = (self.refreshes.remove(&lookup), outcome)
                {
                    shell.refresh_failed(number, thrown(&error));
                }
            }
            Errand::Refreshed { refresh, table } => {
                if let Some(number) = self.refreshes.remove(&refresh) {
                    shell.refreshed(number, table.epoch.0 as f64);
                }
            }
            Errand::Ready(Ok(opened)) => {
                // Before the first lookup, it is kept what table this is.
                self.keep(shell);
                self.keeping.forget_read();
                shell.ready(table::table(&opened));
            }
            Errand::Ready(Err(error)) => shell.failed(thrown(&error)),
            Errand::Tell(progress) => self.report(progress, shell),
            // Nobody asks for this.
            Errand::Finished { .. } => {}
        }
    }

    fn keep(&self, shell: &Shell) {
        for change in self.keeping.changes() {
            match change {
                Change::Keep(name, part) => {
                    let mut bytes = vec![0; part.len() as usize];
                    // What is in memory can be read.
                    if part.read_at(0, &mut bytes).is_ok() {
                        shell.keep(&name, &bytes);
                    }
                }
                Change::Remove(name) => shell.remove(&name),
                Change::Pin(name) => shell.pin(&name),
            }
        }
    }

    fn deliver(&mut self, exchange: u32, delivery: Delivery) {
        let Some(ongoing) = self.exchanges.get(&exchange) else { return };
        let (id, server) = (ongoing.id, ongoing.server);
        if !goes_on(&delivery) {
            self.exchanges.remove(&exchange);
        }
        let delivery = delivery.map_err(|error| error.within(self.addresses[server].url()));
        self.conductor.handle_delivery(id, delivery, now());
    }

    fn report(&self, progress: Progress, shell: &Shell) {
        let url = |server: usize| self.addresses[server].url();
        match progress {
            Progress::Part { part, done, total, fetched: true } => {
                shell.progress(part.name(), done as f64, total as f64);
            }
            Progress::NextGeneration { done, total } => {
                shell.progress("next hints", done as f64, total as f64);
            }
            Progress::Updated { from, to, .. } => {
                shell.notice(&format!("the table was updated from epoch {} to {}", from.0, to.0))
            }
            Progress::Notice(text) => shell.notice(&text),
            Progress::Retrying { server, error, .. } => {
                shell.notice(&format!("{}: {error}; trying again", url(server)));
            }
            Progress::GivenUp { server, error } => {
                shell.notice(&format!("{}: {error}; given up", url(server)));
            }
            _ => {}
        }
    }
}

fn tell(shell: &Shell, number: u32, outcome: &Outcome) {
    match outcome {
        Ok(Some(value)) => {
            let values: Array = value.values().map(Uint8Array::from).collect();
            shell.found(number, values, value.is_list());
        }
        Ok(None) => shell.found(number, Array::new(), false),
        Err(error) => shell.lookup_failed(number, thrown(error)),
    }
}
