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

/// Replies, and answers, with what is left of the request's bytes: nothing but zeros, or no bytes at all if they could not be erased.
struct Eraser;

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
        let request = PrepareRequest::try_from(request.into_inner()).unwrap();
        let reply = erased(request.request).unwrap_or_default().freeze();
        let (table, epoch, parameter_digest) =
            (request.table, request.epoch, request.parameter_digest);
        Ok(Response::new(PrepareResponse { table, epoch, parameter_digest, reply }.into()))
    }

    async fn answer(
        &self,
        request: Request<proto::AnswerRequest>,
    ) -> Result<Response<proto::AnswerResponse>, Status> {
        let request = AnswerRequest::try_from(request.into_inner()).unwrap();
        let answer = erased(request.query).unwrap_or_default().freeze();
        let (table, epoch, parameter_digest) =
            (request.table, request.epoch, request.parameter_digest);
        Ok(Response::new(AnswerResponse { table, epoch, parameter_digest, answer }.into()))
    }
}

#[tokio::test]
async fn the_service_is_the_only_owner_of_a_requests_bytes_and_can_erase_them() {
    let mut client = PrivetClient::new(PrivetServer::new(Eraser));
    let (table, epoch, parameter_digest, role) = (TableId([1; 16]), Epoch(1), [1; 32], Role(0));
    for len in [1, 16, 4000, 100_000] {
        let secret = || Bytes::from(vec![0xee; len]);
        let request = PrepareRequest { table, epoch, parameter_digest, role, request: secret() };
        let reply = client.prepare(proto::PrepareRequest::from(request)).await.unwrap();
        let query = AnswerRequest { table, epoch, parameter_digest, role, query: secret() };
        let answer = client.answer(proto::AnswerRequest::from(query)).await.unwrap();
        for left in [reply.into_inner().reply, answer.into_inner().answer] {
            assert!(left == vec![0; len], "of {len} bytes, {} were erased", left.len());
        }
    }
}
