//! `ferrymq.admin.v1.Admin`: MQSC, members, dump and account. A command for a queue manager of another node is passed on.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use ferrymq_engine::{DumpItem, Failure, Reply, Request as Ask};
use ferrymq_metadata::Member;
use ferrymq_mqsc::Answer;
use ferrymq_objects::AttributeValue;
use ferrymq_proto::status::CallError;
use ferrymq_proto::{admin_v1 as pb, convert, v1};
use ferrymq_transport::PeerInfo;
use ferrymq_types::{
    AccountEntry, AccountReason, ObjectId, QueueManagerName, ReasonCode, Sequence, Timestamp,
};
use futures::Stream;
use tonic::{Request, Response, Status};

use crate::backup::{self, BackupError};
use crate::commands;
use crate::handle::Connection;
use crate::node::{LocalQueueManager, Node};
use crate::security;
use crate::services::messaging::unexpected;
use crate::services::status;

/// Items that one page of a dump or of the account holds.
const PAGE: u32 = 256;

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Administrators, on the listener of clients.
    Administrators,
    /// Other nodes, on the listener between nodes: they have checked who asked.
    Nodes,
}

/// The service of one listener.
#[derive(Debug, Clone)]
pub(crate) struct AdminService {
    node: Arc<Node>,
    callers: Callers,
}

/// A command goes to the queue manager here, or to its node.
enum Place {
    Here(LocalQueueManager),
    There(Box<Member>),
}

impl AdminService {
    pub(crate) fn new(node: Arc<Node>, callers: Callers) -> Self {
        Self { node, callers }
    }

    /// Lets the caller in, and says who it is.
    fn admit<T>(&self, request: &Request<T>) -> Result<String, Status> {
        let peer = request.extensions().get::<PeerInfo>();
        match self.callers {
            Callers::Administrators => {
                security::authorize_administrator(self.node.administrators(), peer)
                    .map_err(|e| e.to_status())?;
            }
            Callers::Nodes => {
                if !self.node.network().is_a_node(peer) {
                    return Err(CallError::new(ReasonCode::NOT_AUTHORIZED, None, None).to_status());
                }
            }
        }
        Ok(match peer {
            Some(peer) if peer.tls => security::subject(peer),
            // Plain text is for loopback: who has no certificate there is somebody on this machine.
            Some(_) | None => "local".to_owned(),
        })
    }

    /// Where a queue manager is.
    fn place(&self, name: &str) -> Result<Place, Status> {
        if let Ok(handle) = self.node.queue_manager(name)
            && let Some(local) = self.node.local(handle.name())
        {
            return Ok(Place::Here(local));
        }
        let unknown = || CallError::new(ReasonCode::Q_MGR_NAME_ERROR, None, None).to_status();
        let name = QueueManagerName::new(name).map_err(|_| unknown())?;
        let definitions = self.node.metadata().definitions();
        let host = definitions
            .queue_managers
            .get(&name)
            .ok_or_else(unknown)?
            .node;
        let peers = &self.node.config().cluster.peers;
        let peer = peers
            .iter()
            .find(|p| p.id == host && host != self.node.config().node.id);
        // The host of a queue manager that is starting up here is this node: not there yet.
        let peer = peer.ok_or_else(|| {
            let name = Some(name.to_string());
            CallError::new(ReasonCode::Q_MGR_NOT_AVAILABLE, None, name).to_status()
        })?;
        let member = Member {
            id: peer.id,
            name: peer.name.clone(),
            address: peer.peer.clone(),
        };
        Ok(Place::There(Box::new(member)))
    }

    /// A client to the same service of another node.
    async fn other(
        &self,
        member: &Member,
    ) -> Result<pb::admin_client::AdminClient<tonic::transport::Channel>, Status> {
        use ferrymq_metadata::PeerNetwork as _;
        let channel = self.node.network().connect(member).await.map_err(|error| {
            let text = format!(
                "node {} hosts it and cannot be reached: {error}",
                member.name
            );
            let reason = ReasonCode::Q_MGR_NOT_AVAILABLE;
            CallError {
                text,
                ..CallError::new(reason, None, None)
            }
            .to_status()
        })?;
        Ok(pb::admin_client::AdminClient::new(channel)
            .max_decoding_message_size(ferrymq_types::MESSAGE_LENGTH_MAX as usize))
    }
}

type DumpStream = Pin<Box<dyn Stream<Item = Result<pb::DumpResponse, Status>> + Send>>;
type AccountStream = Pin<Box<dyn Stream<Item = Result<pb::ListAccountResponse, Status>> + Send>>;

#[tonic::async_trait]
impl pb::admin_server::Admin for AdminService {
    type DumpStream = DumpStream;
    type ListAccountStream = AccountStream;

    async fn run_mqsc(
        &self,
        request: Request<pb::RunMqscRequest>,
    ) -> Result<Response<pb::RunMqscResponse>, Status> {
        let who = self.admit(&request)?;
        let request = request.into_inner();
        match self.place(&request.queue_manager)? {
            Place::Here(local) => {
                let answer = commands::run(&self.node, &local, &request.command, &who).await;
                Ok(Response::new(run_response(answer)))
            }
            Place::There(member) => self.other(&member).await?.run_mqsc(request).await,
        }
    }

    async fn export_definitions(
        &self,
        request: Request<pb::ExportDefinitionsRequest>,
    ) -> Result<Response<pb::ExportDefinitionsResponse>, Status> {
        self.admit(&request)?;
        let request = request.into_inner();
        match self.place(&request.queue_manager)? {
            Place::Here(local) => {
                let lines = ferrymq_mqsc::export(&local.handle.objects());
                Ok(Response::new(pb::ExportDefinitionsResponse { lines }))
            }
            Place::There(member) => self.other(&member).await?.export_definitions(request).await,
        }
    }

    async fn list_members(
        &self,
        request: Request<pb::ListMembersRequest>,
    ) -> Result<Response<pb::ListMembersResponse>, Status> {
        self.admit(&request)?;
        let status = self.node.metadata().members().await;
        let definitions = self.node.metadata().definitions();
        let hosted = |id: u64| {
            let managers = definitions.queue_managers.values().filter(|q| q.node == id);
            managers.map(|q| q.attributes.name.to_string()).collect()
        };
        let members = status.members.into_iter().map(|m| {
            let role = match (m.reachable || m.member.id == status.node, m.leader, m.voter) {
                (false, ..) => "unreachable",
                (true, true, _) => "leader",
                (true, false, true) => "follower",
                (true, false, false) => "learner",
            };
            pb::Member {
                queue_managers: hosted(m.member.id),
                id: m.member.id,
                name: m.member.name,
                peer_address: m.member.address,
                role: role.to_owned(),
                matched_index: m.matched_index.unwrap_or(0),
            }
        });
        Ok(Response::new(pb::ListMembersResponse {
            members: members.collect(),
            node_id: status.node,
            term: status.term,
            applied_index: status.applied_index.unwrap_or(0),
            committed_index: status.committed_index.unwrap_or(0),
            // A node that is alone is a majority, and hears nobody who could say so.
            quorum: status.has_quorum || self.node.config().is_alone(),
        }))
    }

    async fn dump(
        &self,
        request: Request<pb::DumpRequest>,
    ) -> Result<Response<Self::DumpStream>, Status> {
        self.admit(&request)?;
        let request = request.into_inner();
        match self.place(&request.queue_manager)? {
            Place::Here(local) => {
                let state = DumpState {
                    connection: local.handle.connect(),
                    page: Vec::new().into_iter(),
                    after: None,
                };
                Ok(Response::new(Box::pin(futures::stream::try_unfold(
                    state,
                    DumpState::next,
                ))))
            }
            Place::There(member) => {
                let stream = self.other(&member).await?.dump(request).await?.into_inner();
                Ok(Response::new(Box::pin(stream)))
            }
        }
    }

    async fn list_account(
        &self,
        request: Request<pb::ListAccountRequest>,
    ) -> Result<Response<Self::ListAccountStream>, Status> {
        self.admit(&request)?;
        let request = request.into_inner();
        match self.place(&request.queue_manager)? {
            Place::Here(local) => {
                let state = AccountState {
                    connection: local.handle.connect(),
                    page: Vec::new().into_iter(),
                    after: 0,
                    since: Timestamp::from_millis(request.since_ms),
                };
                Ok(Response::new(Box::pin(futures::stream::try_unfold(
                    state,
                    AccountState::next,
                ))))
            }
            Place::There(member) => {
                let stream = self
                    .other(&member)
                    .await?
                    .list_account(request)
                    .await?
                    .into_inner();
                Ok(Response::new(Box::pin(stream)))
            }
        }
    }

    async fn create_backup(
        &self,
        request: Request<pb::CreateBackupRequest>,
    ) -> Result<Response<pb::CreateBackupResponse>, Status> {
        let who = self.admit(&request)?;
        let directory = request.into_inner().directory;
        tracing::info!(id = "FMQ9060I", who, directory, "a backup is made");
        let manifest = backup::create(&self.node, directory.into())
            .await
            .map_err(|error| backup_refused(&error))?;
        let stores = manifest.stores.iter().map(|store| pb::BackupStore {
            queue_manager: store.qmgr.clone(),
            position: store.position,
        });
        Ok(Response::new(pb::CreateBackupResponse {
            stores: stores.collect(),
            files: manifest.files.len() as u64,
            bytes: manifest.bytes(),
        }))
    }
}

/// `MQRCCF_COMMAND_FAILED`.
const COMMAND_FAILED: ReasonCode = ReasonCode::new(3008);

/// Why there is no backup, for its caller.
fn backup_refused(error: &BackupError) -> Status {
    let reason = match error {
        BackupError::Store(error) => error.reason(),
        BackupError::Target { .. }
        | BackupError::NoBackup(_)
        | BackupError::Manifest { .. }
        | BackupError::Damaged(_)
        | BackupError::OneOfSeveral { .. }
        | BackupError::Check(_) => COMMAND_FAILED,
    };
    CallError {
        text: error.to_string(),
        ..CallError::new(reason, None, None)
    }
    .to_status()
}

fn run_response(answer: Answer) -> pb::RunMqscResponse {
    let objects = answer
        .objects
        .into_iter()
        .map(|object| pb::DisplayedObject {
            heading: object.heading,
            attributes: object.pairs.into_iter().map(attribute).collect(),
        });
    pb::RunMqscResponse {
        objects: objects.collect(),
        lines: answer.lines,
        completion_code: if answer.reason == ReasonCode::NONE {
            0
        } else {
            2
        },
        reason: answer.reason.get(),
        syntax_error: answer.syntax_error,
    }
}

fn attribute((keyword, value): (String, Option<AttributeValue>)) -> pb::Attribute {
    let number = matches!(value, Some(AttributeValue::Number(_)));
    let value = value.map(|value| match value {
        AttributeValue::Number(n) => n.to_string(),
        AttributeValue::Text(t) | AttributeValue::Word(t) => t,
        AttributeValue::List(items) => items.join(","),
        AttributeValue::Flag(on) => if on { "YES" } else { "NO" }.to_owned(),
    });
    pb::Attribute {
        keyword,
        value,
        number,
    }
}

struct DumpState {
    connection: Connection,
    page: std::vec::IntoIter<DumpItem>,
    after: Option<(ObjectId, Sequence)>,
}

impl DumpState {
    async fn next(mut self) -> Result<Option<(pb::DumpResponse, Self)>, Status> {
        let name = self.connection.queue_manager().name().clone();
        let fail = |failure| *status(failure, &name);
        let item = match self.page.next() {
            Some(item) => item,
            None => {
                let ask = Ask::Dump {
                    after: self.after,
                    limit: PAGE,
                };
                let Reply::Dump(page) = self.connection.ask(ask).await.map_err(fail)? else {
                    return Err(fail(unexpected()));
                };
                self.page = page.into_iter();
                match self.page.next() {
                    Some(item) => item,
                    None => return Ok(None),
                }
            }
        };
        self.after = Some((item.queue.0, item.sequence));
        let message = match item.message {
            Some(message) => message,
            None => {
                let read = self
                    .connection
                    .queue_manager()
                    .read(item.queue.0, item.sequence)
                    .await;
                match read.map_err(|text| {
                    let object = Some(format!(
                        "{} position {}: {text}",
                        item.queue.1, item.sequence
                    ));
                    fail(Failure {
                        reason: ReasonCode::CORRUPT_STORE,
                        object,
                    })
                })? {
                    Some(message) => Arc::new(message),
                    // It left its queue between the page and the read: whoever took it has it.
                    None => return Box::pin(self.next()).await,
                }
            }
        };
        let now = self.connection.queue_manager().clock().now();
        let response = pb::DumpResponse {
            queue: item.queue.1.to_string(),
            position: item.sequence.get(),
            message: Some(v1::Message {
                descriptor: Some(convert::descriptor_to_wire(
                    &message.descriptor,
                    item.backout_count,
                    now,
                )),
                data: message.data(),
            }),
            held: item.held,
        };
        Ok(Some((response, self)))
    }
}

struct AccountState {
    connection: Connection,
    page: std::vec::IntoIter<Arc<AccountEntry>>,
    after: u64,
    since: Timestamp,
}

impl AccountState {
    async fn next(mut self) -> Result<Option<(pb::ListAccountResponse, Self)>, Status> {
        let name = self.connection.queue_manager().name().clone();
        let fail = |failure| *status(failure, &name);
        let entry = match self.page.next() {
            Some(entry) => entry,
            None => {
                let ask = Ask::Account {
                    after: self.after,
                    since: self.since,
                    limit: PAGE,
                };
                let Reply::Account(page) = self.connection.ask(ask).await.map_err(fail)? else {
                    return Err(fail(unexpected()));
                };
                self.page = page.into_iter();
                match self.page.next() {
                    Some(entry) => entry,
                    None => return Ok(None),
                }
            }
        };
        self.after = entry.number;
        let code = match entry.reason {
            AccountReason::DeadLettered(code) | AccountReason::Discarded(code) => code.get(),
            AccountReason::Expired | AccountReason::Cleared | AccountReason::BackedOut => 0,
        };
        let response = pb::ListAccountResponse {
            number: entry.number,
            message_id: Bytes::copy_from_slice(entry.message_id.as_bytes()),
            from: entry.from.to_string(),
            to: entry.to.clone().unwrap_or_default(),
            reason: entry.reason.to_string(),
            reason_code: code,
            who: entry.who.clone(),
            time_ms: entry.time.as_millis(),
        };
        Ok(Some((response, self)))
    }
}
