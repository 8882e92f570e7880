//! The four methods. Each first checks: is this about a served table, in a served version, under
//! its parameters?
//!
//! No request may be longer than the longest valid one. That length changes with the tables, but a
//! gRPC service has one limit for as long as it lives. So each request gets a service of its own,
//! made for what is served when it comes.

use crate::admission::{AdmissionPlace, Peer};
use crate::batch::Batcher;
use crate::config::QueryObserver;
use crate::connections::ConnectionHandle;
use crate::fetch::{self, ChunkStream};
use crate::hosted::{HostedTables, Version};
use crate::preparations::Preparations;
use crate::secret_bytes::SecretBytes;
use privet_core::{Error, Result};
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use privet_wire::limits::queries_together;
use privet_wire::proto::privet_server::{Privet, PrivetServer};
use privet_wire::{
    AnswerRequest, AnswerResponse, DescribeRequest, FetchRequest, PrepareRequest, PrepareResponse,
    WireStatus, proto,
};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::{Request, Response, Status};
use tower::Service;

pub(crate) struct PrivetService {
    tables: Arc<HostedTables>,
    batcher: Arc<Batcher>,
    preparations: Arc<Preparations>,
    query_observer: Option<QueryObserver>,
}

impl PrivetService {
    pub(crate) fn new(
        tables: Arc<HostedTables>,
        batcher: Arc<Batcher>,
        preparations: Arc<Preparations>,
        query_observer: Option<QueryObserver>,
    ) -> Self {
        Self { tables, batcher, preparations, query_observer }
    }

    fn fetch_from(&self, request: &FetchRequest) -> Result<ChunkStream> {
        let (part, condition) = self.tables.now().part(request)?;
        if request.offset > part.len() {
            return Err(Error::invalid_message(format!(
                "the {} of table {} ends at byte {}, before byte {}",
                request.part,
                request.table,
                part.len(),
                request.offset
            )));
        }
        let wanted = if request.len == 0 { u64::MAX } else { request.len };
        let end = request.offset.saturating_add(wanted).min(part.len());
        Ok(fetch::stream(part, condition, request.offset..end))
    }

    async fn answer_to(
        &self,
        peer: Peer,
        place: &AdmissionPlace,
        message: proto::AnswerRequest,
    ) -> Result<AnswerResponse> {
        // Do this before any refusal. The message's own reference to the bytes must be gone by the
        // end.
        let secret = SecretBytes::new(message.query.clone());
        let request = AnswerRequest::try_from(message)?;
        let AnswerRequest { table, epoch, parameter_digest, role, .. } = request;
        let (lane, answer_len) = {
            let now = self.tables.now();
            let version = now.find(table, epoch, &parameter_digest)?;
            check_queries(version, role, &secret)?;
            let lane = version.lane(role).cloned().ok_or_else(|| no_such_role(version, role))?;
            (lane, version.plan.answer_len)
        };
        place.hold_answers(secret.len() + lane.queries(&secret).len() * answer_len)?;
        if let Some(observe) = &self.query_observer {
            for query in lane.queries(&secret) {
                let query = request.query.slice_ref(query);
                observe(&AnswerRequest { query, ..request.clone() });
            }
        }
        drop(request);
        let answer = self.batcher.answer(&lane, peer, secret).await?;
        Ok(AnswerResponse { table, epoch, parameter_digest, answer: answer.into() })
    }

    async fn reply_to(&self, message: proto::PrepareRequest) -> Result<PrepareResponse> {
        // As with queries.
        let secret = SecretBytes::new(message.request.clone());
        let PrepareRequest { table, epoch, parameter_digest, role, request } =
            message.try_into()?;
        drop(request);
        let version = Arc::clone(self.tables.now().find(table, epoch, &parameter_digest)?);
        check_preparation(&version, role, &secret)?;
        let reply = self.preparations.reply(version, role, secret).await?;
        Ok(PrepareResponse { table, epoch, parameter_digest, reply: reply.into() })
    }
}

/// Refuses queries that a pass could not answer, before they are queued.
fn check_queries(table: &Version, role: Role, queries: &[u8]) -> Result<()> {
    let Some(query_len) = table.plan.query_lens.get(usize::from(role.0)) else {
        return Err(no_such_role(table, role));
    };
    if let OfflinePhase::KeepTable { .. } = table.plan.offline {
        // The scheme takes no queries: say so now, without a pass; no other length would be right
        // either.
        table.server.answer(role, &[queries]).into_iter().collect::<Result<Vec<_>>>()?;
    }
    let (len, most) = (queries.len(), queries_together(*query_len, table.plan.answer_len));
    let fits = |count: usize| count.checked_mul(*query_len) == Some(len);
    match len / query_len.max(&1) {
        count if (1..=most).contains(&count) && fits(count) => Ok(()),
        0 | 1 => Err(Error::invalid_message(format!(
            "a query to table {} has {query_len} bytes, not {len}",
            table.name
        ))),
        _ => Err(Error::invalid_message(format!(
            "a request to table {} carries at most {most} queries of {query_len} bytes each, so \
             it cannot have {len} bytes",
            table.name
        ))),
    }
}

fn no_such_role(table: &Version, role: Role) -> Error {
    Error::invalid_message(format!(
        "there is no role {} in {}, a scheme of {} server(s)",
        role.0, table.plan.scheme, table.plan.servers
    ))
}

/// Refuses requests that cannot get a reply, before they wait for a turn.
fn check_preparation(table: &Version, role: Role, request: &[u8]) -> Result<()> {
    let OfflinePhase::Ask { role: asked, request_len, .. } = table.plan.offline else {
        return Err(Error::invalid_message(format!(
            "there are no hints to ask for: clients of {}, which serves table {}, need none or make their own",
            table.plan.scheme, table.name
        )));
    };
    if role != asked {
        return Err(Error::invalid_message(format!(
            "hints for table {} are computed by the server of role {}, not {}; a request tells that server what no other may learn, so check the order of the \
             servers' addresses",
            table.name, asked.0, role.0
        )));
    }
    if request.len() != request_len {
        return Err(Error::invalid_message(format!(
            "a request for hints for table {} has {request_len} bytes, not {}",
            table.name,
            request.len()
        )));
    }
    Ok(())
}

fn status(error: Error) -> Status {
    WireStatus::from(&error).into()
}

/// The service as the transport sees it: requests longer than the longest valid one are refused
/// before they are read.
#[derive(Clone)]
pub(crate) struct LimitedService(Arc<PrivetService>);

impl LimitedService {
    pub(crate) fn new(service: PrivetService) -> Self {
        Self(Arc::new(service))
    }
}

impl NamedService for LimitedService {
    const NAME: &'static str = PrivetServer::<PrivetService>::NAME;
}

impl Service<http::Request<Body>> for LimitedService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = <PrivetServer<PrivetService> as Service<http::Request<Body>>>::Future;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let limit = self.0.tables.now().request_limit;
        PrivetServer::from_arc(Arc::clone(&self.0)).max_decoding_message_size(limit).call(request)
    }
}

#[tonic::async_trait]
impl Privet for PrivetService {
    type FetchStream = ChunkStream;

    async fn describe(
        &self,
        request: Request<proto::DescribeRequest>,
    ) -> Result<Response<proto::DescribeResponse>, Status> {
        // There is only one version so far, which every client speaks.
        DescribeRequest::try_from(request.into_inner()).map_err(status)?;
        Ok(Response::new(self.tables.now().description.clone()))
    }

    async fn fetch(
        &self,
        request: Request<proto::FetchRequest>,
    ) -> Result<Response<ChunkStream>, Status> {
        let request = FetchRequest::try_from(request.into_inner()).map_err(status)?;
        self.fetch_from(&request).map(Response::new).map_err(status)
    }

    async fn prepare(
        &self,
        request: Request<proto::PrepareRequest>,
    ) -> Result<Response<proto::PrepareResponse>, Status> {
        let response = self.reply_to(request.into_inner()).await.map_err(status)?;
        Ok(Response::new(response.into()))
    }

    async fn answer(
        &self,
        request: Request<proto::AnswerRequest>,
    ) -> Result<Response<proto::AnswerResponse>, Status> {
        let (_, extensions, message) = request.into_parts();
        let (Some(connection), Some(place)) =
            (extensions.get::<ConnectionHandle>(), extensions.get::<Arc<AdmissionPlace>>())
        else {
            return Err(Status::internal("a request came without a connection; this is a bug"));
        };
        let response = self.answer_to(connection.peer, place, message).await.map_err(status)?;
        Ok(Response::new(response.into()))
    }
}
