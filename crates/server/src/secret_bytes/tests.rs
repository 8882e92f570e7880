use super::*;
use crate::fetch::ChunkStream;
use privet_core::{Epoch, TableId};
use privet_schemes::contract::Role;
use privet_wire::proto::privet_client::PrivetClient;
use privet_wire::proto::privet_server::{Privet, PrivetServer};
use privet_wire::{AnswerRequest, AnswerResponse, PrepareRequest, PrepareResponse, proto};
use tonic::{Request, Response, Status};

#[test]
fn bytes_without_another_owner_are_erased() {
    let whole = Bytes::from(vec![0xee; 100]);
    let part = whole.slice(10..20);
    assert!(erased(part).is_none(), "somebody else still reads them");
    assert!(whole.iter().all(|byte| *byte == 0xee));
    assert_eq!(&erased(whole).unwrap()[..], [0; 100]);
    assert!(erased(Bytes::from_static(b"static")).is_none());
}

/// Replies, and answers, with what is left of the bytes of any request, valid or not: only zeros,
/// or no bytes at all if they could not be erased.
struct Eraser;

const PREPARED: PrepareResponse = PrepareResponse {
    table: TableId([1; 16]),
    epoch: Epoch(1),
    parameter_digest: [1; 32],
    reply: Bytes::new(),
};

const ANSWERED: AnswerResponse = AnswerResponse {
    table: TableId([1; 16]),
    epoch: Epoch(1),
    parameter_digest: [1; 32],
    answer: Bytes::new(),
};

fn left_of(secret: Bytes) -> Bytes {
    erased(secret).unwrap_or_default().freeze()
}

#[tonic::async_trait]
impl Privet for Eraser {
    type FetchStream = ChunkStream;

    async fn describe(
        &self,
        _: Request<proto::DescribeRequest>,
    ) -> Result<Response<proto::DescribeResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn fetch(
        &self,
        _: Request<proto::FetchRequest>,
    ) -> Result<Response<ChunkStream>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn prepare(
        &self,
        request: Request<proto::PrepareRequest>,
    ) -> Result<Response<proto::PrepareResponse>, Status> {
        let message = request.into_inner();
        let secret = message.request.clone();
        drop(PrepareRequest::try_from(message));
        Ok(Response::new(PrepareResponse { reply: left_of(secret), ..PREPARED }.into()))
    }

    async fn answer(
        &self,
        request: Request<proto::AnswerRequest>,
    ) -> Result<Response<proto::AnswerResponse>, Status> {
        let message = request.into_inner();
        let secret = message.query.clone();
        drop(AnswerRequest::try_from(message));
        Ok(Response::new(AnswerResponse { answer: left_of(secret), ..ANSWERED }.into()))
    }
}

#[tokio::test]
async fn the_service_is_the_only_owner_of_a_requests_bytes_and_can_erase_them() {
    let mut client = PrivetClient::new(PrivetServer::new(Eraser));
    let (table, epoch, parameter_digest, role) = (TableId([1; 16]), Epoch(1), [1; 32], Role(0));
    for (len, table_id) in [1, 16, 4000, 100_000].into_iter().flat_map(|len| {
        // The second is refused when the message is validated.
        [vec![1; 16], vec![1; 15]].map(|table_id| (len, table_id))
    }) {
        let secret = || Bytes::from(vec![0xee; len]);
        let request = PrepareRequest { table, epoch, parameter_digest, role, request: secret() };
        let request = proto::PrepareRequest {
            table_id: table_id.clone(),
            ..proto::PrepareRequest::from(request)
        };
        let reply = client.prepare(request).await.unwrap();
        let query = AnswerRequest { table, epoch, parameter_digest, role, query: secret() };
        let query = proto::AnswerRequest { table_id, ..proto::AnswerRequest::from(query) };
        let answer = client.answer(query).await.unwrap();
        for left in [reply.into_inner().reply, answer.into_inner().answer] {
            assert!(left == vec![0; len], "of {len} bytes, {} were erased", left.len());
        }
    }
}
