//! The four methods. Each first asks: is this about a table that is served, in its epoch, under its parameters?

use crate::batch::Batcher;
use crate::config::QueryObserver;
use crate::fetch::{self, ChunkStream};
use crate::hosted::{HostedTable, HostedTables};
use crate::preparations::Preparations;
use crate::secret_bytes::SecretBytes;
use privet_core::{Error, Result};
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use privet_wire::proto::privet_server::Privet;
use privet_wire::{
    AnswerRequest, AnswerResponse, DescribeRequest, FetchRequest, PrepareRequest, PrepareResponse,
    WireStatus, proto,
};
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub(crate) struct PrivetService {
    tables: Arc<HostedTables>,
    /// For each table, the batcher's lane for role 0; the lanes for the other roles follow.
    first_lanes: Vec<usize>,
    batcher: Arc<Batcher>,
    preparations: Arc<Preparations>,
    query_observer: Option<QueryObserver>,
    description: proto::DescribeResponse,
}

impl PrivetService {
    pub(crate) fn new(
        tables: Arc<HostedTables>,
        first_lanes: Vec<usize>,
        batcher: Arc<Batcher>,
        preparations: Arc<Preparations>,
        query_observer: Option<QueryObserver>,
    ) -> Self {
        let description = tables.description.clone().into();
        Self { tables, first_lanes, batcher, preparations, query_observer, description }
    }

    fn fetch_from(&self, request: &FetchRequest) -> Result<ChunkStream> {
        let number = self.tables.find(request.table, request.epoch, &request.parameter_digest)?;
        let table = &self.tables.tables[number];
        let part = table.part(request.part).ok_or_else(|| {
            Error::api_misuse(format!(
                "table {} has no {} to fetch under {}",
                table.name, request.part, table.plan.scheme
            ))
        })?;
        if request.offset > part.len() {
            return Err(Error::invalid_message(format!(
                "the {} of table {} ends at byte {}, before byte {}",
                request.part,
                table.name,
                part.len(),
                request.offset
            )));
        }
        let wanted = if request.len == 0 { u64::MAX } else { request.len };
        let end = request.offset.saturating_add(wanted).min(part.len());
        Ok(fetch::stream(Arc::clone(part), request.offset..end))
    }

    async fn answer_to(&self, message: proto::AnswerRequest) -> Result<AnswerResponse> {
        // Before anything can be refused. The message's own share of the bytes has to be gone by the end.
        let secret = SecretBytes::new(message.query.clone());
        let request = AnswerRequest::try_from(message)?;
        if let Some(observe) = &self.query_observer {
            observe(&request);
        }
        let AnswerRequest { table, epoch, parameter_digest, role, query } = request;
        drop(query);
        let number = self.tables.find(table, epoch, &parameter_digest)?;
        check_query(&self.tables.tables[number], role, &secret)?;
        let lane = self.first_lanes[number] + usize::from(role.0);
        let answer = self.batcher.answer(lane, secret).await?;
        Ok(AnswerResponse { table, epoch, parameter_digest, answer: answer.into() })
    }

    async fn reply_to(&self, message: proto::PrepareRequest) -> Result<PrepareResponse> {
        // As with queries.
        let secret = SecretBytes::new(message.request.clone());
        let PrepareRequest { table, epoch, parameter_digest, role, request } =
            message.try_into()?;
        drop(request);
        let hosted = &self.tables.tables[self.tables.find(table, epoch, &parameter_digest)?];
        check_preparation(hosted, role, &secret)?;
        let reply = self.preparations.reply(hosted, role, secret).await?;
        Ok(PrepareResponse { table, epoch, parameter_digest, reply: reply.into() })
    }
}

/// Refuses before queueing what a pass could not answer.
fn check_query(table: &HostedTable, role: Role, query: &[u8]) -> Result<()> {
    let Some(query_len) = table.plan.query_lens.get(usize::from(role.0)) else {
        return Err(Error::invalid_message(format!(
            "there is no role {} in {}, a scheme of {} server(s)",
            role.0, table.plan.scheme, table.plan.servers
        )));
    };
    if let OfflinePhase::KeepTable { .. } = table.plan.offline {
        // Nobody has to wait for a pass to hear that there are none, and no length would be a better one.
        table.server.answer(role, &[query]).into_iter().collect::<Result<Vec<_>>>()?;
    }
    if query.len() != *query_len {
        return Err(Error::invalid_message(format!(
            "a query to table {} has {query_len} bytes, not {}",
            table.name,
            query.len()
        )));
    }
    Ok(())
}

/// Refuses before it waits for its turn what could not be replied to.
fn check_preparation(table: &HostedTable, role: Role, request: &[u8]) -> Result<()> {
    let OfflinePhase::Ask { role: asked, request_len, .. } = table.plan.offline else {
        return Err(Error::invalid_message(format!(
            "there are no hints to ask for: clients of {}, which serves table {}, do without or make their own",
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

#[tonic::async_trait]
impl Privet for PrivetService {
    type FetchStream = ChunkStream;

    async fn describe(
        &self,
        request: Request<proto::DescribeRequest>,
    ) -> Result<Response<proto::DescribeResponse>, Status> {
        // There is one version so far, which every client speaks.
        DescribeRequest::try_from(request.into_inner()).map_err(status)?;
        Ok(Response::new(self.description.clone()))
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
        let response = self.answer_to(request.into_inner()).await.map_err(status)?;
        Ok(Response::new(response.into()))
    }
}
